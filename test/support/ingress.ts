import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { Resolver } from "node:dns/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import { ingressContainer, startIngress } from "../../agent/ingress/container.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { openRoutes } from "../../agent/ingress/routes.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { engine } from "./engine.ts";

const source = join(import.meta.dirname, "../../agent/ingress/responder.ts");

/** Waits until a request for this name, on a port of this machine, gets this status. */
export const answers = (port: number, hostname: string, status: number) =>
  vi.waitUntil(
    () =>
      get(port, hostname).then(
        (answer) => answer.status === status,
        () => false,
      ),
    { timeout: 60_000 },
  );

/** The responder as it runs on a host, in its own process, with the routes file it answers from. */
export class TestResponder {
  readonly file: string;
  readonly dnsPort: number;
  readonly statusPort: number;
  private readonly folder: string;
  private readonly program: string;
  private child: ChildProcess | undefined;

  private constructor(program: string, dnsPort: number, statusPort: number) {
    this.program = program;
    this.folder = mkdtempSync(join(tmpdir(), "berth-ingress-"));
    this.file = join(this.folder, "ingress", "routes.json");
    mkdirSync(join(this.folder, "ingress"));
    this.dnsPort = dnsPort;
    this.statusPort = statusPort;
  }

  static async start(program = source): Promise<TestResponder> {
    const responder = new TestResponder(program, await freePort(), await freePort());
    await responder.run();
    return responder;
  }

  /** The agent's side of it; opening it again simulates a restarted agent. */
  openRoutes(found: readonly string[] = [], patienceMs?: number): Ingress {
    return openRoutes(this.file, this.statusPort, found, patienceMs);
  }

  async run(): Promise<void> {
    this.child = spawn(
      process.execPath,
      [this.program, this.file, String(this.dnsPort), String(this.statusPort)],
      { stdio: ["ignore", "ignore", "ignore"] },
    );
    await answers(this.statusPort, "unknown.localhost", 404);
  }

  async kill(): Promise<void> {
    const child = this.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  get processId(): number {
    return this.child?.pid ?? 0;
  }

  private resolver(): Resolver {
    const resolver = new Resolver({ timeout: 5000, tries: 3 });
    resolver.setServers([`127.0.0.1:${this.dnsPort}`]);
    return resolver;
  }

  /** The `address:port` that Caddy resolves for a host name. */
  async leadsTo(hostname: string, kind = "up"): Promise<string> {
    const [service] = await this.resolver().resolveSrv(`${hostname}.${kind}.internal`);
    const [address] = await this.resolver().resolve4(service?.name ?? "");
    return `${address}:${service?.port}`;
  }

  /** All targets that Caddy may choose from. */
  async leadsToAll(hostname: string): Promise<string[]> {
    const services = await this.resolver().resolveSrv(`${hostname}.up.internal`);
    const all = services.map(
      async ({ name, port }) => `${(await this.resolver().resolve4(name)).join()}:${port}`,
    );
    return (await Promise.all(all)).toSorted();
  }

  get statusPage(): string {
    return `127.0.0.1:${this.statusPort}`;
  }
}

export type TestIngress = {
  responder: TestResponder;
  port: number;
  containerId: string;
  /** Leaves nothing of it on the engine. */
  stop(): Promise<void>;
};

/** This agent's ingress without TLS on a port of its own, with its responder. */
export async function startTestIngress(
  agentId: string,
  { program, trustedProxies }: { program?: string; trustedProxies?: string[] } = {},
): Promise<TestIngress> {
  const responder = await TestResponder.start(program);
  const port = await freePort();
  const { dnsPort: responderPort, statusPort } = responder;
  const config = { address: "127.0.0.1", port, responderPort, statusPort, tls: null, trustedProxies };
  const containerId = await startIngress(engine, ingressContainer(agentId, config).spec);
  await answers(port, "unknown.localhost", 404);
  return {
    responder,
    port,
    containerId,
    async stop() {
      await engine.removeContainer(containerId);
      await engine.removeVolume(accessLogVolume(agentId));
      await responder.stop();
    },
  };
}

export function get(
  port: number,
  host: string,
  options: { path?: string; headers?: Record<string, string>; agent?: http.Agent } = {},
): Promise<{ status: number; text: string; headers: http.IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    http
      .get(
        {
          host: "127.0.0.1",
          port,
          path: options.path ?? "/",
          headers: { ...options.headers, Host: host },
          agent: options.agent,
        },
        (response) => {
          let text = "";
          response
            .setEncoding("utf8")
            .on("data", (chunk: string) => (text += chunk))
            .on("end", () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }))
            .on("error", reject);
        },
      )
      .on("error", reject);
  });
}
