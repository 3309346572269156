import { randomBytes } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { createEngine } from "../../agent/docker/client.ts";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import { ingressContainer, startIngress } from "../../agent/ingress/container.ts";
import type { Ingress, Target } from "../../agent/ingress/ingress.ts";
import { peersFileOf } from "../../agent/ingress/peers.ts";
import { AccessLog } from "../../agent/running/access-log.ts";
import { openRequestRecords, type RequestRecords } from "../../agent/running/request-records.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { answers, get, TestResponder } from "../support/ingress.ts";
import { newAuthority, peersOf, writePeers } from "../support/peers.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const engine = createEngine({ socketPath: "/var/run/docker.sock" });
const name = "shop.localhost";
const folder = temporaryFolder();

/** The ingress of one host, and the copy of the site there. */
type TestHost = {
  id: string;
  deploymentId: string;
  copy: Target[];
  port: number;
  responder: TestResponder;
  routes: Ingress;
  requests: RequestRecords;
  log: AccessLog;
  stop(): Promise<void>;
};

async function startHost(id: string, deploymentId: string): Promise<TestHost> {
  const agentId = `test${randomBytes(6).toString("hex")}`;
  const responder = await TestResponder.start();
  const routes = responder.openRoutes();
  const port = await freePort();
  const settings = {
    address: "127.0.0.1",
    port,
    responderPort: responder.dnsPort,
    statusPort: responder.statusPort,
    tls: null,
    // So that a test can say where a visitor comes from.
    trustedProxies: ["127.0.0.1/32"],
  };
  const containerId = await startIngress(engine, ingressContainer(agentId, settings).spec);
  await answers(port, "unknown.localhost", 404);
  const server = http.createServer((request, response) => {
    if (request.url === "/events") {
      response.writeHead(200, { "Content-Type": "text/event-stream" }).write("data: first\n\n");
      const timer = setInterval(() => response.write("data: more\n\n"), 100);
      return response.on("close", () => clearInterval(timer));
    }
    let received = 0;
    request.on("data", (chunk: Buffer) => (received += chunk.length));
    request.on("end", () => response.end(JSON.stringify({ id, received, headers: request.headers })));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket) =>
    socket.on("message", (data: Buffer) => socket.send(`${id}: ${data.toString()}`)),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const own = { containerId: id, address: "127.0.0.1", port: (server.address() as AddressInfo).port };
  const copy = [{ ...own, deploymentId }];
  await routes.route("site_1", [name], copy);
  const requests = openRequestRecords(join(folder, `${id}.db`));
  return {
    id,
    deploymentId,
    copy,
    port,
    responder,
    routes,
    requests,
    log: new AccessLog({ engine, ingress: routes, requests, agentId }),
    async stop() {
      requests.close();
      server.closeAllConnections();
      server.close();
      await engine.removeContainer(containerId);
      await engine.removeVolume(accessLogVolume(agentId));
      await responder.stop();
    },
  };
}

let old: TestHost;
let now: TestHost;
let forward: Parameters<Ingress["forward"]>[0];

beforeAll(async () => {
  [old, now] = await Promise.all([
    startHost("host_a", `dep_0${"a".repeat(26)}`),
    startHost("host_b", `dep_0${"b".repeat(26)}`),
  ]);
  const authority = await newAuthority();
  const port = await freePort();
  writePeers(peersFileOf(old.responder.file), await peersOf(authority, old.id, port));
  writePeers(
    peersFileOf(now.responder.file),
    await peersOf(authority, now.id, port, { from: [old.id], sites: ["site_1"] }),
  );
  forward = {
    site_1: {
      hostnames: [name, "foreign.localhost", "neighbour.localhost"],
      hostId: now.id,
      address: "127.0.0.1",
      port,
    },
  };
});

afterAll(() => Promise.all([old.stop(), now.stop()]));

type Told = { id: string; received: number; headers: http.IncomingHttpHeaders };

/** Asks the old host 50 times a second until told to stop. */
function ask() {
  const over = new AbortController();
  const asked: Promise<string>[] = [];
  const one = async (method: string): Promise<string> => {
    const request = http.request({ host: "127.0.0.1", port: old.port, method, headers: { Host: name } });
    request.end(method === "POST" ? "body" : undefined);
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    let text = "";
    for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
    return response.statusCode === 200 ? (JSON.parse(text) as Told).id : `${response.statusCode}: ${text}`;
  };
  const loop = (async () => {
    for (let index = 0; !over.signal.aborted; index++) {
      asked.push(one(index % 2 === 0 ? "GET" : "POST").catch(String));
      await delay(20);
    }
  })();
  return {
    more: (count: number) => {
      const enough = asked.length + count;
      return vi.waitUntil(() => asked.length >= enough, { timeout: 30_000 });
    },
    async stop() {
      over.abort();
      await loop;
      return Promise.all(asked);
    },
  };
}

/** Sends some megabytes in pieces, the next once `goOn` resolves. */
async function upload(goOn: (piece: number) => Promise<void>): Promise<Told> {
  const request = http.request({
    host: "127.0.0.1",
    port: old.port,
    method: "POST",
    headers: { Host: name },
  });
  const answered = once(request, "response");
  for (let piece = 0; piece < 8; piece++) {
    request.write(Buffer.alloc(1024 * 1024, "x"));
    await goOn(piece);
  }
  request.end();
  const [response] = (await answered) as [http.IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
  return JSON.parse(text) as Told;
}

async function openSocket(): Promise<(text: string) => Promise<string>> {
  const socket = new WebSocket(`ws://127.0.0.1:${old.port}`, { headers: { Host: name } });
  await once(socket, "open");
  return async (text) => {
    socket.send(text);
    return String((await once(socket, "message"))[0]);
  };
}

const isForwarded = () =>
  vi.waitUntil(async () => (JSON.parse((await get(old.port, name)).text) as Told).id === now.id, {
    timeout: 10_000,
  });

it("a move fails no request, upload, WebSocket or event stream at the old host, whatever it ends in there", async () => {
  const load = ask();
  const socketOfBefore = await openSocket();
  let move = () => undefined as void;
  const moved = new Promise<void>((resolve) => (move = resolve));
  const uploadOfBefore = upload((piece) => (piece === 3 ? moved : Promise.resolve()));
  await load.more(50);

  await old.routes.forward(forward);
  await isForwarded();
  const socket = await openSocket();
  const events = http.get({ host: "127.0.0.1", port: old.port, path: "/events", headers: { Host: name } });
  const [stream] = (await once(events, "response")) as [http.IncomingMessage];
  let streamed = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => (streamed += chunk));
  const uploaded = await upload(() => delay(50));
  expect([uploaded.id, uploaded.received]).toEqual([now.id, 8 * 1024 * 1024]);
  move();
  const begun = await uploadOfBefore;
  expect([begun.id, begun.received]).toEqual([old.id, 8 * 1024 * 1024]);

  // An agent of the old host that starts anew goes on with it.
  old.routes = old.responder.openRoutes();
  await load.more(100);
  const all = await load.stop();
  expect(all.filter((one) => one !== old.id && one !== now.id)).toEqual([]);
  expect(all.filter((one) => one === now.id).length).toBeGreaterThanOrEqual(100);
  expect(await socketOfBefore("one")).toBe(`${old.id}: one`);
  expect(await socket("one")).toBe(`${now.id}: one`);

  // The time is over: what is open goes on, and nothing new is passed on.
  await old.routes.unroute("site_1");
  expect((await get(old.port, name)).status).toBe(404);
  expect(await socket("two")).toBe(`${now.id}: two`);
  const length = streamed.length;
  await vi.waitUntil(() => streamed.length > length);
  expect(stream.complete).toBe(false);
  events.destroy();
});

it("while the new host takes nothing, the copy on the old one answers, and then the new one again", async () => {
  await old.routes.route("site_1", [name], old.copy);
  await old.routes.forward(forward);
  await isForwarded();
  await now.responder.kill();
  const ids = new Set<string>();
  for (let asked = 0; !ids.has(old.id); asked++) {
    const { status, text } = await get(old.port, name);
    expect([asked, status]).toEqual([asked, 200]);
    ids.add((JSON.parse(text) as Told).id);
  }
  await now.responder.run();
  await isForwarded();
});

it("the new host decides, knows the visitor as the old one met him, and has the request in its log alone", async () => {
  await old.routes.route("site_1", [name], []);
  await old.routes.forward(forward);
  await now.routes.rule("site_1", { allow: ["203.0.113.7"], headers: { "X-Own": "of the new host" } });
  const visitor = { "X-Forwarded-For": "6.6.6.6, 203.0.113.7", "X-Forwarded-Proto": "https" };
  const asVisitor = (headers: Record<string, string>, hostname = name) =>
    get(old.port, hostname, { path: "/?one", headers });
  await vi.waitUntil(async () => (await asVisitor(visitor)).status === 200, { timeout: 10_000 });
  const answer = await asVisitor(visitor);
  expect(answer.headers["x-own"]).toBe("of the new host");
  expect((JSON.parse(answer.text) as Told).headers).toMatchObject({
    "x-forwarded-for": "203.0.113.7",
    "x-real-ip": "203.0.113.7",
    "x-forwarded-proto": "https",
    "x-forwarded-host": name,
    host: name,
  });
  expect((await asVisitor({ "X-Forwarded-For": "203.0.113.8" })).status).toBe(403);
  // Names that are passed on and are none of the new host's, or of a site that has not come from another.
  expect((await asVisitor(visitor, "foreign.localhost")).status).toBe(404);
  await now.routes.route("site_2", ["neighbour.localhost"], now.routes.current("site_1") as Target[]);
  expect((await get(now.port, "neighbour.localhost")).status).toBe(200);
  expect((await asVisitor(visitor, "neighbour.localhost")).status).toBe(502);

  const socket = new WebSocket(`ws://127.0.0.1:${old.port}/socket`, { headers: { Host: name, ...visitor } });
  await once(socket, "open");
  socket.close();
  await once(socket, "close");
  const { signal } = new AbortController();
  await vi.waitUntil(
    async () => {
      await now.log.look(signal);
      return now.requests.before("site_1", { path: "/socket" }, null, 1).length === 1;
    },
    { timeout: 10_000 },
  );
  expect(now.requests.before("site_1", { path: "/socket" }, null, 1)).toMatchObject([
    { status: 101, address: "203.0.113.7", deploymentId: now.deploymentId },
  ]);
  expect(now.requests.before("site_1", { status: "403" }, null, 1)).toMatchObject([
    { address: "203.0.113.8" },
  ]);
  await old.log.look(signal);
  expect(old.requests.before("site_1", { address: "203.0.113.7" }, null, 10)).toEqual([]);
});
