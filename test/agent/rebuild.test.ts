import { createHash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { rebuild } from "../../agent/databases/backups/rebuild.ts";
import type { Engine } from "../../agent/docker/engine.ts";
import type { Host } from "../../agent/host.ts";
import { fingerprintText, type Fingerprint } from "../../protocol/agent/backups.ts";
import { formatId } from "../../protocol/ids.ts";
import { databaseSpec } from "../support/database-spec.ts";
import { jobRun } from "../support/job-run.ts";
import { MemoryEngine } from "../support/memory-engine.ts";

const idOf = <K extends "database" | "account" | "backup">(kind: K) => formatId(kind, 1, new Uint8Array(10));
const [backupId, databaseId, accountId] = [idOf("backup"), idOf("database"), idOf("account")];
const spec = databaseSpec({ databaseId, accountId, type: "redis" });
const fingerprint: Fingerprint = { tables: [], objects: {}, counters: [] };
/** Far more than is sent of it. */
const sizeBytes = 256 * 1024 * 1024;
const sha256 = "0".repeat(64);
const backup = {
  backupId,
  attempt: 1,
  databaseName: "main",
  sizeBytes,
  sha256,
  fingerprintSha256: createHash("sha256").update(fingerprintText(fingerprint)).digest("hex"),
};

let unheard: unknown[];
const note = (reason: unknown) => void unheard.push(reason);
beforeEach(() => {
  unheard = [];
  process.on("unhandledRejection", note);
});
afterEach(() => void process.off("unhandledRejection", note));

/** Redis's backup is put into the container as a file. @param bytes what the store gives of it before it has another one */
function begin(writeFiles: Engine["writeFiles"], bytes: () => AsyncIterable<Buffer>) {
  const docker = new MemoryEngine();
  docker.state.images[spec.image] = "sha256:redis";
  const over = new AbortController();
  const host = {
    agentId: "agent",
    engine: { ...docker.engine, writeFiles },
    isolation: { demand: async () => undefined },
    buildRoom: { demandDisk: async () => undefined },
    backups: {
      patienceMs: { reading: 60_000, writing: 60_000 },
      manifest: async () => ({ backupId, databaseId, accountId, sizeBytes, sha256, fingerprint }),
      read: async (_: unknown, offset: number) => ({ totalBytes: sizeBytes - offset, body: bytes() }),
    },
  } as unknown as Host;
  const ended = rebuild(host, { spec, backup, volume: null, job: jobRun({ signal: over.signal }) });
  return { docker, over, ended };
}

it("an engine that refuses a backup's file while its first bytes are waited for fails the job, not the agent", async () => {
  const { promise: given, resolve: give } = Promise.withResolvers<void>();
  let isRefused = false;
  const { docker, ended } = begin(
    async () => {
      isRefused = true;
      throw new Error("(HTTP code 404) no such container");
    },
    async function* () {
      await given;
      yield Buffer.alloc(64 * 1024);
    },
  );
  await vi.waitUntil(() => isRefused);
  // Node says after a turn what nobody has listened to.
  for (let turns = 0; turns < 3; turns++) await turn();
  expect(unheard).toEqual([]);
  give();
  await expect(ended).rejects.toThrow("no such container");
  expect(docker.state.containers).toEqual([]);
});

it.each(["is cancelled", "meets a store that has another backup"])(
  "a restore that %s ends its request to the engine at once, and sends nothing to fill the rest",
  async (what) => {
    let sent = 0;
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    const { docker, over, ended } = begin(
      (_id, _folder, archive, signal) =>
        new Promise((resolve, reject) => {
          if (Buffer.isBuffer(archive)) return reject(new Error("no stream"));
          archive.on("end", resolve).on("data", (bytes: Buffer) => {
            sent += bytes.length;
            arrive();
          });
          signal?.addEventListener("abort", () => reject(signal.reason as Error));
        }),
      async function* () {
        yield Buffer.alloc(64 * 1024);
        await arrived;
        if (what === "is cancelled") over.abort(new Error("Cancelled"));
      },
    );
    await expect(ended).rejects.toThrow(what === "is cancelled" ? "Cancelled" : "bytes, but");
    for (let turns = 0; turns < 3; turns++) await turn();
    expect(sent).toBeLessThan(1024 * 1024);
    expect([docker.state.containers, unheard]).toEqual([[], []]);
  },
);
