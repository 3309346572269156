import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { freePort } from "../../scripts/lib/state.ts";

/**
 * Pebble, Let's Encrypt's own test server: speaks ACME (RFC 8555) and validates names like the real one, on the
 * loopback address.
 */
export class AcmeServer {
  readonly directory: string;
  readonly caFile: string;
  private readonly children: ChildProcess[] = [];

  private readonly folder: string;
  private readonly ports: { acme: number; management: number };

  private constructor(folder: string, ports: { acme: number; management: number }) {
    this.folder = folder;
    this.ports = ports;
    this.directory = `https://localhost:${ports.acme}/dir`;
    this.caFile = join(folder, "certificate.pem");
  }

  /**
   * Every name resolves to 127.0.0.1, where these ports answer its challenges.
   * @param refused names for which no certificate is issued (rejectedIdentifier)
   */
  static async start({
    httpPort,
    tlsPort,
    refused = [],
    dnsPort,
  }: {
    httpPort: number;
    tlsPort: number;
    refused?: readonly string[];
    /** Resolves the names instead. */
    dnsPort?: number;
  }): Promise<AcmeServer> {
    const folder = mkdtempSync(join(tmpdir(), "berth-acme-"));
    const ports = { acme: await freePort(), management: await freePort() };
    const dns = dnsPort ?? (await freePort());
    const server = new AcmeServer(folder, ports);
    const key = join(folder, "key.pem");
    execFileSync(
      "openssl",
      [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-keyout",
        key,
        "-out",
        server.caFile,
      ],
      { stdio: "ignore" },
    );
    const config = {
      listenAddress: `127.0.0.1:${ports.acme}`,
      managementListenAddress: `127.0.0.1:${ports.management}`,
      certificate: server.caFile,
      privateKey: key,
      httpPort,
      tlsPort,
      domainBlocklist: refused,
    };
    writeFileSync(join(folder, "config.json"), JSON.stringify({ pebble: config }));
    if (dnsPort === undefined) await server.answerAll(dns);
    server.run("pebble", ["-config", join(folder, "config.json"), "-dnsserver", `127.0.0.1:${dns}`]);
    await vi.waitUntil(() => server.root().catch(() => false), { timeout: 20_000 });
    return server;
  }

  /** The root certificate, as PEM, which verifies the certificates issued here. */
  root(): Promise<string> {
    return new Promise((resolve, reject) => {
      https
        .get(
          {
            host: "127.0.0.1",
            port: this.ports.management,
            path: "/roots/0",
            ca: readFileSync(this.caFile),
            servername: "localhost",
            agent: false,
          },
          (response) => {
            let text = "";
            response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
            response.on("end", () => resolve(text)).on("error", reject);
          },
        )
        .on("error", reject);
    });
  }

  async stop(): Promise<void> {
    for (const child of this.children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async answerAll(dns: number): Promise<void> {
    // Newer versions rename the option, and serve DNS over HTTPS unless it is disabled.
    const { stderr: flags } = spawnSync("pebble-challtestsrv", ["-help"], { encoding: "utf8" });
    this.run("pebble-challtestsrv", [
      "-defaultIPv6",
      "",
      flags.includes("-dns01") ? "-dns01" : "-dnsserver",
      `127.0.0.1:${dns}`,
      ...(flags.includes("-doh ") ? ["-doh", ""] : []),
      "-http01",
      "",
      "-https01",
      "",
      "-tlsalpn01",
      "",
      "-management",
      `127.0.0.1:${await freePort()}`,
    ]);
  }

  private run(program: string, args: string[]): void {
    // Strict settings, except for artificial pauses.
    const env = { ...process.env, PEBBLE_VA_NOSLEEP: "1" };
    this.children.push(spawn(program, args, { env, stdio: "ignore" }));
  }
}
