import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { WebSocketServer, type WebSocket } from "ws";
import { openSocket, type Socket, type SocketEnd } from "../../agent/socket.ts";
import { closeCodes, maxFrameBytes } from "../../protocol/agent/messages.ts";

let server: http.Server;
let sockets: WebSocketServer;
let refuseWith: number | null;
let ends: SocketEnd[];
let texts: string[];

beforeEach(async () => {
  [refuseWith, ends, texts] = [null, [], []];
  server = http.createServer();
  sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, stream, head) => {
    if (refuseWith !== null) return stream.end(`HTTP/1.1 ${refuseWith} No\r\nContent-Length: 0\r\n\r\n`);
    sockets.handleUpgrade(request, stream, head, (socket) => sockets.emit("connection", socket, request));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});

afterEach(() => {
  vi.useRealTimers();
  for (const client of sockets.clients) client.terminate();
  server.closeAllConnections();
  server.close();
});

const address = () => `ws://127.0.0.1:${(server.address() as AddressInfo).port}/agent/connect`;

const open = () =>
  new Promise<Socket>((resolve) => {
    const ofThisTest = ends;
    const socket = openSocket(
      address(),
      { token: "hst_secret", instance: "1" },
      {
        onOpen: resolve,
        onText: (text) => texts.push(text),
        onEnd: (end) => {
          ofThisTest.push(end);
          resolve(socket);
        },
      },
    );
  });
const accepted = async () => (await once(sockets, "connection")) as [WebSocket, http.IncomingMessage];
const ended = () => vi.waitUntil(() => ends.length > 0, 10_000);

it("shows its token in the header, not in the address", async () => {
  const [[, request]] = await Promise.all([accepted(), open()]);
  expect(request.headers.authorization).toBe("Bearer hst_secret");
  expect(request.url).toBe("/agent/connect");
});

it.each([401, 403, 500])("ends with the status of a refusal: %i", async (status) => {
  refuseWith = status;
  await open();
  expect(ends).toEqual([{ code: 1006, status }]);
});

it("ends once with the code the control plane closed it with", async () => {
  const [[peer]] = await Promise.all([accepted(), open()]);
  peer.close(closeCodes.superseded);
  await ended();
  expect(ends).toEqual([{ code: closeCodes.superseded, status: null }]);
});

it("has ended once the control plane says so, though the connection stays open: workerd closes it much later", async () => {
  const [[peer, request]] = await Promise.all([accepted(), open()]);
  peer.pause();
  const { superseded } = closeCodes;
  request.socket.write(Buffer.from([0x88, 2, superseded >> 8, superseded & 255]));
  await ended();
  expect(ends).toEqual([{ code: superseded, status: null }]);
});

it("whose pings are answered lives on, and ends as dead when they are no longer", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const [[peer]] = await Promise.all([accepted(), open()]);
  for (let round = 0; round < 6; round++) {
    vi.advanceTimersByTime(10_000);
    expect(String((await once(peer, "message"))[0])).toBe("ping");
    // The second frame shows that the first was read; a pong is nobody else's business.
    peer.send("pong");
    peer.send(`round ${round}`);
    await vi.waitUntil(() => texts.at(-1) === `round ${round}`, 10_000);
  }
  expect(texts).not.toContain("pong");
  expect(ends).toEqual([]);
  vi.advanceTimersByTime(40_000);
  expect(ends).toEqual([{ code: closeCodes.linkDead, status: null }]);
});

it("does not take in a frame larger than the protocol's limit", async () => {
  const [[peer]] = await Promise.all([accepted(), open()]);
  peer.send("x".repeat(maxFrameBytes + 1));
  await ended();
  expect(texts).toEqual([]);
});
