import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import tar from "tar-stream";
import type { StoredBackup } from "../../../protocol/agent/backups.ts";
import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import { ensureImage } from "../../image-build/ensure-image.ts";
import { stopGraceSeconds } from "../../docker/database-objects.ts";
import { copiers, engines } from "../index.ts";
import { run, untilReady } from "../server.ts";
import { diskIsFull, saysDiskBroken, saysDiskFull } from "../../docker/disk-full.ts";
import { hardening, limitsOf } from "../../docker/specs.ts";
import type { ContainerSpec } from "../../docker/engine.ts";
import type { Host } from "../../host.ts";
import { JobError, type JobRun } from "../../job.ts";
import { difference } from "./compare.ts";
import { UnfitError, type Server } from "./copier.ts";
import { DamageError } from "./damage.ts";
import { fetchBackup, fetchFingerprint } from "./fetch.ts";
import { label } from "../../docker/labels.ts";

type Rebuild = {
  /** The specification of the server that the backup is restored into. */
  spec: DatabaseSpec;
  backup: StoredBackup;
  /** The volume that keeps the data; null: the data is removed with the container. */
  volume: string | null;
  job: JobRun;
};

/**
 * Restores the backup into an isolated server and compares it with the original. With a volume, the database can run
 * on that afterwards.
 * @throws DamageError if the backup is damaged
 */
export async function rebuild(host: Host, { spec, backup, volume, job }: Rebuild): Promise<void> {
  const { engine } = host;
  const copier = copiers[spec.type];
  const lease = { backupId: backup.backupId, jobId: job.jobId, attempt: backup.attempt };
  await host.isolation.demand();
  await host.buildRoom.demandDisk();
  await ensureImage(host, spec.image, job.signal);
  const wanted = await fetchFingerprint(host.backups, lease, backup, job.signal);
  const container = copyContainer(host.agentId, spec, backup.backupId, job.jobId, volume);
  await removeCopy(host, job.jobId);
  job.signal.throwIfAborted();
  const room = await host.buildRoom.receive("backup");
  const id = await engine.createContainer(container).catch((error: unknown) => {
    room.end();
    throw error;
  });
  const signal = AbortSignal.any([job.signal, room.signal]);
  const server: Server = { engine, id, spec, signal };
  const bytes = () => fetchBackup(host.backups, lease, backup, signal);
  const compare = async (except?: string[]) =>
    difference(wanted, await copier.fingerprint(server, wanted), except);
  try {
    let differs: string | null;
    if (copier.seed) {
      await putFile(host, server, copier.seed.file, backup.sizeBytes, bytes());
      await engine.startContainer(id);
      await untilSeeded(server, copier.seed.ready);
      differs = await compare();
    } else {
      await engine.startContainer(id);
      await untilReady(host, id, spec, signal);
      await engines[spec.type].arrange(spec, (program) => run(host, id, program, signal));
      const from = { ...wanted, ...backup };
      try {
        await copier.fill?.(server, bytes(), from);
        differs = await compare();
      } catch (error) {
        signal.throwIfAborted();
        const isRejected =
          error instanceof UnfitError && (await judged(host, id, error)) instanceof DamageError;
        if (!isRejected || !copier.refill) throw error;
        differs = error.message;
      }
      if (differs !== null && copier.refill) {
        await copier.refill(server, bytes, from);
        differs = await compare(copier.computedAnew);
      }
    }
    if (differs !== null) throw new DamageError(differs);
    if (volume !== null) {
      await copier.settle?.(server);
      await engine.stopContainer(id, stopGraceSeconds);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw await judged(host, id, error);
  } finally {
    room.end();
    await engine.removeContainer(id);
  }
}

const saysOutOfMemory = (lines: readonly string[]): boolean =>
  lines.some((line) => /out of memory/i.test(line));

/** PostgreSQL runs on after a process of it was killed, and has written some twenty lines by then. */
const saysInterrupted = (lines: readonly string[]): boolean => lines.some((line) => interrupted.test(line));
const interrupted =
  /terminated by signal|because of crash of another|server closed the connection|no connection to the server|in recovery mode|lost connection to|server has gone away/i;

/** Attributes an error to the host, where a retry may help, or to the backup. */
async function judged(host: Host, id: string, error: unknown): Promise<unknown> {
  const state = await host.engine.inspectContainer(id);
  const lines = await host.engine.lastLines(id, 50).catch(() => []);
  if (error instanceof DamageError) return error;
  const words = [String(error), ...lines];
  if (state?.oomKilled || saysOutOfMemory(words))
    return new JobError("Restoring it needed more memory than the pack has: choose a larger pack.", {
      cause: error,
    });
  if (saysDiskFull(words)) return new JobError(diskIsFull("try again"), { cause: error });
  if (!(error instanceof UnfitError)) return error;
  if (saysDiskBroken(words.join("\n"))) return new Error(words.join(" | "), { cause: error });
  if (!state?.running || saysInterrupted(words))
    return new JobError(
      "The server that it was being restored into, or a process of it, ended: try again, and choose a larger pack if it happens again.",
      { cause: error },
    );
  return new DamageError(`It could not be restored: ${error.message.split("\n")[0]?.slice(0, 300)}`);
}

const copyName = (jobId: string): string => `berth-copy-${jobId}`;

/** Like the database's own container, but without a network or automatic restarts. */
function copyContainer(
  agentId: string,
  spec: DatabaseSpec,
  backupId: string,
  jobId: string,
  volume: string | null,
): ContainerSpec {
  const engine = engines[spec.type];
  const copier = copiers[spec.type];
  const command = copier.seed?.command ?? [
    ...engine.command(spec.limits),
    ...(copier.filling ?? []),
    ...(volume === null ? (copier.hasty ?? []) : []),
  ];
  const memoryMb = copier.roomyMb?.(spec.limits.memoryMb) ?? spec.limits.memoryMb;
  return {
    name: copyName(jobId),
    Image: spec.image,
    Env: engine.env(spec),
    Cmd: command,
    StopSignal: engine.stopSignal,
    StopTimeout: stopGraceSeconds,
    Labels: {
      [label.managed]: "true",
      [label.agent]: agentId,
      [label.account]: spec.accountId,
      [label.copy]: backupId,
    },
    HostConfig: {
      ...hardening,
      ...limitsOf({ ...spec.limits, memoryMb }),
      RestartPolicy: { Name: "no" },
      NetworkMode: "none",
      // When memory is short, the kernel kills this before any site.
      OomScoreAdj: 900,
      ShmSize: Math.max(64, Math.floor(spec.limits.memoryMb / 4)) * 1024 * 1024,
      ...(volume !== null && {
        Mounts: [{ Type: "volume" as const, Source: volume, Target: engine.dataPath }],
      }),
    },
  };
}

/** What an earlier attempt of the job left. It uses the volume that the data was being restored into. */
export async function removeCopy(host: Host, jobId: string): Promise<void> {
  const found = await host.engine.inspectContainer(copyName(jobId));
  if (found) await host.engine.removeContainer(found.id);
}

async function putFile(
  host: Host,
  { id, spec, signal }: Server,
  name: string,
  size: number,
  bytes: AsyncIterable<Buffer>,
): Promise<void> {
  const archive = tar.pack();
  const over = new AbortController();
  const end = AbortSignal.any([signal, over.signal]);
  const put = host.engine.writeFiles(id, engines[spec.type].dataPath, archive, end);
  // It may fail while bytes are waited for: the next ones meet its failure.
  put.catch(() => undefined);
  const entry = archive.entry({ name, size, mode: 0o644 });
  try {
    for await (const chunk of bytes) if (!entry.write(chunk)) await Promise.race([once(entry, "drain"), put]);
  } catch (error) {
    // The engine would wait for the announced number of bytes.
    over.abort();
    archive.destroy();
    throw error;
  }
  entry.end();
  archive.finalize();
  await put;
}

/** Waits until the server has loaded the file. @throws DamageError if it refuses it, UnfitError if it ends otherwise */
async function untilSeeded(
  { engine, id, signal }: Server,
  ready: { command: string[]; says: string },
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const state = await engine.inspectContainer(id);
    if (!state?.running) {
      const lines = await engine.lastLines(id, 5);
      const said = lines.join(" | ");
      // Redis ends with 1 if it refuses a file, with another code if it is told to end, is killed or crashes.
      const refuses = state?.exitCode === 1 && !state.oomKilled;
      if (!refuses || saysDiskFull(lines) || saysDiskBroken(said) || saysOutOfMemory(lines))
        throw new UnfitError(said);
      throw new DamageError(`The server did not load it: ${said.slice(-300)}`);
    }
    const answer = await engine.execute(id, { command: ready.command }, signal).catch(() => null);
    if (answer?.exitCode === 0 && answer.stdout.includes(ready.says)) return;
    await delay(100, undefined, { signal });
  }
}
