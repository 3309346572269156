import { randomBytes } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fetchBackup, fetchFingerprint } from "../../agent/databases/backups/fetch.ts";
import { createStore } from "../../agent/databases/backups/store.ts";
import { uploadParts } from "../../agent/databases/backups/upload.ts";
import { formatId, type IdKind } from "../../protocol/ids.ts";
import { PartServer } from "../support/part-server.ts";

const newId = <K extends IdKind>(kind: K) => formatId(kind, Date.now(), randomBytes(10));

/** What the bound in minutes is in these tests. */
const patienceMs = { reading: 800, writing: 800 };
const neverAborted = new AbortController().signal;
const fingerprint = { tables: [], objects: {}, counters: [] };

let server: PartServer;
let url: string;

beforeEach(async () => {
  server = new PartServer();
  url = await server.listen();
});
afterEach(() => server.close());

const storeOf = () => createStore({ url, token: server.token, patienceMs });
const leaseOf = (backupId: string) => ({ backupId, jobId: newId("job"), attempt: 1 });

async function* once(bytes: Buffer) {
  yield bytes;
}

async function upload(bytes: Buffer): Promise<string> {
  const store = storeOf();
  const backupId = newId("backup");
  const lease = leaseOf(backupId);
  const uploaded = await uploadParts(store, lease, once(bytes), neverAborted);
  await store.complete(lease, { ...uploaded, fingerprint }, neverAborted);
  return backupId;
}

async function read(backupId: string, each: () => Promise<unknown> = async () => undefined): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const stored = server.stored(backupId, "main");
  for await (const chunk of fetchBackup(storeOf(), leaseOf(backupId), stored, neverAborted)) {
    chunks.push(chunk);
    await each();
  }
  return Buffer.concat(chunks);
}

const isData = (request: { url?: string | undefined }) => request.url?.endsWith("/data") === true;
const said = "The store sent no bytes of this backup for";

it.each<[string, PartServer["disturb"]]>([
  ["is refused", (_, response) => Boolean(response.writeHead(500).end())],
  ["is never answered", () => true],
  ["ends before its first byte", (request) => Boolean(request.socket.destroy())],
  [
    "is announced and never sent",
    (_, response) => {
      response.writeHead(206, { "Content-Range": "bytes 0-8/9", "Content-Length": "9" }).flushHeaders();
      return true;
    },
  ],
])("gives up a backup whose file %s for as long as a reader is patient", async (_, answer) => {
  const backupId = await upload(Buffer.from("some rows"));
  server.disturb = (request, response) => isData(request) && answer(request, response);
  await expect(read(backupId)).rejects.toThrow(said);
});

it("gives up a backup whose manifest the store does not give", async () => {
  const backupId = await upload(Buffer.from("some rows"));
  server.disturb = (request, response) =>
    request.url?.endsWith("/manifest") === true && Boolean(response.writeHead(500).end());
  const stored = server.stored(backupId, "main");
  await expect(fetchFingerprint(storeOf(), leaseOf(backupId), stored, neverAborted)).rejects.toThrow(said);
});

it("gives up an upload of which the store takes nothing", async () => {
  server.disturb = (request, response) =>
    request.url?.includes("/parts/") === true && Boolean(response.writeHead(500).end());
  await expect(upload(Buffer.from("some rows"))).rejects.toThrow(
    "The store accepted no bytes of this backup for",
  );
});

it("takes a connection that breaks again and again for alive while bytes come", async () => {
  const bytes = Buffer.from("0123456789");
  const backupId = await upload(bytes);
  server.disturb = (request, response) => {
    if (!isData(request)) return false;
    const from = Number(/\d+/.exec(request.headers.range ?? "")?.[0]);
    response.writeHead(206, { "Content-Range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` });
    response.write(bytes.subarray(from, from + 1), () => request.socket.destroy());
    return true;
  };
  expect((await read(backupId)).toString()).toBe(bytes.toString());
});

it("does not count the time that whoever takes the bytes needs for them", async () => {
  const backupId = await upload(Buffer.alloc(1_000_000, 7));
  const busy = async () => {
    for (const end = Date.now() + 1.5 * patienceMs.reading; Date.now() < end;) await turn();
  };
  let isFirst = true;
  const found = await read(backupId, async () => {
    if (isFirst) await busy();
    isFirst = false;
  });
  expect(found.length).toBe(1_000_000);
});

it("ends with whoever takes the bytes, and judges none that he left", async () => {
  const backupId = await upload(Buffer.from("some rows"));
  const stored = { ...server.stored(backupId, "main"), sha256: "another" };
  const bytes = fetchBackup(storeOf(), leaseOf(backupId), stored, neverAborted);
  expect((await bytes.next()).value?.toString()).toBe("some rows");
  // As Node's streams do when they are destroyed.
  const leftOff = new Error("The program that is fed refuses more");
  await expect(bytes.throw(leftOff)).rejects.toBe(leftOff);
});
