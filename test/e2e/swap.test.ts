import { once } from "node:events";
import http from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { WebSocket } from "ws";
import { steadyLoad } from "./load.ts";
import {
  api,
  launch,
  plainServer,
  redeploy,
  remove,
  Repository,
  request,
  serverSource,
  settled,
  until,
} from "./service.ts";

it("a second deployment replaces the first with no failed request at 200 requests a second", async () => {
  const repository = new Repository(plainServer("one"));
  const record = await launch({ githubUrl: repository.address });
  expect(record.status).toBe("RUNNING");
  const load = steadyLoad(record.url, 200);
  repository.commit({ "server.js": serverSource("two") }, "Second");
  expect((await redeploy(record.id)).status).toBe("LIVE");
  // Past the drain, so that the removal of the old container is under load as well.
  await delay(5000);
  const { failures, texts } = await load.stop();
  expect(failures).toEqual([]);
  expect([...texts.keys()].sort()).toEqual(["version one", "version two"]);
  expect(texts.get("version two")).toBeGreaterThan(200);
  await remove(record.id);
});

it("a version that exits soon after its first answer has failed, and no visitor of the one before it notices", async () => {
  const repository = new Repository(plainServer("one"));
  const record = await launch({ githubUrl: repository.address });
  const load = steadyLoad(record.url, 100);
  const exits = `${serverSource("two")}setTimeout(() => { throw new Error("no module of this name"); }, 600);\n`;
  repository.commit({ "server.js": exits }, "Second");
  const failed = await redeploy(record.id);
  expect(failed).toMatchObject({
    status: "FAILED",
    error: expect.stringMatching(/exited with code 1.*no module of this name/) as string,
  });
  expect((await settled(record.id)).status).toBe("RUNNING");
  const seen = (version: string) => load.texts.get(`version ${version}`) ?? 0;
  expect(seen("two")).toBeGreaterThan(0);
  const before = seen("one");
  await until(
    () => seen("one"),
    (now) => now > before + 100,
  );
  expect((await load.stop()).failures).toEqual([]);
  expect((await request(record.url)).text).toBe("version one");
  await remove(record.id);
});

/** Answers plainly, slowly, as an event stream and over a WebSocket; counts what it was sent. */
const everything: Record<string, string> = {
  Dockerfile: `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY server.js .\nUSER node\nCMD ["node", "server.js"]\n`,
  "server.js": `
const http = require("node:http"), crypto = require("node:crypto");
const server = http.createServer((request, response) => {
  if (request.url === "/events") {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    let count = 0;
    const timer = setInterval(() => {
      response.write("data: " + ++count + "\\n\\n");
      if (count === 20) { clearInterval(timer); response.end(); }
    }, 200);
    return;
  }
  if (request.url === "/name") return response.end(require("node:os").hostname());
  let bytes = 0;
  request.on("data", (chunk) => (bytes += chunk.length)).on("end", () => response.end(String(bytes)));
});
// A WebSocket that sends every short text frame back (RFC 6455); one frame is answered before the next is sent.
server.on("upgrade", (request, socket) => {
  const accept = crypto.createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n");
  // A proxy may pass a frame on in pieces.
  let received = Buffer.alloc(0);
  socket.on("data", (chunk) => {
    received = Buffer.concat([received, chunk]);
    const length = received[1] & 127, mask = received.subarray(2, 6);
    if (received.length < 6 + length) return;
    const frame = received.subarray(0, 6 + length);
    received = received.subarray(6 + length);
    if ((frame[0] & 15) === 8) return socket.end();
    const text = Buffer.from(frame.subarray(6).map((byte, at) => byte ^ mask[at % 4]));
    socket.write(Buffer.concat([Buffer.from([129, length]), text]));
  }).on("error", () => {});
});
server.listen(process.env.PORT);
`,
};

/** Four seconds of use each, again and again: what a swap must not cut. */
const longUses: Record<string, (url: URL) => Promise<void>> = {
  async slowPost(url) {
    const outgoing = http.request({
      host: "127.0.0.1",
      port: url.port,
      method: "POST",
      headers: { Host: url.host },
    });
    const answered = once(outgoing, "response") as Promise<[http.IncomingMessage]>;
    for (let part = 0; part < 20; part++) {
      outgoing.write("x".repeat(100));
      await delay(200);
    }
    outgoing.end();
    const [response] = await answered;
    const text = await new Response(response).text();
    if (text !== "2000") throw new Error(`a slow POST was answered ${response.statusCode} ${text}`);
  },
  async events(url) {
    const [response] = (await once(
      http.get({ host: "127.0.0.1", port: url.port, path: "/events", headers: { Host: url.host } }),
      "response",
    )) as [http.IncomingMessage];
    const text = await new Response(response).text();
    if (!text.endsWith("data: 20\n\n")) throw new Error(`an event stream ended after ${text.slice(-20)}`);
  },
  async webSocket(url) {
    const socket = new WebSocket(`ws://127.0.0.1:${url.port}/`, { headers: { Host: url.host } });
    await once(socket, "open");
    for (let count = 0; count < 20; count++) {
      socket.send(`message ${count}`);
      const [data] = (await once(socket, "message", { signal: AbortSignal.timeout(5000) })) as [Buffer];
      if (data.toString() !== `message ${count}`) throw new Error(`a WebSocket answered ${data.toString()}`);
      await delay(200);
    }
    socket.close();
  },
};

it("fifty swaps cut nobody: none of 10,000 requests at 300 a second, slow POSTs, event streams, WebSockets", async () => {
  const repository = new Repository(everything);
  const record = await launch({ githubUrl: repository.address });
  expect(record.status).toBe("RUNNING");
  const url = new URL(record.url);
  const load = steadyLoad(record.url, 300);
  const swaps = { done: false, uses: 0 };
  const failures: string[] = [];
  const clients = Object.values(longUses).flatMap((use) =>
    [0, 1].map(async () => {
      while (!swaps.done) {
        await use(url).catch((error: unknown) => failures.push(String(error)));
        swaps.uses++;
      }
    }),
  );
  const current = async () => (await request(`${record.url}/name`)).text;
  for (let swap = 0; swap < 50; swap++) {
    const before = await current();
    expect((await api("PATCH", `/sites/${record.id}`, { action: "restart" })).status).toBe(202);
    await until(current, (now) => now !== before, 60_000);
  }
  await until(
    () => load.seen.asked,
    (asked) => asked >= 10_000,
  );
  swaps.done = true;
  await Promise.all(clients);
  const steady = await load.stop();
  expect([...failures, ...steady.failures]).toEqual([]);
  expect(swaps.uses).toBeGreaterThan(30);
  // What a gap is where nothing else runs, bench/deploys.ts measures; a site that is away for a second is none of the machine's.
  expect(load.seen.longestGapMs).toBeLessThan(1000);
  await settled(record.id);
  await remove(record.id);
}, 600_000);
