import { spawn, type ChildProcess } from "node:child_process";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { vi } from "vitest";
import { freePort } from "../../scripts/lib/state.ts";

const types = { A: 1, CNAME: 5, TXT: 16, AAAA: 28, CAA: 257 } as const;
type Type = keyof typeof types;

/**
 * dnsmasq, and a resolver before it that speaks DNS over HTTPS in its JSON form, as public ones do: over plain HTTP on
 * the loopback address. @param records dnsmasq's options, such as `--host-record=www.example.com,192.0.2.1`
 */
export class NameServer {
  readonly endpoint: string;
  private readonly child: ChildProcess;
  private readonly server: http.Server;

  private constructor(endpoint: string, child: ChildProcess, server: http.Server) {
    this.endpoint = endpoint;
    this.child = child;
    this.server = server;
  }

  static async start(records: readonly string[]): Promise<NameServer> {
    const { child, resolver } = await startDnsmasq([
      // Names that no record has do not exist.
      "--local=/com/net/example/",
      ...records,
    ]);
    await vi.waitUntil(
      () =>
        resolver.resolve4("no.example.com").then(
          () => true,
          (error: NodeJS.ErrnoException) => error.code === "ENOTFOUND" || error.code === "ENODATA",
        ),
      { timeout: 10_000 },
    );
    const { endpoint, server } = await overHttps(resolver);
    return new NameServer(endpoint, child, server);
  }

  async stop(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    this.child.kill("SIGKILL");
    await once(this.child, "exit");
  }
}

/** dnsmasq at a port of its own, with nothing of this machine's configuration; it may not answer yet. */
async function startDnsmasq(args: readonly string[]): Promise<{ child: ChildProcess; resolver: Resolver }> {
  const port = await freePort();
  const child = spawn(
    "/usr/sbin/dnsmasq",
    [
      "--keep-in-foreground",
      "--conf-file=/dev/null",
      "--no-resolv",
      "--no-hosts",
      "--bind-interfaces",
      "--listen-address=127.0.0.1",
      `--port=${port}`,
      "--user=root",
      "--pid-file",
      ...args,
    ],
    { stdio: "ignore" },
  );
  return { child, resolver: resolverAt(port) };
}

export function resolverAt(port: number): Resolver {
  const resolver = new Resolver({ timeout: 1000, tries: 2 });
  resolver.setServers([`127.0.0.1:${port}`]);
  return resolver;
}

/** A resolver that speaks DNS over HTTPS in its JSON form, as public ones do: over plain HTTP on the loopback address. */
export async function overHttps(resolver: Resolver): Promise<{ endpoint: string; server: http.Server }> {
  const server = http.createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? "/", "http://resolver");
    void answer(resolver, searchParams.get("name") ?? "", searchParams.get("type") as Type).then((body) =>
      response.writeHead(200, { "Content-Type": "application/dns-json" }).end(JSON.stringify(body)),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/resolve`, server };
}

/** dnsmasq as a visitor's resolver: it asks the name server at this port, and remembers each answer for its whole TTL. */
export async function startCache(dnsPort: number): Promise<{ resolver: Resolver; stop(): Promise<void> }> {
  const { child, resolver } = await startDnsmasq([
    `--server=127.0.0.1#${dnsPort}`,
    "--cache-size=1000",
    // What is not there yet may be there a moment later.
    "--no-negcache",
  ]);
  await vi.waitUntil(
    () =>
      resolver.resolve4("no.example.com").then(
        () => true,
        ({ code }: NodeJS.ErrnoException) => code !== "ECONNREFUSED" && code !== "ETIMEOUT",
      ),
    { timeout: 10_000 },
  );
  return {
    resolver,
    async stop() {
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

async function answer(resolver: Resolver, name: string, type: Type) {
  const Answer: { name: string; type: number; TTL: number; data: string }[] = [];
  try {
    for (const alias of await aliasesOf(resolver, name))
      Answer.push({ name, type: types.CNAME, TTL: 60, data: `${alias}.` });
    for (const data of await recordsOf(resolver, name, type))
      Answer.push({ name, type: types[type], TTL: 60, data });
    return { Status: 0, ...(Answer.length > 0 && { Answer }) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENODATA") return { Status: 0, Answer };
    return { Status: code === "ENOTFOUND" ? 3 : 2, ...(code === "ENOTFOUND" && { Answer }) };
  }
}

async function aliasesOf(resolver: Resolver, name: string): Promise<string[]> {
  const aliases: string[] = [];
  for (let at = name; aliases.length < 8;) {
    const [alias] = await resolver.resolveCname(at).catch(() => []);
    if (alias === undefined) break;
    aliases.push((at = alias));
  }
  return aliases;
}

async function recordsOf(resolver: Resolver, name: string, type: Type): Promise<string[]> {
  if (type === "A") return resolver.resolve4(name);
  if (type === "AAAA") return resolver.resolve6(name);
  if (type === "TXT")
    return (await resolver.resolveTxt(name)).map((parts) => parts.map((part) => `"${part}"`).join(" "));
  if (type === "CAA")
    return (await resolver.resolveCaa(name)).flatMap(({ critical, ...tags }) =>
      Object.entries(tags).flatMap(([tag, value]) =>
        tag === "type" ? [] : [`${critical} ${tag} "${String(value)}"`],
      ),
    );
  return [];
}
