import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { WebSocketServer } from "ws";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { maxRequests } from "../../agent/ingress/caddy.ts";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import { ingressContainer, startIngress, webSocketsPerMb } from "../../agent/ingress/container.ts";
import { ensureFirewall, removeFirewall } from "../../agent/isolation/firewall.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { engine } from "../support/engine.ts";
import { answers, get, TestResponder } from "../support/ingress.ts";
import { plugIn, type Machine } from "../support/machine.ts";

const agentId = randomBytes(8).toString("hex");
const [calm, greedy] = ["calm.localhost", "greedy.localhost"];
let port: number;
let responder: TestResponder;
let routes: Ingress;
let containerId: string;
/** The least that a host gives its ingress. */
const memoryMb = 384;
const mebibyte = 1024 * 1024;

const docker = (...args: string[]) => execFileSync("docker", args, { encoding: "utf8" }).trim();
const caddyId = () => /^(\d+) +caddy$/m.exec(docker("top", containerId, "-eo", "pid,comm"))?.[1];

const closing: (() => unknown)[] = [];
afterEach(() => Promise.all(closing.splice(0).map((close) => close())));

async function serves(siteId: string, hostname: string, answer: http.RequestListener) {
  const server = http.createServer(answer);
  const sockets = new WebSocketServer({ server, perMessageDeflate: false });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const target = { containerId: siteId, address: "127.0.0.1", port: (server.address() as AddressInfo).port };
  await routes.route(siteId, [hostname], [target]);
  closing.push(async () => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
    await routes.unroute(siteId);
  });
}

const upgrade = (hostname: string) =>
  `GET / HTTP/1.1\r\nHost: ${hostname}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString("base64")}\r\n\r\n`;

/** Whether the app took it as a WebSocket. */
const webSocket = (hostname: string): Promise<{ socket: Socket; status: string }> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1").on("error", reject);
    closing.push(() => socket.destroy());
    socket.once("data", (data: Buffer) => resolve({ socket, status: data.toString().slice(9, 12) }));
    socket.write(upgrade(hostname));
  });

/** So many requests that the app never answers, each with headers that take memory. */
async function flood(count: number, headerBytes = 0): Promise<Socket[]> {
  const asked = `GET / HTTP/1.1\r\nHost: ${greedy}\r\nX-Long: ${"a".repeat(headerBytes)}\r\n\r\n`;
  const sockets = Array.from({ length: count }, () =>
    connect(port, "127.0.0.1").on("error", () => undefined),
  );
  closing.push(() => sockets.forEach((socket) => socket.destroy()));
  for (const socket of sockets) socket.write(asked);
  return sockets;
}

/** @param mebibytes of memory, where it is to have less than it should */
async function startWith(mebibytes?: number): Promise<void> {
  const { dnsPort: responderPort, statusPort } = responder;
  const settings = { address: "0.0.0.0", port, responderPort, statusPort, tls: null };
  const { spec } = ingressContainer(agentId, settings, 8 * memoryMb);
  const least =
    mebibytes === undefined ? {} : { Memory: mebibytes * mebibyte, MemorySwap: mebibytes * mebibyte };
  containerId = await startIngress(engine, { ...spec, HostConfig: { ...spec.HostConfig, ...least } });
  await answers(port, "unknown.localhost", 404);
}

/** Connections from there that stay open until they are ended; `open`: so many came about. */
async function connectFrom(machine: Machine, count: number): Promise<{ open: number; end(): void }> {
  const pid = docker("inspect", "--format", "{{.State.Pid}}", machine.network.replace("container:", ""));
  const gateway = machine.address.replace(/\d+$/, "1");
  const program = `let open = 0, told = 0;
    const tell = () => { if (++told === ${count}) console.log(open); };
    for (let at = 0; at < ${count}; at++)
      require("node:net").connect(${port}, "${gateway}")
        .once("connect", function () { open++; tell(); this.removeAllListeners("error").on("error", () => {}); })
        .once("error", tell);`;
  const child = spawn("nsenter", ["-t", pid, "-n", process.execPath, "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const end = () => child.kill("SIGKILL");
  closing.push(end);
  const [said] = (await once(child.stdout, "data")) as [Buffer];
  return { open: Number(said.toString()), end };
}

beforeAll(async () => {
  responder = await TestResponder.start();
  routes = responder.openRoutes();
  port = await freePort();
  await startWith();
});
afterAll(async () => {
  await engine.removeContainer(containerId);
  await engine.removeVolume(accessLogVolume(agentId));
  await responder.stop();
});

it("a site with many WebSockets takes requests all the same, and only further WebSockets are refused", async () => {
  await serves("site_1", calm, (_, response) => response.end("serves"));
  const most = memoryMb * webSocketsPerMb;
  expect(most).toBeGreaterThan(maxRequests);
  for (let at = 0; at < most; at += 48) {
    const some = await Promise.all(Array.from({ length: 48 }, () => webSocket(calm)));
    expect([at, ...new Set(some.map(({ status }) => status))]).toEqual([at, "101"]);
  }
  expect(await get(port, calm)).toMatchObject({ status: 200, text: "serves" });
  expect((await webSocket(calm)).status).toBe("503");
});

it("a site whose visitors ask without end is the one that is refused: others are served meanwhile, and it as soon as they end", async () => {
  await serves("site_1", calm, (_, response) => response.end("serves"));
  let pending = 0;
  await serves("site_2", greedy, (request, response) =>
    request.url === "/" ? pending++ : response.end("serves"),
  );
  const sockets = await flood(maxRequests);
  await vi.waitUntil(() => pending === maxRequests, { timeout: 20_000 });
  const soon = () => get(port, greedy, { path: "/soon" });
  expect([(await soon()).status, await get(port, calm)]).toMatchObject([
    503,
    { status: 200, text: "serves" },
  ]);
  for (const socket of sockets) socket.destroy();
  await vi.waitUntil(async () => (await soon()).status === 200, { timeout: 10_000 });
});

it("one address has so many connections at most, by the real rules: another one, and the host itself, connect meanwhile", async () => {
  const third = Number.parseInt(agentId.slice(0, 2), 16);
  const many = await plugIn(`bi${agentId.slice(0, 6)}0`, `10.204.${third}`);
  closing.push(() => many.unplug());
  const one = await plugIn(`bi${agentId.slice(0, 6)}1`, `10.205.${third}`);
  closing.push(
    () => one.unplug(),
    () => removeFirewall(agentId),
  );
  // No bridge of anybody's.
  const bridges = { siteBridges: [`bth${agentId.slice(0, 6)}`], buildBridge: `btb${agentId.slice(0, 6)}` };
  await ensureFirewall(
    agentId,
    { ...bridges, visitors: { ports: [port], udpPorts: [], maxPerAddress: 200 } },
    [],
    null,
  );
  await serves("site_1", calm, (_, response) => response.end("serves"));
  const holding = await connectFrom(many, 260);
  expect(holding.open).toBe(200);
  expect((await connectFrom(one, 5)).open).toBe(5);
  expect(await get(port, calm)).toMatchObject({ status: 200 });
  holding.end();
  await vi.waitUntil(async () => (await connectFrom(many, 5)).open === 5, { timeout: 20_000 });
});

it("an ingress that a flood takes all memory of starts again by itself: within seconds others are served, and the flood is gone", async () => {
  await engine.removeContainer(containerId);
  await startWith(72);
  await serves("site_1", calm, (_, response) => response.end("serves"));
  await serves("site_2", greedy, () => undefined);
  const before = caddyId();
  const sockets = await flood(900, 24 * 1024);
  await vi.waitUntil(() => Number(docker("inspect", "--format", "{{.RestartCount}}", containerId)) > 0, {
    timeout: 30_000,
  });
  const began = performance.now();
  const answers = () =>
    get(port, calm).then(
      ({ text }) => text,
      () => "",
    );
  await vi.waitUntil(async () => (await answers()) === "serves", { timeout: 20_000 });
  expect(performance.now() - began).toBeLessThan(30_000);
  expect(caddyId()).not.toBe(before);
  // A connection whose first packets were lost in the flood arrives after the restart.
  const open = () => sockets.filter(({ closed }) => !closed).length;
  await vi.waitUntil(() => open() < sockets.length / 10, { timeout: 20_000 });
});
