import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import http, { type IncomingHttpHeaders } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { routeSite } from "../../agent/handlers/route-site.ts";
import { stopSite } from "../../agent/handlers/stop-site.ts";
import type { Host } from "../../agent/host.ts";
import { holderOf } from "../../agent/ingress/holder.ts";
import type { Ingress, Target } from "../../agent/ingress/ingress.ts";
import type { JobRun } from "../../agent/job.ts";
import { namedProxyHeaders } from "../../agent/ingress/caddy.ts";
import { ingressImage } from "../../agent/ingress/container.ts";
import { bundleNode } from "../../scripts/lib/bundle.ts";
import { engine } from "../support/engine.ts";
import { get, startTestIngress, type TestIngress, TestResponder } from "../support/ingress.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const agentId = `test${randomBytes(6).toString("hex")}`;
const host = "shop.localhost";

let port: number;
const folder = temporaryFolder();
let program: string;
let own: TestIngress;
let responder: TestResponder;
let routes: Ingress;
let containerId: string;

const mebibyte = 1024 * 1024;
/** More than is on its way anywhere between app and visitor. */
const long = Buffer.alloc(16 * mebibyte);

/** A version of a site: answers its name, shows its request's headers, echoes WebSockets. */
async function startVersion(name: string) {
  const server = http.createServer((request, response) => {
    if (request.url === "/headers") return response.end(JSON.stringify(request.headers));
    if (request.url === "/long") return response.end(long);
    request.resume().on("end", () => response.end(name));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket) =>
    socket.on("message", (data: Buffer) => socket.send(`${name}: ${data.toString()}`)),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const target: Target = {
    containerId: name,
    address: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
  };
  return {
    target,
    stop() {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Clients that ask one request after the other over kept-alive connections, by turns with each of the methods. */
function load(clients: number, methods: readonly ("GET" | "POST")[]) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: clients });
  const failures: string[] = [];
  const seen = new Map<string, number>();
  const stopping = new AbortController();
  const one = (index: number) =>
    new Promise<void>((resolve) => {
      const request = http.request(
        {
          host: "127.0.0.1",
          port,
          agent,
          method: methods[index % methods.length],
          headers: { Host: host },
        },
        (response) => {
          let text = "";
          response
            .setEncoding("utf8")
            .on("data", (chunk: string) => (text += chunk))
            .on("error", (error) => void failures.push(String(error)))
            .on("close", () => {
              if (response.statusCode !== 200) failures.push(`${response.statusCode} ${text}`);
              else seen.set(text, (seen.get(text) ?? 0) + 1);
              resolve();
            });
        },
      );
      request.on("error", (error) => {
        failures.push(String(error));
        resolve();
      });
      request.end(methods[index % methods.length] === "POST" ? "body" : undefined);
    });
  const loops = Array.from({ length: clients }, async () => {
    for (let index = 0; !stopping.signal.aborted; index++) await one(index);
  });
  const stop = async () => {
    stopping.abort();
    await Promise.all(loops);
    agent.destroy();
    return failures;
  };
  loads.push(stop);
  return { seen, stop };
}

/** Of each test, also of one that fails: it would ask what the next one starts. */
const loads: (() => Promise<unknown>)[] = [];
afterEach(() => Promise.all(loads.splice(0).map((stop) => stop())));

const docker = (...args: string[]) => execFileSync("docker", args, { encoding: "utf8" }).trim();

const caddyId = () => /^(\d+) +caddy$/m.exec(docker("top", containerId, "-eo", "pid,comm"))?.[1];

/** What Caddy has had of processors up to now. */
function processorMs(): number {
  const fields = readFileSync(`/proc/${caddyId()}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** One request over a connection of its own. */
function ask(
  method: string,
  body = "",
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    http
      .request(
        { host: "127.0.0.1", port, method, agent: false, headers: { ...headers, Host: host } },
        (response) => {
          let text = "";
          response
            .setEncoding("utf8")
            .on("data", (chunk: string) => (text += chunk))
            .on("end", () => resolve({ status: response.statusCode ?? 0, text }))
            .on("error", reject);
        },
      )
      .on("error", reject)
      .end(body);
  });
}
const post = (body: string, headers: Record<string, string> = {}) => ask("POST", body, headers);

/** A replica that dies of the first request that it receives. */
async function startDying(containerId: string) {
  const server = http.createServer((_, response) => {
    server.close();
    server.closeAllConnections();
    response.destroy();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    server,
    target: { containerId, address: "127.0.0.1", port: (server.address() as AddressInfo).port },
  };
}

beforeAll(async () => {
  program = join(folder, "responder.mjs");
  await bundleNode("agent/ingress/responder.ts", program);
  own = await startTestIngress(agentId, { program });
  ({ port, responder, containerId } = own);
  routes = responder.openRoutes();
});

afterAll(() => own.stop());

describe("the ingress", () => {
  it("loses no request and no WebSocket over ten swaps under load, and shows each within a moment", async () => {
    let serving = await startVersion("v0");
    const versions = [serving];
    await routes.route("site_1", [host], [serving.target]);
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { Host: host } });
    await once(socket, "open");
    const running = load(8, ["GET", "GET", "POST"]);
    for (let number = 1; number <= 10; number++) {
      const next = await startVersion(`v${number}`);
      versions.push(next);
      await vi.waitUntil(() => running.seen.has(`v${number - 1}`), 10_000);
      await routes.route("site_1", [host], [next.target]);
      await vi.waitUntil(async () => (await get(port, host)).text === `v${number}`, 10_000);
      serving = next;
    }
    expect(await running.stop()).toEqual([]);
    expect(running.seen.size).toBeGreaterThanOrEqual(10);
    socket.send("still there?");
    expect(String((await once(socket, "message"))[0])).toBe("v0: still there?");
    socket.terminate();
    for (const version of versions) version.stop();
    await routes.unroute("site_1");
  });

  it("loses no request while the responder is killed and starts again", async () => {
    const version = await startVersion("steady");
    await routes.route("site_1", [host], [version.target]);
    const running = load(4, ["GET", "POST"]);
    await vi.waitUntil(() => (running.seen.get("steady") ?? 0) > 50, 10_000);
    await responder.kill();
    await responder.run();
    const before = running.seen.get("steady") ?? 0;
    await vi.waitUntil(() => (running.seen.get("steady") ?? 0) > before + 50, { timeout: 20_000 });
    expect(await running.stop()).toEqual([]);
    version.stop();
    await routes.unroute("site_1");
  });

  it("loses no request, with or without a body, while the responder is replaced by another version", async () => {
    const version = await startVersion("steady");
    await routes.route("site_1", [host], [version.target]);
    const running = load(4, ["GET", "POST"]);
    const seen = () => running.seen.get("steady") ?? 0;
    await vi.waitUntil(() => seen() > 50, 10_000);
    const [page, second] = ["There is no site here", "The second version"];
    for (const [before, name] of [
      [page, second],
      [second, page],
    ] as const) {
      // The bundler breaks lines wherever they are too long, also within a text.
      const text = readFileSync(program, "utf8").replaceAll("\\\n", "").replace(before, name);
      writeFileSync(`${program}.new`, text);
      renameSync(`${program}.new`, program);
      const shown = async () => (await get(responder.statusPort, "nobody.localhost")).text;
      await vi.waitUntil(async () => (await shown()).includes(name), 10_000);
    }
    const before = seen();
    await vi.waitUntil(() => seen() > before + 50, 10_000);
    expect(await running.stop()).toEqual([]);
    version.stop();
    await routes.unroute("site_1");
  });

  it("has a POST without a body wait for a container that starts again; one with a body is done once or refused", async () => {
    const gone = await startVersion("gone");
    gone.stop();
    await routes.route("site_1", [host], [gone.target]);
    const done: string[] = [];
    const server = http.createServer((request, response) => {
      request.setEncoding("utf8").on("data", (chunk: string) => done.push(chunk));
      request.on("end", () => response.end("back"));
    });
    const [bare, full] = [post(""), post("pay")];
    await delay(500);
    server.listen(gone.target.port, "127.0.0.1");
    expect(await bare).toEqual({ status: 200, text: "back" });
    // Go ends a body with the first connection that fails, so there may be nothing to send once more.
    const { status } = await full;
    expect([200, 502]).toContain(status);
    expect(done).toEqual(status === 200 ? ["pay"] : []);
    server.closeAllConnections();
    server.close();
    await routes.unroute("site_1");
  });

  it("sends a POST whose container is gone from the network to the one that takes its place", async () => {
    const removed = docker("run", "--detach", "--entrypoint", "sleep", ingressImage, "60");
    const address = docker("inspect", "--format", "{{.NetworkSettings.IPAddress}}", removed);
    docker("rm", "--force", removed);
    const next = await startVersion("next");
    await routes.route("site_1", [host], [{ containerId: removed, address, port: 3000 }]);
    const asking = post("");
    await delay(500);
    await routes.route("site_1", [host], [next.target]);
    expect(await asking).toEqual({ status: 200, text: "next" });
    next.stop();
    await routes.unroute("site_1");
  });

  it("has who asks for a site that starts again wait, though another site has its address by now", async () => {
    const [site, other] = [await startVersion("site"), await startVersion("other")];
    const ended = spawn("sleep", ["3600"]);
    const holder = holderOf(ended.pid ?? 0);
    ended.kill("SIGKILL");
    await once(ended, "exit");
    await routes.route("site_1", [host], [{ ...other.target, containerId: "site", holder }]);
    const asking = [post(""), post(""), post("")];
    await delay(500);
    await routes.readdress([{ ...site.target, holder: holderOf(process.pid) }]);
    for (const answer of await Promise.all(asking)) expect(answer).toEqual({ status: 200, text: "site" });
    for (const version of [site, other]) version.stop();
    await routes.unroute("site_1");
  });

  it.each([
    ["", {}],
    [" of a site with rules", { stickySessions: true, headers: { "X-Own": "yes" } }],
  ])("has a GET%s on which one replica after the other dies wait for what serves next", async (_, rules) => {
    const replicas = [await startDying("first"), await startDying("second")];
    const next = await startVersion("next");
    await routes.route(
      "site_1",
      [host],
      replicas.map(({ target }) => target),
    );
    await routes.rule("site_1", rules);
    const asking = get(port, host);
    await vi.waitUntil(() => replicas.every(({ server }) => !server.listening));
    await delay(500);
    await routes.route("site_1", [host], [next.target]);
    const { status, text, headers } = await asking;
    expect([status, text]).toEqual([200, "next"]);
    if ("headers" in rules) {
      expect(headers["x-own"]).toBe("yes");
      expect(headers["set-cookie"]).toHaveLength(1);
    }
    next.stop();
    await routes.unroute("site_1");
  });

  it.each(["HEAD", "OPTIONS"])(
    "sends a %s, which changes nothing, again when a container dies of it",
    async (method) => {
      const first = await startDying("first");
      const next = await startVersion("next");
      await routes.route("site_1", [host], [first.target]);
      const asking = ask(method);
      await vi.waitUntil(() => !first.server.listening);
      await routes.route("site_1", [host], [next.target]);
      expect(await asking).toEqual({ status: 200, text: method === "HEAD" ? "" : "next" });
      next.stop();
      await routes.unroute("site_1");
    },
  );

  it("does no POST twice while replicas die under load, and refuses few", async () => {
    const received = new Map<string, number>();
    const startReplica = async () => {
      const server = http.createServer((request, response) => {
        const id = String(request.headers["x-id"]);
        received.set(id, (received.get(id) ?? 0) + 1);
        request.resume().on("end", () => setTimeout(() => response.end("done"), 5));
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const target = {
        containerId: "replica",
        address: "127.0.0.1",
        port: (server.address() as AddressInfo).port,
      };
      const die = () => {
        server.close();
        server.closeAllConnections();
      };
      return { target, die };
    };
    const clients = 8;
    const deaths = 10;
    const replicas = [await startReplica(), await startReplica()];
    await routes.route(
      "site_1",
      [host],
      replicas.map(({ target }) => target),
    );
    const refused: string[] = [];
    let sent = 0;
    const stopping = new AbortController();
    const loops = Array.from({ length: clients }, async () => {
      while (!stopping.signal.aborted) {
        const id = String(sent++);
        const { status } = await post("", { "X-Id": id });
        if (status !== 200) refused.push(id);
        else expect(received.get(id)).toBe(1);
      }
    });
    for (let death = 0; death < deaths; death++) {
      const before = sent;
      await vi.waitUntil(() => sent > before + 100, { timeout: 10_000 });
      replicas.shift()?.die();
      await vi.waitUntil(() => sent > before + 200, { timeout: 10_000 });
      replicas.push(await startReplica());
      await routes.route(
        "site_1",
        [host],
        replicas.map(({ target }) => target),
      );
    }
    stopping.abort();
    await Promise.all(loops);
    expect([...received].filter(([, times]) => times > 1)).toEqual([]);
    // What a replica may have had when it died cannot be asked for again; whatever met no connection can.
    expect(refused.length).toBeLessThanOrEqual(clients * deaths);
    for (const replica of replicas) replica.die();
    await routes.unroute("site_1");
  });

  it("serves visitors while 300 clients send or take next to nothing, and lets those go that never ask", async () => {
    const version = await startVersion("steady");
    await routes.route("site_1", [host], [version.target]);
    const hundred = (begin: (socket: Socket) => void) =>
      Array.from({ length: 100 }, () => {
        const socket = connect(port, "127.0.0.1").on("error", () => undefined);
        begin(socket);
        return socket;
      });
    /** A byte a second, after what it begins with. */
    const slowly = (text: string) => (socket: Socket) => {
      socket.resume().write(text);
      const timer = setInterval(() => socket.write("x"), 1000);
      socket.on("close", () => clearInterval(timer));
    };
    const head = `Host: ${host}\r\n`;
    const began = performance.now();
    const asking = hundred(slowly(`GET / HTTP/1.1\r\n${head}`));
    const sending = hundred(slowly(`POST / HTTP/1.1\r\n${head}Content-Length: 9999\r\n\r\n`));
    const taking = hundred((socket) => socket.pause().write(`GET /long HTTP/1.1\r\n${head}\r\n`));
    const waits: number[] = [];
    while (asking.some(({ closed }) => !closed)) {
      const asked = performance.now();
      expect(await get(port, host)).toMatchObject({ status: 200, text: "steady" });
      waits.push(performance.now() - asked);
      await delay(50);
    }
    expect(performance.now() - began).toBeLessThan(60_000);
    // The clients are begun in this very process, while the first visitors wait.
    expect(waits.toSorted((one, other) => one - other).at(-10)).toBeLessThan(1000);
    for (const socket of [...sending, ...taking]) socket.destroy();
    version.stop();
    await routes.unroute("site_1");
  });

  it.each(["takes no connection", "takes one at times"])(
    "serves a site as fast beside 400 requests a second to one that %s as beside one that is stopped",
    async (how) => {
      const [version, neighbour] = [await startVersion("steady"), await startVersion("neighbour")];
      await routes.route("site_1", [host], [version.target]);
      const { target } = neighbour;
      neighbour.stop();
      /** What a visitor waits while the neighbour's ask, and what Caddy computes meanwhile. */
      const beside = async () => {
        const before = processorMs();
        const agent = new http.Agent({ keepAlive: true });
        const ask = () =>
          http
            .get({ host: "127.0.0.1", port, agent, headers: { Host: "neighbour.localhost" } }, (response) =>
              response.resume(),
            )
            .on("error", () => undefined);
        const timer = setInterval(() => Array.from({ length: 10 }, ask), 25);
        const until = performance.now() + 4000;
        const waits: number[] = [];
        const blink = http.createServer((_, response) => response.end());
        for (let round = 0; performance.now() < until; round++) {
          if (how.includes("times") && round % 10 === 0)
            if (blink.listening) blink.close();
            else blink.listen(target.port, "127.0.0.1");
          const asked = performance.now();
          expect((await get(port, host)).text).toBe("steady");
          waits.push(performance.now() - asked);
          await delay(20);
        }
        clearInterval(timer);
        agent.destroy();
        blink.close();
        const medianMs = waits.toSorted((one, other) => one - other)[waits.length >> 1] ?? Infinity;
        return { medianMs, processorMs: processorMs() - before };
      };
      await routes.park("site_2", ["neighbour.localhost"]);
      const stopped = await beside();
      await routes.route("site_2", ["neighbour.localhost"], [target]);
      const dead = await beside();
      // Where it answers at times, there is more to do than to show a page.
      expect(dead.processorMs).toBeLessThan((how.includes("times") ? 3 : 2) * stopped.processorMs);
      expect(dead.medianMs).toBeLessThan(4 * stopped.medianMs + 25);
      version.stop();
      await routes.unroute("site_1");
      await routes.unroute("site_2");
    },
  );

  it.each([
    ["one header of 9 MB", 300, [["X-Long", "a".repeat(9 * mebibyte)]]],
    ["thousands of headers", 1200, Array.from({ length: 3200 }, (_, index) => [`h${index}`, ""])],
  ])(
    "keeps its memory, and serves others, while visitors do not take answers of %s",
    async (_, visitors, headers) => {
      const version = await startVersion("steady");
      await routes.route("site_1", [host], [version.target]);
      const app = http.createServer({ maxHeaderSize: mebibyte }, (request, response) =>
        response.writeHead(200, headers.flat()).end(long),
      );
      await once(app.listen(0, "127.0.0.1"), "listening");
      const target = { ...version.target, port: (app.address() as AddressInfo).port };
      await routes.route("site_2", ["greedy.localhost"], [target]);
      const residentMb = () =>
        Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${caddyId()}/status`, "utf8"))?.[1]) / 1024;
      const before = caddyId();
      const sockets = Array.from({ length: visitors }, () => {
        const socket = connect(port, "127.0.0.1").on("error", () => undefined);
        const more = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
        const asked = more.length > mebibyte ? "" : more;
        socket.pause().write(`GET / HTTP/1.1\r\nHost: greedy.localhost\r\n${asked}\r\n`);
        return socket;
      });
      let most = 0;
      for (let round = 0; round < 20; round++) {
        expect(await get(port, host)).toMatchObject({ status: 200, text: "steady" });
        most = Math.max(most, residentMb());
        await delay(100);
      }
      // Go gives back before the kernel would end it.
      const memoryMb =
        Number(docker("inspect", "--format", "{{.HostConfig.Memory}}", containerId)) / mebibyte;
      expect(most).toBeLessThan(0.95 * memoryMb);
      expect(caddyId()).toBe(before);
      for (const socket of sockets) socket.destroy();
      app.closeAllConnections();
      app.close();
      version.stop();
      await routes.unroute("site_1");
      await routes.unroute("site_2");
    },
  );

  it("says that a site is stopped, and that there is none", async () => {
    await routes.park("site_1", [host]);
    expect(await get(port, host)).toMatchObject({ status: 503, text: expect.stringContaining("stopped") });
    await routes.unroute("site_1");
    expect((await get(port, host)).status).toBe(404);
  });

  it("says that a site is suspended and where to pay, under all its names, until it is back", async () => {
    const version = await startVersion("back");
    await routes.route("site_1", [host], [version.target]);
    const on = { agentId, engine, ingress: routes } as unknown as Host;
    const payUrl = `https://berth.example/invoice/inv_1?a="><script>alert(1)</script>&b='`;
    const notice = { reason: "suspended", payUrl } as const;
    await stopSite(on, { siteId: "site_001", hostnames: [host], notice }, {} as JobRun);
    await routes.unroute("site_1");
    const page = await get(port, host);
    expect(page).toMatchObject({ status: 503, text: expect.stringContaining("suspended") });
    expect(page.headers["cache-control"]).toBe("no-store");
    expect(page.text).not.toContain("<script>");
    const [, link = ""] = /<a href="([^"]*)"/.exec(page.text) ?? [];
    expect(link.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))).toBe(payUrl);
    // An agent that starts anew, and other names, keep it.
    routes = responder.openRoutes();
    await routeSite(
      { ...on, ingress: routes },
      { siteId: "site_001", hostnames: ["own.localhost"] },
      {} as JobRun,
    );
    expect((await get(port, "own.localhost")).text).toContain("suspended");
    await routes.route("site_001", [host], [version.target]);
    expect(await get(port, host)).toMatchObject({ status: 200, text: "back" });
    await stopSite({ ...on, ingress: routes }, { siteId: "site_001", hostnames: [host] }, {} as JobRun);
    expect((await get(port, host)).text).toContain("stopped");
    await routes.unroute("site_001");
    version.stop();
  });

  it("keeps its inside from visitors", async () => {
    const answer = await get(port, "127.0.0.1", { path: "/.berth/version" });
    expect(answer).toMatchObject({ status: 404, text: expect.stringContaining("no site") });
  });

  it("refuses at once what is no host name", async () => {
    const started = performance.now();
    for (const name of [
      "a..b",
      "-a",
      "a-",
      "[::1]",
      `${"a".repeat(60)}.`.repeat(5),
      `${"a.".repeat(120)}b`,
      "a_b",
    ])
      expect([name, (await get(port, name)).status]).toEqual([name, 400]);
    // Each would be asked for three seconds.
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  it("tells the app who asks, and lets nobody pretend", async () => {
    const version = await startVersion("mirror");
    await routes.route("site_1", [host], [version.target]);
    const pretended = [
      "CF-Connecting-IP CF-Connecting-IPv6 CF-Pseudo-IPv4 CF-Visitor True-Client-IP X-Client-IP Client-IP",
      "X-Cluster-Client-IP Fastly-Client-IP Fly-Client-IP X-Azure-ClientIP WL-Proxy-Client-IP",
      "Proxy-Client-IP DO-Connecting-IP X-Nf-Client-Connection-IP X-ProxyUser-Ip X-Appengine-User-IP",
      "Ali-CDN-Real-IP X-Originating-IP X-Remote-IP X-Remote-Addr X-Remote-User Forwarded Forwarded-For",
      "X-Forwarded X-Forwarded-Port X-Forwarded-Prefix X-Forwarded-Scheme X-Forwarded-Ssl",
      "X-Forwarded-Server X-Forwarded-User X-Forwarded-Client-Cert X-Client-Cert X-Original-Forwarded-For",
      "X-Original-URL X-Original-Host X-Rewrite-URL X-Host X-Url-Scheme X-Envoy-External-Address",
      "X-Envoy-Original-Path X-ARR-SSL Front-End-Https Proxy HTTP2-Settings X_Forwarded_For X-Forwarded_For",
      "x_real_ip Client_IP REMOTE_ADDR",
      "X-Forward-Host Forwarded-Host Cloudfront-Forwarded-Proto Cloudfront-Viewer-Address X-Real-Port",
      "X-Remote-Groups Remote-User X-Http-Host-Override X-Scheme Coming-From X-Coming-From CF-Pseudo-IPv6",
      "Fastly-SSL Fly-Region X-Appengine-Country X-Azure-Ref X-Vercel-Ip-Country X-Src-IP X-Envoy-Peer",
      "Ssl-Client-Cert-Chain X-SSL-Cipher X-ProxyUserIp X-Rewrite-Host X-Original-Method X-Arr-ClientCert",
    ].flatMap((line) => line.split(" "));
    const headers = {
      ...Object.fromEntries(pretended.map((name) => [name, "6.6.6.6"])),
      "X-Forwarded-For": "6.6.6.6",
      "X-Forwarded-Host": "6.6.6.6",
      "X-Forwarded-Proto": "https",
      "X-Real-IP": "6.6.6.6",
      "X-Own": "kept",
    };
    const { text } = await get(port, host, { path: "/headers", headers });
    const passed = JSON.parse(text) as Record<string, string>;
    expect(Object.entries(passed).filter(([, value]) => value.includes("6.6.6.6"))).toEqual([]);
    expect(passed).toMatchObject({
      host,
      "x-own": "kept",
      "x-real-ip": "127.0.0.1",
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-host": host,
      "x-forwarded-proto": "http",
    });
    for (const name of namedProxyHeaders) {
      // As Go writes it, by which the ingress finds it.
      expect(name).toMatch(/^(?:[A-Z][a-z0-9]*)(?:-[A-Z][a-z0-9]*)*$/);
      const alone = { path: "/headers", headers: { [name.toLowerCase()]: "6.6.6.6", "X-Own": "kept" } };
      const met = JSON.parse((await get(port, host, alone)).text) as Record<string, string>;
      expect([name, met[name.toLowerCase()], met["x-own"]]).toEqual([name, undefined, "kept"]);
    }
    version.stop();
    await routes.unroute("site_1");
  });

  it("tells the app who asks also where the visitor names it in Connection, which would have a proxy remove it", async () => {
    const app = http.createServer((request, response) => response.end(JSON.stringify(request.headers)));
    const ofSockets: IncomingHttpHeaders[] = [];
    new WebSocketServer({ server: app }).on("connection", (socket, { headers }) => {
      ofSockets.push(headers);
      socket.close();
    });
    await once(app.listen(0, "127.0.0.1"), "listening");
    const target = { containerId: "app", address: "127.0.0.1", port: (app.address() as AddressInfo).port };
    const told = {
      "x-real-ip": "127.0.0.1",
      "x-forwarded-for": "127.0.0.1",
      "x-request-id": expect.any(String),
    };
    const named = "X-Real-Ip, X-Forwarded-For, X-Request-Id";
    for (const rules of [{}, { headers: { "X-Rule": "yes" } }]) {
      await routes.rule("site_1", rules);
      await routes.route("site_1", [host], [target]);
      const { text } = await get(port, host, { headers: { Connection: `close, ${named}` } });
      expect(JSON.parse(text)).toMatchObject(told);
      const headers = { Host: host, Connection: `Upgrade, ${named}` };
      await once(new WebSocket(`ws://127.0.0.1:${port}`, { headers }), "close");
      expect(ofSockets.pop()).toMatchObject(told);
    }
    app.close();
    await routes.unroute("site_1");
  });

  it.each(["h2c", "H2C", "websocket, h2c"])("has no app change to HTTP/2 within (%s)", async (upgrade) => {
    const app = http.createServer((request, response) => response.end(request.headers.upgrade ?? "plain"));
    app.on("upgrade", (_, socket) =>
      socket.end("HTTP/1.1 101 \r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"),
    );
    await once(app.listen(0, "127.0.0.1"), "listening");
    const target = { containerId: "app", address: "127.0.0.1", port: (app.address() as AddressInfo).port };
    await routes.route("site_1", [host], [target]);
    const headers = { Connection: "Upgrade, HTTP2-Settings", Upgrade: upgrade, "HTTP2-Settings": "AAMAAABk" };
    expect(await get(port, host, { headers })).toMatchObject({ status: 200, text: "plain" });
    app.close();
    await routes.unroute("site_1");
  });

  it("does not pass on two requests for one", async () => {
    const version = await startVersion("one");
    await routes.route("site_1", [host], [version.target]);
    const socket = connect(port, "127.0.0.1");
    const smuggled = "0\r\n\r\nGET /headers HTTP/1.1\r\nHost: x\r\n\r\n";
    socket.write(
      `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${smuggled.length}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${smuggled}`,
    );
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    await once(socket, "close");
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    version.stop();
    await routes.unroute("site_1");
  });
});
