import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { afterEach, assert, beforeEach, expect, it, vi } from "vitest";
import { rebuild } from "../../agent/databases/backups/rebuild.ts";
import type { Engine } from "../../agent/docker/engine.ts";
import type { Host } from "../../agent/host.ts";
import { restoreVolume } from "../../agent/handlers/restore-volume.ts";
import type { BuildRoom } from "../../agent/isolation/build-room.ts";
import { JobError } from "../../agent/job.ts";
import { archive } from "../../agent/volumes/archive.ts";
import { rebuildVolume } from "../../agent/volumes/rebuild.ts";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { fingerprintText, type Fingerprint } from "../../protocol/agent/backups.ts";
import { formatId } from "../../protocol/ids.ts";
import { databaseSpec } from "../support/database-spec.ts";
import { emptyDisk } from "../support/empty-disk.ts";
import { jobRun } from "../support/job-run.ts";
import { MemoryEngine } from "../support/memory-engine.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const idOf = <K extends "database" | "account" | "backup" | "site">(kind: K) =>
  formatId(kind, 1, new Uint8Array(10));
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
function begin(
  writeFiles: Engine["writeFiles"],
  bytes: () => AsyncIterable<Buffer>,
  more: { engine?: Partial<Engine>; buildRoom?: Partial<BuildRoom> } = {},
) {
  const docker = new MemoryEngine();
  docker.state.images[spec.image] = "sha256:redis";
  const [over, full] = [new AbortController(), new AbortController()];
  const host = {
    agentId: "agent",
    engine: { ...docker.engine, writeFiles, ...more.engine },
    isolation: { demand: async () => undefined },
    buildRoom: { ...emptyDisk(full.signal), ...more.buildRoom },
    backups: {
      patienceMs: { reading: 60_000, writing: 60_000 },
      manifest: async () => ({ backupId, databaseId, accountId, sizeBytes, sha256, fingerprint }),
      read: async (_: unknown, offset: number) => ({ totalBytes: sizeBytes - offset, body: bytes() }),
    },
  } as unknown as Host;
  const ended = rebuild(host, { spec, backup, volume: null, job: jobRun({ signal: over.signal }) });
  return { docker, over, full, ended };
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

it("a restore leaves no container where its disk cannot be watched, and watches none where it has no container", async () => {
  const neverSent = async () => assert.fail("sent");
  const unwatched = begin(neverSent, async function* () {}, {
    buildRoom: { receive: () => Promise.reject(new Error("The engine did not answer")) },
  });
  await expect(unwatched.ended).rejects.toThrow("The engine did not answer");
  expect(unwatched.docker.state.containers).toEqual([]);
  const end = vi.fn<() => void>();
  const refused = begin(neverSent, async function* () {}, {
    buildRoom: { receive: async () => ({ signal: new AbortController().signal, end }) },
    engine: { createContainer: () => Promise.reject(new Error("No such image")) },
  });
  await expect(refused.ended).rejects.toThrow("No such image");
  expect(end).toHaveBeenCalledOnce();
});

it.each(["is cancelled", "fills the disk", "meets a store that has another backup"])(
  "a restore that %s ends its request to the engine at once, and sends nothing to fill the rest",
  async (what) => {
    let sent = 0;
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    const { docker, over, full, ended } = begin(
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
        if (what === "fills the disk") full.abort(new JobError("No disk"));
      },
    );
    const said = { "is cancelled": "Cancelled", "fills the disk": "No disk" }[what] ?? "bytes, but";
    await expect(ended).rejects.toThrow(said);
    for (let turns = 0; turns < 3; turns++) await turn();
    expect(sent).toBeLessThan(1024 * 1024);
    expect([docker.state.containers, unheard]).toEqual([[], []]);
  },
);

/** A host whose store has this file, and the backup as it is recorded. */
function hostWith(bytes: Buffer, engine: Engine, contents = fingerprint, filled?: AbortSignal) {
  const file = {
    sizeBytes: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    fingerprintSha256: createHash("sha256").update(fingerprintText(contents)).digest("hex"),
  };
  const host = {
    agentId: "agent",
    engine,
    isolation: { demand: async () => undefined },
    buildRoom: emptyDisk(filled),
    backups: {
      patienceMs: { reading: 60_000, writing: 60_000 },
      manifest: async () => ({ backupId, databaseId, accountId, ...file, fingerprint: contents }),
      read: async () => ({ totalBytes: bytes.length, body: Readable.from([bytes]) }),
    },
  } as unknown as Host;
  return { host, backup: { ...backup, ...file } };
}

/** What is said of a backup whose file is the recorded one. @param engine how its server behaves */
async function verdict(type: DatabaseSpec["type"], engine: Partial<Engine>): Promise<string> {
  const docker = new MemoryEngine();
  const own = databaseSpec({ databaseId, accountId, type });
  docker.state.images[own.image] = "sha256:server";
  const { host, backup } = hostWith(Buffer.from("rows"), { ...docker.engine, ...engine });
  const ended = rebuild(host, { spec: own, backup, volume: null, job: jobRun() });
  return String(await ended.catch((error: unknown) => error));
}
const refusing = (stderr: string, log: string[] = []): Partial<Engine> => ({
  execute: async () => ({ exitCode: 0, stdout: "", stderr: "" }),
  lastLines: async () => log,
  pipe: async () => ({
    input: new PassThrough().resume(),
    output: Readable.from([]),
    isRunning: async () => false,
    ended: async () => ({ exitCode: 1, stderr }),
    close: () => undefined,
  }),
});

it.each([
  ["pg_restore: error: error returned by PQputCopyData: server closed the connection unexpectedly", ""],
  ["pg_restore: while PROCESSING TOC:", "LOG:  server process (PID 61) was terminated by signal 9: Killed"],
  [
    "WARNING:  terminating connection because of crash of another server process",
    "LOG:  database system is ready to accept connections",
  ],
  ["pg_restore: while PROCESSING TOC:", 'ERROR:  could not read blocks 0..0 in file "a": Input/output error'],
])(
  "a PostgreSQL that runs on after a process of it was killed says nothing of the backup: %s %s",
  async (stderr, line) => {
    expect(await verdict("postgresql", refusing(stderr, [line]))).not.toMatch(/^DamageError/);
  },
);

it("rows that PostgreSQL rejects are damage", async () => {
  const stderr = "pg_restore: error: could not read from input file: end of file";
  expect(await verdict("postgresql", refusing(stderr, ["LOG:  checkpoint complete"]))).toMatch(
    /^DamageError/,
  );
});

/** A Redis that ends while it loads the file. */
const endsLoading = (exitCode: number, line: string): Partial<Engine> => ({
  writeFiles: async (_id, _folder, archive) => {
    if (!Buffer.isBuffer(archive)) for await (const _ of archive);
  },
  startContainer: async () => undefined,
  inspectContainer: async (id) =>
    id.startsWith("berth-") ? null : ({ id, running: false, exitCode } as never),
  lastLines: async () => [line],
});

it.each([
  [137, "Loading RDB produced by version 7.2.5"],
  [0, "Received shutdown signal during loading, exiting now."],
  [1, "Fatal error loading the DB: Input/output error. Exiting."],
])("a Redis that ends with %i after '%s' says nothing of the backup", async (exitCode, line) => {
  expect(await verdict("redis", endsLoading(exitCode, line))).not.toMatch(/^DamageError/);
});

it("a file that Redis itself refuses is damage", async () => {
  const line = "Wrong signature trying to load DB from file";
  expect(await verdict("redis", endsLoading(1, line))).toMatch(/^DamageError/);
});

/** What is said of a volume's backup whose file is the recorded one. @param tar the program that unpacks it */
async function volumeVerdict(tar: string, bytes = gzipSync(Buffer.alloc(10_240))): Promise<string> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "tar"), `#!/bin/sh\n${tar}\n`, { mode: 0o755 });
  vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
  const { host, backup } = hostWith(bytes, new MemoryEngine().engine);
  const ended = rebuildVolume(host, join(folder, "copy"), backup, jobRun());
  return String(await ended.catch((error: unknown) => error).finally(() => vi.unstubAllEnvs()));
}
const says = (words: string, exitCode = 2) => `cat >/dev/null; echo "${words}" >&2; exit ${exitCode}`;

it.each([
  "kill -9 $$",
  says("tar: ./a: Cannot write: Input/output error"),
  says("tar: ./a: Cannot open: Too many open files"),
  says("tar: memory exhausted"),
  says("nice: 'tar': No such file or directory", 127),
])("a tar that the host's trouble ends says nothing of a volume's backup: %s", async (tar) => {
  expect(await volumeVerdict(tar)).not.toMatch(/^DamageError/);
});

it.each(["No space left on device", "Disk quota exceeded"])(
  "a volume that does not fit says that the disk is full: %s",
  async (words) => {
    expect(await volumeVerdict(says(`tar: ./a: Cannot write: ${words}`))).toMatch(/^JobError.*disk is full/);
  },
);

it("a volume's backup that unpacks to more than the disk has leaves the disk to the sites, and is not called damaged", async () => {
  const copy = join(temporaryFolder(), "copy");
  const full = new AbortController();
  // A host may have stored anything: what it says of the size binds nobody.
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  const { host, backup } = hostWith(bomb, new MemoryEngine().engine, fingerprint, full.signal);
  vi.spyOn(host.backups, "read").mockImplementation(async () => {
    full.abort(new JobError("No disk"));
    return { totalBytes: bomb.length, body: Readable.from([bomb]) };
  });
  await expect(rebuildVolume(host, copy, backup, jobRun())).rejects.toEqual(new JobError("No disk"));
  expect(existsSync(copy)).toBe(false);
});

it("a volume's backup that tar finds no archive is damaged", async () => {
  const words = "tar: This does not look like a tar archive";
  expect(await volumeVerdict(says(words))).toBe(`DamageError: It could not be unpacked: ${words}`);
});

it("a volume's backup that cannot be decompressed is damaged, also where that is seen before all of it is read", async () => {
  const bytes = gzipSync(randomBytes(1024 * 1024));
  bytes.fill(0xff, 1000, 2000);
  expect(await volumeVerdict("cat >/dev/null; exit 0", bytes)).toMatch(
    /^DamageError: It could not be unpacked: /,
  );
});

it("a volume is restored into a pack in which its site is not stopped for it, and into no smaller one", async () => {
  const folder = join(temporaryFolder(), "_data");
  mkdirSync(folder);
  writeFileSync(join(folder, "file"), "kept");
  const { signal } = new AbortController();
  const packed = archive(folder, signal);
  const bytes = await buffer(packed.bytes);
  const contents = await packed.contents();
  const siteId = idOf("site");
  const engine = {
    ensureVolume: async () => undefined,
    volumes: async () => [{ name: `berth-${siteId}-data`, labels: {}, folder }],
    listContainers: async () => [],
  } as unknown as Engine;
  const restore = (diskBytes: number) => {
    const settings = [{ name: "disk_bytes", value: String(diskBytes) }];
    const { host, backup } = hostWith(bytes, engine, { ...contents, settings });
    const { databaseName: _, ...stored } = backup;
    return restoreVolume(
      host,
      { siteId, accountId, volume: "data", backup: stored, diskGb: 10 },
      jobRun({ signal }),
    );
  };
  expect(await restore(10 * 1024 ** 3)).toEqual({ damage: null });
  expect(await restore(11.9 * 1024 ** 3)).toEqual({ damage: null });
  await expect(restore(12.1 * 1024 ** 3)).rejects.toThrow(
    "The backup takes 12.1 GB, and a site of this pack is stopped beyond 12.0: choose a larger pack",
  );
});
