import { randomBytes, scryptSync } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { Ingress, Target } from "../../agent/ingress/ingress.ts";
import { AccessLog } from "../../agent/running/access-log.ts";
import { openRequestRecords } from "../../agent/running/request-records.ts";
import { engine } from "../support/engine.ts";
import { get, startTestIngress, type TestIngress, TestResponder } from "../support/ingress.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const agentId = `test${randomBytes(6).toString("hex")}`;
const host = "shop.localhost";
const text = "All work and no play makes a dull answer. ".repeat(100);

let port: number;
let own: TestIngress;
let responder: TestResponder;
let routes: Ingress;

type App = { target: Target; server: http.Server; received: () => number };
const apps: App[] = [];

/** A version of a site that tells what it was asked. */
async function startApp(name: string): Promise<App> {
  let received = 0;
  const server = http.createServer((request, response) => {
    if (request.url === "/text") {
      response.setHeader("ETag", '"one"').setHeader("Content-Type", "text/html; charset=utf-8");
      if (request.headers["if-none-match"] === '"one"') return response.writeHead(304).end();
      if (request.headers.range === "bytes=0-999")
        return response
          .writeHead(206, { "Content-Range": `bytes 0-999/${text.length}` })
          .end(text.slice(0, 1000));
      return response.setHeader("Content-Length", text.length).end(text);
    }
    if (request.url === "/image") return response.setHeader("Content-Type", "image/png").end(text);
    if (request.url === "/zipped")
      return response.setHeader("Content-Type", "text/html").setHeader("Content-Encoding", "x-own").end(text);
    if (request.url === "/early") {
      response.writeEarlyHints({ link: "</style.css>; rel=preload; as=style" });
      return response.setHeader("Set-Cookie", "own=yes").end();
    }
    if (request.url === "/silent") {
      response.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
      return;
    }
    if (request.url === "/events") {
      response.setHeader("Content-Type", "text/event-stream").write("data: first\n\n");
      const timer = setInterval(() => response.write("data: more\n\n"), 50);
      response.on("close", () => clearInterval(timer));
      return;
    }
    request.on("data", (chunk: Buffer) => (received += chunk.length));
    request.on("end", () => {
      response.setHeader("X-Frame-Options", "ALLOWALL").setHeader("Content-Type", "application/json");
      response.end(
        JSON.stringify({ name, url: request.url, method: request.method, headers: request.headers }),
      );
    });
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket) =>
    socket.on("message", (data: Buffer) => socket.send(`${name}: ${data.toString()}`)),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const target = { containerId: name, address: "127.0.0.1", port: (server.address() as AddressInfo).port };
  const app = { target, server, received: () => received };
  apps.push(app);
  return app;
}

type Told = { name: string; url: string; method: string; headers: http.IncomingHttpHeaders };
const told = async (path: string, headers: Record<string, string> = {}, name = host): Promise<Told> =>
  JSON.parse((await get(port, name, { path, headers })).text) as Told;

const basic = (username: string, password: string) => ({
  Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
});

function hashOf(password: string): string {
  const salt = randomBytes(16);
  const key = scryptSync(password, salt, 32, { N: 4096, r: 8, p: 1 });
  return `scrypt$4096$8$1$${salt.toString("base64url")}$${key.toString("base64url")}`;
}

beforeAll(async () => {
  // This very machine is trusted, so that a test can say where a visitor comes from.
  own = await startTestIngress(agentId, { trustedProxies: ["127.0.0.1/32"] });
  ({ port, responder } = own);
  routes = responder.openRoutes();
});

afterEach(async () => {
  await routes.unroute("site_1");
  for (const { server } of apps.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

afterAll(() => own.stop());

it("redirects and rewrites with path and query kept, and to no other address than was set", async () => {
  const { target } = await startApp("app");
  await routes.route("site_1", [host], [target]);
  await routes.rule("site_1", {
    redirects: [
      { from: "/old", to: "/new?from=old", code: 301 },
      { from: "/blog", match: "prefix", to: "https://blog.example/posts" },
      { from: "/go", match: "prefix", to: "/" },
    ],
    rewrites: [{ from: "/api", match: "prefix", to: "/v1" }],
  });
  const location = async (path: string) => {
    const { status, headers } = await get(port, host, { path });
    return [status, headers.location];
  };
  expect(await location("/old?a=1")).toEqual([301, "/new?from=old&a=1"]);
  expect(await location("/blog/2026/a%20b?c=%2F")).toEqual([
    308,
    "https://blog.example/posts/2026/a%20b?c=%2F",
  ]);
  expect(await location("/blog")).toEqual([308, "https://blog.example/posts"]);
  expect((await told("/blogger")).url).toBe("/blogger");
  for (const path of ["/go//evil.example", "/go/\\evil.example", "/go///evil.example"])
    expect((await location(path))[1]).toMatch(/^\/(?:%5C)?evil\.example$/);
  expect((await told("/api/users/a%3Fb%20c?d=%3F%2F&e")).url).toBe("/v1/users/a%3Fb%20c?d=%3F%2F&e");
  // By both ways: without a body, and with one.
  for (const headers of [{}, { "Content-Length": "0" }])
    expect((await told("/api/group%2Fproject/$1?d=$1", headers)).url).toBe("/v1/group%2Fproject/$1?d=$1");
  expect((await told("/api?x={http.request.host}")).url).toBe("/v1?x={http.request.host}");
  expect((await told("/other?q")).url).toBe("/other?q");
});

it("an app gets an address that is not escaped as the visitor wrote it, with and without rules", async () => {
  const app = createServer((socket) =>
    socket
      .setEncoding("latin1")
      .on("data", (request: string) =>
        socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${request.split("\r\n")[0]}`, "latin1"),
      ),
  );
  await once(app.listen(0, "127.0.0.1"), "listening");
  const target = { containerId: "a", address: "127.0.0.1", port: (app.address() as AddressInfo).port };
  await routes.route("site_1", [host], [target]);
  const ask = async (path: string) => {
    const socket = connect(port, "127.0.0.1").setEncoding("utf8");
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    let answer = "";
    socket.on("data", (data: string) => (answer += data));
    await once(socket, "close");
    return answer;
  };
  const rules = { headers: { "X-Own": "yes" }, rewrites: [{ from: "/search", to: "/find" }] };
  for (const [own, path] of [
    [{}, "/search"],
    [rules, "/find"],
  ] as const) {
    await routes.rule("site_1", own);
    expect(await ask("/search?q=größe&%C3%B6")).toContain(`GET ${path}?q=größe&%C3%B6 HTTP/1.1`);
  }
  app.close();
});

it("passes on the visitor as he was met, through both servers", async () => {
  const { target } = await startApp("app");
  await routes.route("site_1", [host], [target]);
  const plain = await told("/", { "X-Forwarded-For": "6.6.6.6, 203.0.113.7", "X-Forwarded-Proto": "https" });
  await routes.rule("site_1", { headers: { "X-Own": "yes" } });
  const ruled = await told("/", { "X-Forwarded-For": "6.6.6.6, 203.0.113.7", "X-Forwarded-Proto": "https" });
  for (const { headers } of [plain, ruled])
    expect(headers).toMatchObject({
      host,
      "x-forwarded-for": "203.0.113.7",
      "x-real-ip": "203.0.113.7",
      "x-forwarded-proto": "https",
      "x-forwarded-host": host,
    });
  expect(Object.keys(ruled.headers).filter((name) => name.startsWith("berth-"))).toEqual([]);
});

it("sends other names to the primary one, and http to https", async () => {
  const { target } = await startApp("app");
  await routes.route("site_1", [host, "www.shop.localhost"], [target]);
  await routes.rule("site_1", { primaryDomain: "www.shop.localhost" });
  const { status, headers } = await get(port, `${host}:8080`, { path: "/a?b" });
  expect([status, headers.location]).toEqual([308, "http://www.shop.localhost:8080/a?b"]);
  expect((await told("/a", {}, "www.shop.localhost")).url).toBe("/a");
  // A name that is the site's no more keeps nobody from it.
  await routes.tell("site_1", { hostnames: [host] });
  expect((await told("/a")).url).toBe("/a");
  await routes.rule("site_1", {
    httpsOnly: true,
    hsts: { maxAgeSeconds: 31_536_000, includeSubdomains: true },
  });
  const unsafe = await get(port, host, { path: "/a?b" });
  expect([unsafe.status, unsafe.headers.location]).toEqual([308, `https://${host}/a?b`]);
  const safe = await get(port, host, { headers: { "X-Forwarded-Proto": "https" } });
  expect([safe.status, safe.headers["strict-transport-security"]]).toEqual([
    200,
    "max-age=31536000; includeSubDomains",
  ]);
});

it("asks for a password, tells the app nothing of it, and lets nobody guess on", async () => {
  const { target } = await startApp("app");
  await routes.route("site_1", [host], [target]);
  await routes.rule("site_1", { basicAuth: { username: "team", hash: hashOf("correct horse") } });
  const refused = await get(port, host);
  expect([refused.status, refused.headers["www-authenticate"]]).toEqual([
    401,
    `Basic realm="${host}", charset="UTF-8"`,
  ]);
  const seen = await told("/", basic("team", "correct horse"));
  expect([seen.name, seen.headers.authorization]).toEqual(["app", undefined]);
  const guesser = { "X-Forwarded-For": "203.0.113.66" };
  const statuses: number[] = [];
  for (let guess = 0; guess < 12; guess++)
    statuses.push(
      (await get(port, host, { headers: { ...guesser, ...basic("team", `wrong ${guess}`) } })).status,
    );
  expect(statuses).toEqual([...Array<number>(10).fill(401), 429, 429]);
  // Who knows it is not locked out by others, and from there nobody gets in.
  expect((await told("/", basic("team", "correct horse"))).name).toBe("app");
  const late = await get(port, host, { headers: { ...guesser, ...basic("team", "correct horse") } });
  expect(late.status).toBe(429);
});

it("is open to the listed networks only, of IPv4 and IPv6", async () => {
  const { target } = await startApp("app");
  await routes.route("site_1", [host], [target]);
  await routes.rule("site_1", { allow: ["203.0.113.0/24", "2001:db8::/32"] });
  const from = async (address: string) =>
    (await get(port, host, { headers: { "X-Forwarded-For": address } })).status;
  expect(await from("203.0.113.9")).toBe(200);
  expect(await from("2001:db8::7")).toBe(200);
  for (const address of ["203.0.114.1", "2001:db9::1", "203.0.113.9, 198.51.100.1", "nobody"])
    expect(await from(address)).toBe(403);
});

it("sets headers in place of the app's, shows an escaped maintenance page, and limits bodies announced or not", async () => {
  const app = await startApp("app");
  await routes.route("site_1", [host], [app.target]);
  await routes.rule("site_1", {
    headers: { "X-Frame-Options": "DENY", "X-Curly": "{http.request.host} {env.HOME}" },
    maxBodyMb: 1,
  });
  const { headers } = await get(port, host);
  expect(headers).toMatchObject({ "x-frame-options": "DENY", "x-curly": "{http.request.host} {env.HOME}" });
  const send = (bytes: number, isAnnounced: boolean) =>
    new Promise<number>((resolve, reject) => {
      const request = http.request(
        {
          host: "127.0.0.1",
          port,
          method: "POST",
          agent: false,
          headers: { Host: host, ...(isAnnounced && { "Content-Length": bytes }) },
        },
        (response) => resolve(response.resume().statusCode ?? 0),
      );
      request.on("error", reject).end(Buffer.alloc(bytes));
    });
  expect(await send(1024 * 1024, true)).toBe(200);
  expect(await send(1024 * 1024 + 1, true)).toBe(413);
  expect(await send(1024 * 1024, false)).toBe(200);
  expect(await send(1024 * 1024 + 1, false)).toBe(413);
  await routes.rule("site_1", { maintenance: { message: "Back at <b>noon</b>" } });
  const page = await get(port, host);
  expect([page.status, page.headers["retry-after"]]).toEqual([503, "120"]);
  expect(page.text).toContain("Back at &#60;b&#62;noon&#60;/b&#62;");
});

// Asked by the first server, the second one closes the connection once it has refused: in the place of half of the refusals was a 502.
it("an upload that asks before it sends its body is told once to go on, and nothing behind the ingress is asked again", async () => {
  const { target, received } = await startApp("app");
  await routes.route("site_1", [host], [target]);
  const body = Buffer.alloc(3 * 1024 * 1024);
  for (const rules of [{}, { maxBodyMb: 5 as const }]) {
    await routes.rule("site_1", rules);
    const headers = { Host: host, Expect: "100-continue", "Content-Length": body.length };
    const request = http.request({ host: "127.0.0.1", port, method: "POST", agent: false, headers });
    let continued = 0;
    request.on("continue", () => continued++ === 0 && request.end(body)).flushHeaders();
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    const { headers: told } = JSON.parse((await response.setEncoding("utf8").toArray()).join("")) as Told;
    expect([continued, told.expect]).toEqual([1, undefined]);
  }
  expect(received()).toBe(2 * body.length);
});

it("keeps a visitor with one replica, his WebSockets too, and gives him another when that is gone", async () => {
  const replicas = [await startApp("one"), await startApp("two")];
  const targets = replicas.map(({ target }) => target);
  await routes.route("site_1", [host], targets);
  await routes.rule("site_1", { stickySessions: true });
  await vi.waitUntil(
    async () => new Set([(await told("/")).name, (await told("/")).name]).size === 2,
    10_000,
  );
  const first = await get(port, host);
  const [cookie = ""] = first.headers["set-cookie"] ?? [];
  expect(cookie).toMatch(/^berth-replica=p-[0-9a-f]{8}; Path=\/; HttpOnly; SameSite=Lax$/);
  // Also where the app says beforehand what a browser will need, and gives a cookie of its own.
  for (const method of ["GET", "POST"]) {
    const request = http.request({
      host: "127.0.0.1",
      port,
      path: "/early",
      method,
      headers: { Host: host },
    });
    const [response] = (await once(request.end(method === "POST" ? "body" : ""), "response")) as [
      http.IncomingMessage,
    ];
    response.resume();
    expect([method, response.headers["set-cookie"]?.toSorted()]).toEqual([
      method,
      [expect.stringMatching(/^berth-replica=p-/), "own=yes"],
    ]);
  }
  const mine = { Cookie: `a=b; ${cookie.split(";")[0]}` };
  const { name } = JSON.parse(first.text) as Told;
  for (let request = 0; request < 20; request++) {
    const again = await get(port, host, { headers: mine });
    expect([(JSON.parse(again.text) as Told).name, again.headers["set-cookie"]]).toEqual([name, undefined]);
  }
  for (let socket = 0; socket < 5; socket++) {
    const one = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { Host: host, ...mine } });
    await once(one, "open");
    one.send("who");
    const [message] = (await once(one, "message")) as [Buffer];
    expect(message.toString()).toBe(`${name}: who`);
    one.terminate();
  }
  await routes.route(
    "site_1",
    [host],
    targets.filter(({ containerId }) => containerId !== name),
  );
  expect((await told("/", mine)).name).not.toBe(name);
});

it("compresses text, and nothing else; what was compressed is asked for again by its tag", async () => {
  const { target } = await startApp("app");
  await routes.route("site_1", [host], [target]);
  const raw = (path: string, headers: Record<string, string>, method = "GET") =>
    new Promise<{ response: http.IncomingMessage; body: Buffer }>((resolve, reject) => {
      const options = { host: "127.0.0.1", port, path, method, agent: false };
      http
        .request({ ...options, headers: { Host: host, ...headers } }, (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () => resolve({ response, body: Buffer.concat(chunks) }));
        })
        .on("error", reject)
        .end();
    });
  for (const rules of [{}, { headers: { "X-Own": "yes" } }]) {
    await routes.rule("site_1", rules);
    const zstd = await raw("/text", { "Accept-Encoding": "gzip, br, zstd" });
    expect(zstd.response.headers["content-encoding"]).toBe("zstd");
    expect(zstdDecompressSync(zstd.body).toString()).toBe(text);
    const gzip = await raw("/text", { "Accept-Encoding": "gzip" });
    expect(gzip.response.headers).toMatchObject({ "content-encoding": "gzip", vary: "Accept-Encoding" });
    expect(gunzipSync(gzip.body).toString()).toBe(text);
    const etag = String(gzip.response.headers.etag);
    const again = await raw("/text", { "Accept-Encoding": "gzip", "If-None-Match": etag });
    expect([again.response.statusCode, again.body.length]).toEqual([304, 0]);
    // An app is asked to change what the visitor has seen; the parts of what was compressed are not those of what it has.
    expect((await told("/", { "If-Match": `"other", ${etag}`, "If-Range": etag })).headers).toMatchObject({
      "if-match": '"other", "one"',
      "if-range": etag,
    });
    // Tags that apps compress by themselves are theirs, and weak ones get nothing from Caddy.
    const own = 'W/"x--gzip", W/"y-gzip", "z--gzip"';
    expect((await told("/", { "If-Match": own })).headers).toMatchObject({ "if-match": own });
    const head = await raw("/text", { "Accept-Encoding": "gzip" }, "HEAD");
    expect(head.response.headers).toMatchObject({ etag: '"one"', "content-length": String(text.length) });
    const seen = await raw("/text", { "Accept-Encoding": "gzip", "If-None-Match": etag }, "HEAD");
    expect(seen.response.statusCode).toBe(304);
    const part = await raw("/text", { "Accept-Encoding": "gzip", Range: "bytes=0-999" });
    expect([part.response.statusCode, part.body.toString()]).toEqual([206, text.slice(0, 1000)]);
    expect((await raw("/text", {})).body.toString()).toBe(text);
    for (const path of ["/image", "/zipped"])
      expect((await raw(path, { "Accept-Encoding": "gzip, zstd" })).body.toString()).toBe(text);
  }
});

it("a browser that waits for events hears that the app has begun, though there is no event yet", async () => {
  const { target } = await startApp("app");
  await routes.route("site_1", [host], [target]);
  const headers = { Host: host, Accept: "text/event-stream", "Accept-Encoding": "gzip, deflate, br, zstd" };
  for (const rules of [{}, { headers: { "X-Own": "yes" } }]) {
    await routes.rule("site_1", rules);
    const request = http.get({ host: "127.0.0.1", port, path: "/silent", headers, agent: false });
    const [response] = (await once(request, "response", {
      signal: AbortSignal.timeout(10_000),
    })) as [http.IncomingMessage];
    expect(response.headers["content-type"]).toBe("text/event-stream");
    response.on("error", () => undefined);
    request.destroy();
  }
});

it("a change of one site's rules ends no WebSocket, event stream or upload of its own or of another site, and holds at once", async () => {
  const [app, other] = [await startApp("app"), await startApp("other")];
  await routes.route("site_1", [host], [app.target]);
  await routes.route("site_2", ["other.localhost"], [other.target]);
  const held = async (name: string, { received }: App) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { Host: name } });
    await once(socket, "open");
    const [events] = (await once(
      http.get({
        host: "127.0.0.1",
        port,
        path: "/events",
        headers: { Host: name, "Accept-Encoding": "gzip" },
        agent: false,
      }),
      "response",
    )) as [http.IncomingMessage];
    let heard = "";
    events.setEncoding("utf8").on("data", (chunk: string) => (heard += chunk));
    const upload = http.request({
      host: "127.0.0.1",
      port,
      method: "POST",
      headers: { Host: name },
      agent: false,
    });
    upload.write("x".repeat(1000));
    const answer = once(upload, "response") as Promise<[http.IncomingMessage]>;
    await vi.waitUntil(() => received() >= 1000);
    return async () => {
      socket.send("still there?");
      const [message] = (await once(socket, "message")) as [Buffer];
      expect(message.toString()).toMatch(/: still there\?$/);
      heard = "";
      await vi.waitUntil(() => heard.includes("data: more"));
      return async () => {
        upload.end("y".repeat(1000));
        expect((await answer)[0].resume().statusCode).toBe(200);
        expect(received()).toBe(2000);
        socket.terminate();
        events.destroy();
      };
    };
  };
  const checks = [await held(host, app), await held("other.localhost", other)];
  const ends: (() => Promise<void>)[] = [];
  // From no rules to some, to other ones, and to a page for all who come now.
  for (const rules of [{ headers: { "X-Own": "1" } }, { allow: ["192.0.2.1"] }, { maintenance: {} }, {}]) {
    await routes.rule("site_1", rules);
    const { status, headers } = await get(port, host);
    expect([status, headers["x-own"]]).toEqual(
      "headers" in rules
        ? [200, "1"]
        : [{ allow: 403, maintenance: 503 }[Object.keys(rules)[0] ?? ""] ?? 200, undefined],
    );
    expect((await get(port, "other.localhost")).status).toBe(200);
    for (const check of checks) ends.push(await check());
  }
  await ends[6]?.();
  await ends[7]?.();
  await routes.unroute("site_2");
});

it("a body reaches the app with any method, announced or not, and its answer to HEAD has none", async () => {
  const app = await startApp("app");
  await routes.route("site_1", [host], [app.target]);
  await routes.rule("site_1", { headers: { "X-Own": "yes" } });
  const send = (method: string, headers: Record<string, string | number>, body?: string) =>
    new Promise<http.IncomingMessage>((resolve, reject) => {
      const options = { host: "127.0.0.1", port, method, agent: false, headers: { Host: host, ...headers } };
      const request = http.request(options, (response) => resolve(response.resume()));
      request.on("error", reject).end(body);
    });
  let sent = 0;
  for (const method of ["GET", "POST", "DELETE"])
    for (const headers of [{ "Content-Length": 7 }, { "Transfer-Encoding": "chunked" }]) {
      const { headers: own } = await send(method, headers, "a body.");
      expect([own["x-own"], app.received()]).toEqual(["yes", (sent += 7)]);
    }
  const head = await send("HEAD", {});
  expect([head.statusCode, head.headers["x-own"]]).toEqual([200, "yes"]);
});

it("a visitor who knows the password reaches the app that comes up while he waits", async () => {
  const [gone, app] = [await startApp("gone"), await startApp("app")];
  gone.server.close();
  await routes.route("site_1", [host], [gone.target]);
  await routes.rule("site_1", {
    basicAuth: { username: "team", hash: hashOf("correct horse") },
    rewrites: [{ from: "/a", to: "/b" }],
  });
  const waits = told("/a?c", basic("team", "correct horse"));
  await delay(300);
  await routes.route("site_1", [host], [app.target]);
  const seen = await waits;
  expect([seen.name, seen.url, seen.headers.authorization]).toEqual(["app", "/b?c", undefined]);
});

it("no app leads a visitor past another site's rules by what it answers", async () => {
  const [protectedApp, hostile] = [await startApp("protected"), http.createServer()];
  hostile.on("request", (_, response) =>
    response
      .writeHead(204, { "Berth-Upstream": `p-any.${host}`, "Berth-Served": "h10-0-0-1.up.internal:80" })
      .end(),
  );
  hostile.listen(0, "127.0.0.1");
  await once(hostile, "listening");
  const target = { containerId: "h", address: "127.0.0.1", port: (hostile.address() as AddressInfo).port };
  await routes.route("site_1", [host], [protectedApp.target]);
  await routes.rule("site_1", { allow: ["192.0.2.1"] });
  await routes.route("site_2", ["hostile.localhost"], [target]);
  for (const rules of [{}, { headers: { "X-Own": "yes" } }]) {
    await routes.rule("site_2", rules);
    const answer = await get(port, "hostile.localhost");
    expect([answer.status, answer.text, answer.headers["berth-served"]]).toEqual([204, "", undefined]);
  }
  await routes.unroute("site_2");
  hostile.closeAllConnections();
  hostile.close();
});

it("the log tells which deployment answered, and none where the ingress did", async () => {
  const { target } = await startApp("app");
  await routes.route("site_1", [host], [{ ...target, deploymentId: "dep_1" }]);
  const folder = temporaryFolder();
  const requests = openRequestRecords(join(folder, "requests.db"));
  const log = new AccessLog({ engine, ingress: routes, requests, agentId });
  const post = () =>
    new Promise<void>((resolve, reject) => {
      const options = {
        host: "127.0.0.1",
        port,
        method: "POST",
        path: "/told",
        agent: false,
        headers: { Host: host },
      };
      http
        .request(options, (response) => response.resume().on("end", resolve))
        .on("error", reject)
        .end("body");
    });
  for (const rules of [{}, { redirects: [{ from: "/old", to: "/new", code: 308 as const }] }]) {
    await routes.rule("site_1", rules);
    await get(port, host, {
      path: "/told",
      headers: { Cookie: "secret=1", Authorization: "Basic c2VjcmV0" },
    });
    await post();
  }
  await get(port, host, { path: "/old" });
  const found = () => requests.before("site_1", {}, null, 5);
  await vi.waitUntil(async () => {
    await log.look(new AbortController().signal);
    return found()[0]?.path === "/old";
  }, 10_000);
  expect(found().map(({ method, path, deploymentId }) => [method, path, deploymentId])).toEqual([
    ["GET", "/old", null],
    ["POST", "/told", "dep_1"],
    ["GET", "/told", "dep_1"],
    ["POST", "/told", "dep_1"],
    ["GET", "/told", "dep_1"],
  ]);
  expect(new Set(found().map(({ requestId }) => requestId)).size).toBe(5);
  requests.close();
});

it("nobody reaches a protected site while nothing decides", async () => {
  const { target } = await startApp("app");
  await routes.route("site_1", [host], [target]);
  await routes.rule("site_1", { allow: ["192.0.2.1"] });
  expect((await get(port, host)).status).toBe(403);
  await responder.kill();
  const asked = Promise.all([1, 2, 3].map(() => get(port, host)));
  await delay(500);
  await responder.run();
  for (const { status, text: shown } of await asked) {
    expect([403, 502, 503]).toContain(status);
    expect(shown).not.toContain('"name"');
  }
  expect((await get(port, host)).status).toBe(403);
});
