import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { decodeFrame, encodeFrame } from "../../protocol/agent/stream-frames.ts";
import {
  costOf,
  maxPayloadBytes,
  streamCloseCodes,
  ToStreamClient,
  windowBytes,
} from "../../protocol/api/streams.ts";
import type { Activity } from "../../protocol/api/activity.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  operator,
  operatorCookie,
  readyAgent,
  runningSite,
  siteUrl,
  type Agent,
  runningDatabase,
} from "./service.ts";

let own: string;
let host: Agent;
let siteId: string;
let databaseId: string;
let tunnel: string;
let terminal: string;

beforeEach(async () => {
  own = await operator();
  host = await readyAgent();
  ({ siteId } = await runningSite(own, host));
  ({ databaseId } = await runningDatabase(own, host));
  tunnel = `/api/v1/databases/${databaseId}/tunnel`;
  terminal = `/api/v1/sites/${siteId}/terminal`;
});
afterEach(() => vi.useRealTimers());

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
const upgrade = (path: string, headers: Record<string, string>) =>
  call(path, { headers: { Upgrade: "websocket", ...headers } });

type Closed = { code: number; reason: string };
type Client = {
  streamId: number;
  send(message: string | Uint8Array): void;
  bytes: Uint8Array[];
  texts: ToStreamClient[];
  /** Resolves once the condition holds. */
  until(condition: () => unknown): Promise<void>;
  closed: Promise<Closed>;
  close(): void;
};

/** A stream that the agent has opened. */
async function opened(path = tunnel, headers: Record<string, string> = bearer(own)): Promise<Client> {
  const answering = upgrade(path, headers);
  const { streamId } = await host.next("openStream");
  host.send({ type: "streamOpened", streamId });
  const answer = await answering;
  const socket = answer.webSocket;
  if (!socket) throw new Error(`answered ${answer.status}: ${await answer.text()}`);
  const [bytes, texts]: [Uint8Array[], ToStreamClient[]] = [[], []];
  socket.binaryType = "arraybuffer";
  socket.addEventListener("message", ({ data }) => {
    if (typeof data === "string") texts.push(ToStreamClient.parse(JSON.parse(data)));
    else bytes.push(new Uint8Array(data as ArrayBuffer));
  });
  const closed = new Promise<Closed>((resolve) =>
    socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason })),
  );
  socket.accept();
  return {
    streamId,
    bytes,
    texts,
    closed,
    send: (message) => socket.send(message),
    until: (condition) => vi.waitUntil(condition, { timeout: 5000 }).then(() => undefined),
    close: () => socket.close(1000),
  };
}

const total = (parts: Uint8Array[]) => parts.reduce((sum, part) => sum + part.byteLength, 0);
/** A whole piece, as many as a window takes. */
const piece = new Uint8Array(maxPayloadBytes).fill(7);
const fitting = Math.floor(windowBytes / costOf(piece));

it("bytes go both ways between a client and the host, and what they cross is in the audit log", async () => {
  const client = await opened();
  client.send(new TextEncoder().encode("SELECT 1"));
  const frame = decodeFrame(await host.nextBytes());
  expect([frame?.streamId, new TextDecoder().decode(frame?.payload)]).toEqual([client.streamId, "SELECT 1"]);
  host.sendBytes(encodeFrame(client.streamId, new TextEncoder().encode("1 row")));
  await client.until(() => client.bytes.length === 1);
  expect(new TextDecoder().decode(client.bytes[0])).toBe("1 row");
  host.send({ type: "streamClosed", streamId: client.streamId, error: null, exitCode: null });
  expect(await client.closed).toEqual({ code: streamCloseCodes.ended, reason: "" });
  const { body } = await api<{ data: Activity[] }>(own, "GET", `/activity?resource=${databaseId}&limit=1`);
  expect(body.data[0]).toMatchObject({ operation: "openDatabaseTunnel", actor: "key", outcome: "done" });
});

it("a terminal has a size, a program and a name, is resized, and tells how its program ended", async () => {
  const answering = opened(`${terminal}?columns=120&rows=40&command=top&terminal=vt100`);
  const client = await answering;
  client.send(JSON.stringify({ type: "resize", columns: 90, rows: 30 }));
  expect(await host.next("resizeStream")).toMatchObject({ streamId: client.streamId, columns: 90, rows: 30 });
  host.send({ type: "streamClosed", streamId: client.streamId, error: null, exitCode: 3 });
  await client.closed;
  expect(client.texts).toEqual([{ type: "exit", exitCode: 3 }]);
});

it("what the host asks for is what was asked for", async () => {
  const answering = upgrade(`${terminal}?columns=120&rows=40&command=top&terminal=vt100`, bearer(own));
  const { streamId, target } = await host.next("openStream");
  expect(target).toEqual({
    kind: "terminal",
    siteId,
    command: "top",
    terminal: "vt100",
    columns: 120,
    rows: 40,
  });
  host.send({ type: "streamClosed", streamId, error: "The site does not run.", exitCode: null });
  const answer = await answering;
  expect([answer.status, await answer.json()]).toEqual([
    409,
    { error: "conflict", reason: "The site does not run." },
  ]);
});

it("is refused without a key, of another account, unpaid, without an upgrade, and with arguments it does not know", async () => {
  const other = await account();
  const unpaid = (await createSite(own)).siteId;
  const attempts: [string, Record<string, string>, number][] = [
    [tunnel, {}, 401],
    [tunnel, bearer("sk_wrong"), 401],
    [tunnel, bearer(other), 403],
    [terminal, bearer(other), 403],
    [`/api/v1/sites/${unpaid}/terminal`, bearer(own), 402],
    ["/api/v1/databases/db_001m80000000000000000000000/tunnel", bearer(own), 404],
    [`${tunnel}?port=22`, bearer(own), 400],
    [`${terminal}?columns=0`, bearer(own), 400],
    [`${terminal}?terminal=a%20b`, bearer(own), 400],
    [tunnel, { Cookie: await operatorCookie() }, 403],
    [tunnel, { Cookie: await operatorCookie(), Origin: "https://evil.example" }, 403],
  ];
  for (const [path, headers, status] of attempts)
    expect([path, (await upgrade(path, headers)).status]).toEqual([path, status]);
  expect((await call(tunnel, { headers: bearer(own) })).status).toBe(400);
  expect(host.waiting().filter(({ type }) => type === "openStream")).toEqual([]);
});

it("a session of our own pages may open one", async () => {
  const client = await opened(tunnel, { Cookie: await operatorCookie(), Origin: siteUrl });
  client.close();
  expect(await host.next("closeStream")).toMatchObject({ streamId: client.streamId });
});

it("a client that sends more than its window is cut off, and the host is told", async () => {
  const client = await opened();
  for (let sent = 0; sent <= fitting; sent++) client.send(piece);
  expect(await client.closed).toMatchObject({ code: streamCloseCodes.protocolError });
  await host.next("closeStream");
  for (let received = 0; received < fitting; received++)
    expect(decodeFrame(await host.nextBytes())?.streamId).toBe(client.streamId);
});

it("a client whose bytes the host consumes may send on without end", async () => {
  const client = await opened();
  for (let round = 0; round < 5; round++) {
    for (let sent = 0; sent < fitting; sent++) client.send(piece);
    for (let received = 0; received < fitting; received++) await host.nextBytes();
    const bytes = fitting * costOf(piece);
    host.send({ type: "streamCredit", streamId: client.streamId, bytes });
    await client.until(() => client.texts.length === round + 1);
    expect(client.texts.at(-1)).toEqual({ type: "credit", bytes });
  }
  client.close();
  await host.next("closeStream");
});

it("the host hears of what a client consumed only by the marks that the client received", async () => {
  const client = await opened();
  for (let sent = 0; sent < fitting; sent++) host.sendBytes(encodeFrame(client.streamId, piece));
  await client.until(() => total(client.bytes) === fitting * maxPayloadBytes);
  const marks = client.texts.filter(({ type }) => type === "mark");
  expect(marks.length).toBeGreaterThan(1);
  expect(host.waiting().filter(({ type }) => type === "streamCredit")).toEqual([]);
  client.send(JSON.stringify({ ...marks[0], type: "consumed" }));
  const { bytes } = await host.next("streamCredit");
  expect(bytes).toBe(costOf(piece) * 2);
  client.send(JSON.stringify({ type: "consumed", mark: "0123456789abcdef" }));
  expect(await client.closed).toMatchObject({ code: streamCloseCodes.protocolError });
  await host.next("closeStream");
});

it("a client that consumes may go on without end: marks are no flood", async () => {
  const client = await opened();
  let consumed = 0;
  for (let round = 0; round < 110; round++) {
    host.sendBytes(encodeFrame(client.streamId, piece));
    host.sendBytes(encodeFrame(client.streamId, piece));
    await client.until(() => client.texts.length > consumed);
    while (consumed < client.texts.length)
      client.send(JSON.stringify({ ...client.texts[consumed++], type: "consumed" }));
    await host.next("streamCredit");
  }
  for (let resized = 0; resized < 100; resized++)
    client.send(JSON.stringify({ type: "resize", columns: 80, rows: 24 }));
  for (let resized = 0; resized < 100; resized++) await host.next("resizeStream");
  expect(total(client.bytes)).toBe(220 * maxPayloadBytes);
  client.close();
  await host.next("closeStream");
});

it("a host that sends more than the window loses the stream, and its link only if it goes on", async () => {
  const client = await opened();
  for (let sent = 0; sent <= fitting; sent++) host.sendBytes(encodeFrame(client.streamId, piece));
  expect(await client.closed).toMatchObject({ code: streamCloseCodes.gone });
  expect(await host.next("closeStream")).toMatchObject({ streamId: client.streamId });
  const next = await opened();
  next.close();
  await host.next("closeStream");
});

it.each([
  ["an empty message", new Uint8Array()],
  ["a huge message", new Uint8Array(maxPayloadBytes + 1)],
  ["text that is no message", "hello"],
  ["a message that is unknown", JSON.stringify({ type: "exit", exitCode: 0 })],
  ["a resize to nothing", JSON.stringify({ type: "resize", columns: 0, rows: 1e9 })],
])("a client that sends %s is cut off", async (_, message) => {
  const client = await opened();
  client.send(message);
  expect(await client.closed).toMatchObject({ code: streamCloseCodes.protocolError });
  await host.next("closeStream");
});

it("a client that floods texts is cut off", async () => {
  const client = await opened();
  for (let sent = 0; sent <= 200; sent++) client.send(JSON.stringify({ type: "pong" }));
  expect(await client.closed).toMatchObject({ code: streamCloseCodes.protocolError });
  await host.next("closeStream");
});

it("an account has no more than twenty, and one more once one has ended", async () => {
  own = await operator();
  const clients: Client[] = [];
  for (let index = 0; index < 20; index++) clients.push(await opened());
  const refused = await upgrade(tunnel, bearer(own));
  expect([refused.status, await refused.json()]).toMatchObject([409, { reason: /Your account/ }]);
  clients.pop()?.close();
  await host.next("closeStream");
  clients.push(await opened());
  for (const client of clients) client.close();
  for (const _ of clients) await host.next("closeStream");
});

it("streams that only the agent knows are closed, at its report", async () => {
  const client = await opened();
  host.send({ type: "streams", open: [client.streamId, 12_345] });
  expect(await host.next("closeStream")).toEqual({ type: "closeStream", streamId: 12_345 });
  client.close();
  expect(await host.next("closeStream")).toMatchObject({ streamId: client.streamId });
});

/** What the object does every quarter of a minute. */
async function beat(times = 1): Promise<void> {
  const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(host.hostId));
  for (let each = 0; each < times; each++)
    await runInDurableObject(link, () => void vi.advanceTimersByTime(15_000));
}

it("a stream ends with its key", async () => {
  const headers = { Cookie: await operatorCookie(), Origin: siteUrl, "Content-Type": "application/json" };
  const made = await call("/api/v1/keys", {
    method: "POST",
    headers,
    body: JSON.stringify({ name: "lent" }),
  });
  const { id, key } = await made.json<{ id: string; key: string }>();
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const client = await opened(tunnel, bearer(key));
  await call(`/api/v1/keys/${id}`, { method: "DELETE", headers });
  await beat();
  expect(await client.closed).toMatchObject({ code: streamCloseCodes.accessEnded });
  await host.next("closeStream");
});

it("a client that is gone without a word is let go", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  const client = await opened();
  await beat(4);
  expect(host.waiting()).toEqual([]);
  await beat();
  expect(await client.closed).toMatchObject({ code: streamCloseCodes.timedOut });
  await host.next("closeStream");
});

it("streams end with the host's link, at once", async () => {
  const client = await opened();
  host.close();
  expect(await client.closed).toMatchObject({ code: streamCloseCodes.hostOffline });
  expect((await upgrade(tunnel, bearer(own))).status).toBe(409);
});
