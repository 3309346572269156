import { unlinkSync } from "node:fs";
import http from "node:http";
import { Readable, type Duplex } from "node:stream";
import { json } from "node:stream/consumers";
import { join } from "node:path";
import util from "node:util";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Engine } from "../../agent/docker/engine.ts";
import { createEngine } from "../../agent/docker/client.ts";
import { freeSubnet, routedSubnets } from "../../agent/docker/subnets.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Writes what a program prints, as the engine's API frames it. */
type Print = (stream: Duplex) => void;

let folder: string;
let server: http.Server;
let engine: Engine;
let hasty: Engine;
let prints: Print;
/** Somebody else has removed the container. */
let removed: PromiseWithResolvers<void>;
/** What a network was asked for with. */
let subnets: (string | null)[];
/** The containers there are, and what was asked. */
let listed: object[];
let asked: string[];
/** Endpoints of the network s of which Docker did not record that they left. */
let stale: string[];
const open = new Set<Duplex>();
/** How many connections the engine has not seen end. */
const held = () => [...open].filter((socket) => !socket.destroyed).length;

const frame = (text: string): Buffer => {
  const header = Buffer.alloc(8);
  header[0] = 1;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
};

/** An engine of which only what these tests ask answers. */
beforeEach(async () => {
  folder = temporaryFolder();
  removed = Promise.withResolvers();
  [listed, asked, subnets, stale] = [[], [], [], []];
  server = http.createServer((request, response) => {
    if (!/^\/networks\/(?:create|s\/disconnect)/.test(request.url ?? "")) request.resume();
    asked.push(`${request.method} ${decodeURIComponent(request.url ?? "")}`);
    if (request.url?.includes("/distribution/") || request.url?.includes("/stuck/")) return;
    if (request.url === "/networks/n") return void response.writeHead(404).end();
    if (request.url === "/networks/s") {
      const left = stale.map((name) => [`ep-${name}`, { Name: name }]);
      if (request.method === "GET")
        return void response.end(JSON.stringify({ Containers: Object.fromEntries(left) }));
      return void response.writeHead(stale.length > 0 ? 403 : 204).end();
    }
    if (request.url === "/networks/s/disconnect")
      return void json(request).then((body) => {
        const { Container, Force } = body as { Container: string; Force: boolean };
        asked.push(`of ${Container}${Force ? " by force" : ""}`);
        stale = stale.filter((name) => name !== Container);
        response.writeHead(200).end();
      });
    if (request.url === "/containers/0123456789abcdef/start") {
      const message = "endpoint with name web already exists in network s";
      if (stale.includes("web")) return void response.writeHead(403).end(JSON.stringify({ message }));
      return void response.writeHead(204).end();
    }
    if (request.url === "/networks") return void response.end(JSON.stringify(networks));
    if (request.url?.startsWith("/networks/create")) {
      void json(request).then((body) => {
        const { IPAM } = body as { IPAM?: { Config: { Subnet: string }[] } };
        subnets.push(IPAM?.Config[0]?.Subnet ?? null);
        const said = "could not find an available, non-overlapping IPv4 address pool among the defaults";
        if (IPAM) response.writeHead(201).end('{"Id":"n"}');
        else response.writeHead(404).end(JSON.stringify({ message: said }));
      });
      return;
    }
    if (request.url === "/containers/half/json")
      return void response
        .writeHead(200, { "Content-Length": 100 })
        .write("{", () => request.socket.destroy());
    if (request.url === "/images/huge/json")
      return void Readable.from(Array.from({ length: 140 }, () => Buffer.alloc(1024 * 1024, "x"))).pipe(
        response,
      );
    if (request.url?.startsWith("/containers/create"))
      return void (/name=(?:taken|ghost)$/.test(request.url)
        ? response.writeHead(409).end()
        : response.writeHead(201).end('{"Id":"other"}'));
    if (request.url === "/containers/slept/json") {
      response.end(JSON.stringify(taken));
      // As while this process is stopped, or its machine is.
      return void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
    }
    const [, log] = /^\/containers\/(\w+)\/logs/.exec(request.url ?? "") ?? [];
    if (log !== undefined)
      return void response.writeHead({ ghost: 404, leaving: 409 }[log] ?? 500).end('{"message":"refused"}');
    if (request.url === "/containers/ghost/json") return void response.writeHead(404).end();
    if (request.url === "/containers/taken/json") return void response.end(JSON.stringify(taken));
    if (request.url?.startsWith("/containers/json")) return void response.end(JSON.stringify(listed));
    if (request.method === "DELETE") return void response.writeHead(409).end();
    if (request.url?.includes("/wait?condition=removed"))
      return void removed.promise.then(() => response.end());
    response.setHeader("Content-Type", "application/json");
    if (request.url?.endsWith("/exec")) response.writeHead(201).end('{"Id":"exec"}');
    else response.end('{"Running":false,"ExitCode":3}');
  });
  server.on("connection", (socket: Duplex) => void open.add(socket));
  server.on("upgrade", (_request, socket: Duplex) => {
    socket.on("error", () => undefined).resume();
    socket.write("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
    prints(socket);
  });
  const socketPath = join(folder, "engine.sock");
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  engine = createEngine({ socketPath });
  hasty = createEngine({ socketPath, answerTimeoutMs: 200, executeTimeoutMs: 200, registryTimeoutMs: 200 });
});

afterEach(() => {
  for (const socket of open) socket.destroy();
  open.clear();
  server.close();
});

it("a container that is gone, or is being removed, has no lines; a log that cannot be read is an error", async () => {
  const request = { tail: 1, since: null };
  expect((await engine.readLog("ghost", request)).length).toBe(0);
  expect((await engine.readLog("leaving", request)).length).toBe(0);
  await expect(engine.readLog("other", request)).rejects.toThrow("500");
});

it("an engine whose events end is lost, and one that nobody follows any more is not", async () => {
  const stop = new AbortController();
  const watcher = { since: () => null, onEvent: () => undefined };
  expect(engine.losses()).toBe(0);
  engine.watchContainers({}, stop.signal, watcher);
  await vi.waitUntil(() => engine.losses() > 0, 30_000);
  stop.abort();
  hasty.watchContainers({}, AbortSignal.abort(), watcher);
  await hasty.ping();
  expect(hasty.losses()).toBe(0);
});

it("an engine that is ending is away, although it still answers on connections that were open before", async () => {
  expect(await engine.listContainers({})).toEqual([]);
  unlinkSync(join(folder, "engine.sock"));
  expect(await engine.listContainers({})).toEqual([]);
  await expect(engine.ping()).rejects.toThrow("ENOENT");
});

it("an engine that accepts connections and answers none is asked for no longer than the asker has patience", async () => {
  server.removeAllListeners("request");
  await expect(engine.ping(AbortSignal.timeout(50))).rejects.toThrow(/abort|timeout/i);
});

describe("a program in a container", () => {
  const run = (signal?: AbortSignal, by = engine) => by.execute("c", { command: ["sh"] }, signal);

  it("answers what it printed and how it ended", async () => {
    prints = (stream) => stream.end(frame("hello"));
    expect(await run()).toEqual({ exitCode: 3, stdout: "hello", stderr: "" });
  });

  it("that never ends is left after a while", async () => {
    prints = (stream) => void stream.write(frame("hello"));
    await expect(run(undefined, hasty)).rejects.toThrow(/sh did not end within/);
  });

  it("that never ends is left when nobody wants its answer any more", async () => {
    const stop = new AbortController();
    prints = () => stop.abort(new Error("cancelled"));
    await expect(run(stop.signal)).rejects.toThrow("cancelled");
  });

  it("that prints for ever is left before it fills the memory", async () => {
    let printed = 0;
    prints = (stream) => {
      const line = frame("y".repeat(65_536));
      const more = () => {
        while (!stream.destroyed && stream.write(line)) printed += line.length;
      };
      stream.on("drain", more);
      more();
    };
    await expect(run()).rejects.toThrow(/sh printed more than/);
    expect(printed).toBeLessThan(16 * 1024 * 1024);
  });
});

it("a registry that never names a digest is waited for only so long, and then not asked any more", async () => {
  await expect(
    hasty.registryDigest("registry.example/a:1", null, new AbortController().signal),
  ).rejects.toThrow();
  await expect.poll(held).toBe(0);
  const stop = new AbortController();
  const asked = engine.registryDigest("registry.example/a:1", null, stop.signal);
  stop.abort();
  await expect(asked).rejects.toThrow();
});

it.each<[string, (stuck: Engine) => Promise<unknown>]>([
  ["looked at", (stuck) => stuck.inspectContainer("stuck")],
  ["started", (stuck) => stuck.startContainer("stuck")],
  ["stopped", (stuck) => stuck.stopContainer("stuck", 0.2)],
])(
  "an engine that never answers when one of its containers is %s is waited for only so long",
  async (_, ask) => {
    await expect(ask(hasty)).rejects.toThrow(/abort|timeout/i);
    await expect.poll(held).toBe(0);
  },
);

it("an answer that came while the agent was stopped is heard, however late it is by then", async () => {
  expect(await hasty.inspectContainer("slept")).toMatchObject({ id: taken.Id });
});

it("an engine that ends amid an answer has not answered: nobody waits for the rest", async () => {
  await expect(engine.inspectContainer("half")).rejects.toThrow("aborted");
});

it("an answer that is longer than a list of all containers can be is not read to its end, which could end the agent", async () => {
  await expect(engine.imageId("huge")).rejects.toThrow("The engine's answer is longer than 128 MB");
});

it("a container that somebody else removes is waited for: until then it holds its volumes and its image", async () => {
  let isGone = false;
  const removal = engine.removeContainer("c").then(() => (isGone = true));
  await engine.inspectContainer("c").catch(() => undefined);
  expect(isGone).toBe(false);
  removed.resolve();
  await removal;
});

it("a network stays while there is a container of it, though none runs: one may be about to start", async () => {
  listed = [{ Id: "c", Names: ["/c"], Labels: {}, State: "created" }];
  await engine.removeNetwork("n");
  expect(asked).toEqual([expect.stringMatching(/^GET .*all=true.*"network":\["n"\]/)]);
  listed = [];
  await engine.removeNetwork("n");
  expect(asked.at(-1)).toBe("DELETE /networks/n");
});

it("a network goes though Docker could not record that its last containers left it", async () => {
  stale = ["one", "other"];
  await engine.removeNetwork("s");
  expect(asked.slice(1)).toEqual([
    "DELETE /networks/s",
    "GET /networks/s",
    "POST /networks/s/disconnect",
    "of one by force",
    "POST /networks/s/disconnect",
    "of other by force",
    "DELETE /networks/s",
  ]);
});

it("a container starts again though Docker could not record that it left its network: it has another name while its place is freed", async () => {
  stale = ["web"];
  await engine.startContainer("0123456789abcdef");
  expect(asked).toEqual([
    "POST /containers/0123456789abcdef/start",
    "GET /networks/s",
    "POST /containers/0123456789abcdef/rename?name=web-0123456789ab",
    "POST /networks/s/disconnect",
    "of web by force",
    "POST /containers/0123456789abcdef/rename?name=web",
    "POST /containers/0123456789abcdef/start",
  ]);
});

/** As the engine tells it of a container of other settings. */
const taken = {
  Id: "serving",
  Name: "/taken",
  State: { Running: true, StartedAt: "0001-", FinishedAt: "0001-" },
  Config: { Labels: { "berth.config": "old" } },
  HostConfig: {},
  Mounts: [],
  NetworkSettings: { Networks: {} },
};

it("what is asked already costs the next request nothing: it is not written out for a log that nobody reads", async () => {
  const written = vi.spyOn(util, "inspect");
  const over = new AbortController();
  const asking = [1, 2, 3].map(() =>
    engine.registryDigest("stuck", null, over.signal).catch(() => undefined),
  );
  await vi.waitUntil(() => asked.length === 3, 10_000);
  await engine.listContainers({});
  const lengths = written.mock.results.map(({ value }) => String(value).length);
  expect(lengths).toHaveLength(4);
  expect(Math.max(...lengths)).toBeLessThan(2000);
  over.abort();
  await Promise.all(asking);
  written.mockRestore();
});

it("a container's variables are in no request's address", async () => {
  await engine.createContainer({ name: "c", Labels: {}, Env: ["TOKEN=secret"] });
  expect(asked).toEqual(["POST /containers/create?name=c"]);
});

it("a container that serves is not removed for another of its name", async () => {
  const spec = { name: "taken", Labels: { "berth.config": "newer" } };
  expect(await engine.createContainer(spec, ["serving"])).toBe("other");
  expect(asked.filter((one) => !one.startsWith("GET"))).toEqual([
    "POST /containers/create?name=taken",
    "POST /containers/create?name=taken-newer",
  ]);
});

it("a name that is taken by no container there is is not asked for for ever", async () => {
  await expect(engine.createContainer({ name: "ghost", Labels: {} })).rejects.toThrow("409");
});

const networks = [
  { Name: "bridge", IPAM: { Config: [{ Subnet: "172.17.0.0/16" }] } },
  { Name: "other", IPAM: { Config: [{ Subnet: "172.16.0.0/23" }, { Subnet: "fd00::/64" }] } },
  { Name: "host", IPAM: { Config: null } },
];

it("there are more networks than the engine's own pools have room for", async () => {
  await engine.ensureNetwork("n", "bridge", {});
  expect(subnets).toEqual([null, expect.stringMatching(/^172\.(?:1[6-9]|2\d|3[01])\.\d+\.0\/24$/)]);
  expect(subnets).not.toContain("172.16.0.0/24");
});

it("a subnet is free that overlaps neither a network nor a route of the host", () => {
  expect(freeSubnet([])).toBe("172.16.0.0/24");
  expect(freeSubnet(["172.16.0.0/23", "172.16.2.128/25", "10.0.0.0/8"])).toBe("172.16.3.0/24");
  expect(freeSubnet(["172.16.0.0/16"])).toBe("172.17.0.0/24");
  expect(freeSubnet(["172.16.0.0/12"])).toBeNull();
  const routes =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n" +
    "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
    "eth0\t000010AC\t00000000\t0001\t0\t0\t0\t00F0FFFF\t0\t0\t0\n";
  expect(routedSubnets(routes)).toEqual(["172.16.0.0/20"]);
});
