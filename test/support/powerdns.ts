import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { vi } from "vitest";
import { freePort } from "../../scripts/lib/state.ts";

/** PowerDNS with one empty zone on the loopback address, as Debian packages it, and its HTTP API. */
export class PowerDns {
  readonly zone: string;
  readonly apiUrl: string;
  readonly apiKey = "powerdns-key";
  readonly port: number;
  private readonly folder: string;
  private child: ChildProcess | undefined;

  private constructor(zone: string, folder: string, ports: { dns: number; api: number }) {
    this.zone = zone;
    this.folder = folder;
    this.port = ports.dns;
    this.apiUrl = `http://127.0.0.1:${ports.api}`;
  }

  static async start(zone: string): Promise<PowerDns> {
    const folder = mkdtempSync(join(tmpdir(), "berth-powerdns-"));
    const ports = { dns: await freePort(), api: await freePort() };
    const server = new PowerDns(zone, folder, ports);
    const file = join(folder, "zones.sqlite3");
    const database = new DatabaseSync(file);
    database.exec(readFileSync("/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql", "utf8"));
    database.close();
    const settings = {
      launch: "gsqlite3",
      "gsqlite3-database": file,
      // It need not outlive the machine: no change waits for a busy disk.
      "gsqlite3-pragma-synchronous": 0,
      "local-address": "127.0.0.1",
      "local-port": ports.dns,
      "socket-dir": folder,
      api: "yes",
      "api-key": server.apiKey,
      webserver: "yes",
      "webserver-address": "127.0.0.1",
      "webserver-port": ports.api,
      // Answers are what the database says now.
      "cache-ttl": 0,
      "query-cache-ttl": 0,
      "negquery-cache-ttl": 0,
      "zone-cache-refresh-interval": 0,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(join(folder, "pdns.conf"), lines.join(""));
    await server.resume();
    await server.request("/zones", "POST", {
      name: `${zone}.`,
      kind: "Native",
      nameservers: [`ns.${zone}.`],
    });
    return server;
  }

  /** Starts it, or starts it again. */
  async resume(): Promise<void> {
    this.child = spawn("pdns_server", [`--config-dir=${this.folder}`, "--daemon=no", "--guardian=no"], {
      stdio: "ignore",
    });
    await vi.waitUntil(() => this.request("", "GET").catch(() => false), { timeout: 20_000 });
  }

  /** Until it is resumed, nothing answers. */
  async pause(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** As another program would use its API. @returns whether it was accepted */
  async request(path: string, method: string, body?: object): Promise<boolean> {
    const response = await fetch(`${this.apiUrl}/api/v1/servers/localhost${path}`, {
      method,
      headers: { "X-API-Key": this.apiKey },
      ...(body && { body: JSON.stringify(body) }),
    });
    await response.body?.cancel();
    return response.ok;
  }

  async stop(): Promise<void> {
    await this.pause();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
