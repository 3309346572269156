import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { NotOpened, StreamServer, type Channel } from "../../agent/streams/stream-server.ts";
import { maxStreams, type StreamTarget } from "../../protocol/agent/messages.ts";
import { encodeFrame } from "../../protocol/agent/stream-frames.ts";
import { costOf, maxPayloadBytes, windowBytes } from "../../protocol/api/streams.ts";
import { formatId } from "../../protocol/ids.ts";
import { StreamLink } from "../support/stream-link.ts";

const target: StreamTarget = {
  kind: "database",
  databaseId: formatId("database", 1, new Uint8Array(10)),
  port: 5432,
};

let database: Server;
let accepted: Socket[];
let opens: () => Promise<Channel>;
let server: StreamServer;
let link: StreamLink;
let released: number;

beforeEach(async () => {
  [accepted, released] = [[], 0];
  database = createServer((socket) => {
    socket.on("error", () => undefined);
    accepted.push(socket);
  });
  database.listen(0, "127.0.0.1");
  await once(database, "listening");
  opens = async () => {
    const duplex = connect((database.address() as AddressInfo).port, "127.0.0.1");
    await once(duplex, "connect");
    return {
      duplex,
      exitCode: async () => 5,
      release: async () => void released++,
    };
  };
  server = new StreamServer(() => opens());
  link = new StreamLink(server);
});
afterEach(() => {
  vi.useRealTimers();
  server.disconnected();
  for (const socket of accepted) socket.destroy();
  database.close();
});

async function opened() {
  const before = accepted.length;
  const peer = link.open(target);
  await vi.waitUntil(() => peer.isOpen && accepted.length > before);
  const socket = accepted.at(-1)!;
  return { peer, socket };
}

it("carries a megabyte each way, in order, to the end", async () => {
  const { peer, socket } = await opened();
  const bytes = Buffer.from(Array.from({ length: 1 << 20 }, (_, index) => index % 251));
  let received = Buffer.alloc(0);
  socket.on("data", (part: Buffer) => {
    received = Buffer.concat([received, part]);
  });
  await peer.send(bytes);
  await vi.waitUntil(() => received.length === bytes.length);
  expect(received.equals(bytes)).toBe(true);
  socket.end(bytes);
  await vi.waitUntil(() => peer.closed);
  expect(Buffer.concat(peer.chunks).equals(bytes)).toBe(true);
  expect(peer.closed).toMatchObject({ error: null, exitCode: 5 });
  expect(released).toBe(1);
});

it("a client that does not read holds back the server that sends, and no one else", async () => {
  const { peer, socket } = await opened();
  peer.consumes = false;
  const fast = await opened();
  socket.write(Buffer.alloc(64 * windowBytes));
  const received = () => peer.chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
  await vi.waitUntil(() => received() > windowBytes - 2 * costOf({ byteLength: maxPayloadBytes }));
  fast.socket.write("hello");
  await vi.waitUntil(() => fast.peer.text === "hello");
  expect(received()).toBeLessThanOrEqual(windowBytes);
  expect(socket.writableLength).toBeGreaterThan(0);
  peer.consumes = true;
  peer.consume(peer.chunks.reduce((sum, chunk) => sum + costOf(chunk), 0));
  await vi.waitUntil(() => received() === 64 * windowBytes);
});

it("a server that does not read holds back the client: it gets no credit", async () => {
  const { peer, socket } = await opened();
  socket.pause();
  let sent = 0;
  void (async () => {
    for (; sent < 400; sent++) await peer.send(Buffer.alloc(maxPayloadBytes));
  })();
  // The kernel's own buffers take a few megabytes.
  let before = -1;
  await vi.waitUntil(() => before === (before = sent), { interval: 300, timeout: 10_000 });
  expect(sent).toBeLessThan(400);
  socket.resume();
  await vi.waitUntil(() => sent === 400, { timeout: 10_000 });
});

it("who sends more than the window loses the stream", async () => {
  const { peer, socket } = await opened();
  socket.pause();
  const frame = encodeFrame(peer.id, Buffer.alloc(maxPayloadBytes));
  for (let sent = 0; sent < 400 && !peer.closed; sent++) server.receiveBytes(frame);
  expect(peer.closed).toMatchObject({ error: expect.stringContaining("More was sent") });
  socket.resume();
  await once(socket, "close");
});

it("a terminal has the size that was asked for last, whatever the engine answers first, and also if that was while it opened", async () => {
  const asked: { columns: number; answer: () => void }[] = [];
  const { duplex, ...rest } = await opens();
  const opening = Promise.withResolvers<Channel>();
  opens = () => opening.promise;
  const peer = link.open(target);
  const resize = (columns: number) =>
    server.receive({ type: "resizeStream", streamId: peer.id, columns, rows: 24 });
  resize(1);
  opening.resolve({
    ...rest,
    duplex,
    resize: (columns) => new Promise((answer) => void asked.push({ columns, answer })),
  });
  await vi.waitUntil(() => asked.length === 1);
  for (const columns of [2, 3, 4]) resize(columns);
  asked[0]?.answer();
  await vi.waitUntil(() => asked.length > 1);
  asked[1]?.answer();
  resize(5);
  await vi.waitUntil(() => asked.length > 2);
  expect(asked.map(({ columns }) => columns)).toEqual([1, 4, 5]);
});

it("bytes of unknown streams, and what is no frame, change nothing", async () => {
  const { peer, socket } = await opened();
  for (const frame of [new Uint8Array(), new Uint8Array(4), encodeFrame(peer.id + 1, Buffer.from("x"))])
    server.receiveBytes(frame);
  for (const type of ["closeStream", "streamCredit", "resizeStream"] as const)
    server.receive({ type, streamId: 99, bytes: 1, columns: 1, rows: 1 });
  await peer.send(Buffer.from("y"));
  const [bytes] = (await once(socket, "data")) as [Buffer];
  expect(bytes.toString()).toBe("y");
});

it("a client that leaves: what it sent arrives, the connection ends, and the channel is released once", async () => {
  const { peer, socket } = await opened();
  let received = "";
  socket.on("data", (part: Buffer) => (received += part.toString()));
  await peer.send(Buffer.from("last words"));
  peer.close();
  await once(socket, "end");
  expect([received, released, peer.closed]).toEqual(["last words", 1, undefined]);
});

it("a server that never ends its side is cut off", async () => {
  const stubborn = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket.on("error", () => undefined));
  });
  stubborn.listen(0, "127.0.0.1");
  await once(stubborn, "listening");
  database.close();
  database = stubborn;
  const { peer, socket } = await opened();
  peer.close();
  await once(socket.resume(), "end");
  expect(socket.closed).toBe(false);
  // Written to a connection that is no more.
  const sending = setInterval(() => socket.write("still here"), 100);
  await new Promise((resolve) => socket.once("close", resolve));
  clearInterval(sending);
});

it("everything ends with the link, also what is just being opened", async () => {
  const { socket } = await opened();
  let letIn: (channel: Channel) => void = () => undefined;
  opens = () => new Promise((resolve) => (letIn = resolve));
  const late = link.open(target);
  const { duplex } = await new Promise<Channel>((resolve) => {
    const channel = connect((database.address() as AddressInfo).port, "127.0.0.1");
    void once(channel, "connect").then(() =>
      resolve({ duplex: channel, exitCode: async () => null, release: async () => undefined }),
    );
  });
  server.disconnected();
  await once(socket.resume(), "close");
  letIn({ duplex, exitCode: async () => null, release: async () => void released++ });
  await once(duplex, "close");
  expect([released, late.isOpen]).toEqual([2, false]);
});

it("why it cannot be opened is said; what broke is not", async () => {
  opens = () => Promise.reject(new NotOpened("The site does not run."));
  const first = link.open(target);
  await vi.waitUntil(() => first.closed);
  expect(first.closed?.error).toBe("The site does not run.");
  opens = () => Promise.reject(new Error("secret"));
  const second = link.open(target);
  await vi.waitUntil(() => second.closed);
  expect(second.closed?.error).not.toContain("secret");
});

it("a server that breaks the connection off is named as who did", async () => {
  const { peer, socket } = await opened();
  socket.resetAndDestroy();
  await vi.waitUntil(() => peer.closed);
  expect(peer.closed?.error).toBe("The server at the other end broke the connection off.");
});

it("opens so many at once and no more, and again once one has ended", async () => {
  const peers = await Promise.all(Array.from({ length: maxStreams }, () => opened()));
  const more = link.open(target);
  expect(more.closed).toMatchObject({ error: expect.stringContaining(String(maxStreams)) });
  peers[0]!.peer.close();
  await opened();
});

it("tells the control plane now and then which streams are open", async () => {
  server.disconnected();
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  link = new StreamLink(server);
  vi.advanceTimersByTime(60_000);
  expect(link.reports).toEqual([]);
  const { peer } = await opened();
  vi.advanceTimersByTime(30_000);
  expect(link.reports).toEqual([[peer.id]]);
});
