import { mkdir } from "node:fs/promises";
import type { StoredVolume } from "../../protocol/agent/backups.ts";
import { difference } from "../databases/backups/compare.ts";
import { DamageError } from "../databases/backups/damage.ts";
import { fetchBackup, fetchFingerprint } from "../databases/backups/fetch.ts";
import { diskIsFull, saysDiskFull } from "../docker/disk-full.ts";
import type { Host } from "../host.ts";
import { JobError, type JobRun } from "../job.ts";
import { removeTree } from "../remove-tree.ts";
import { contentsOf, TarError, unpack } from "./archive.ts";

/**
 * Unpacks a backup into this folder, which is created anew, and compares it with the original. After an error the
 * folder is gone.
 * @param limitBytes the most that it may take on the disk
 * @throws DamageError if the backup is damaged
 */
export async function rebuildVolume(
  host: Host,
  folder: string,
  backup: StoredVolume,
  job: JobRun,
  limitBytes = Infinity,
): Promise<void> {
  const lease = { backupId: backup.backupId, jobId: job.jobId, attempt: backup.attempt };
  await host.buildRoom.demandDisk();
  const wanted = await fetchFingerprint(host.backups, lease, backup, job.signal);
  const diskBytes = Number(wanted.settings?.find(({ name }) => name === "disk_bytes")?.value ?? 0);
  if (diskBytes > limitBytes)
    throw new JobError(
      `The backup takes ${gigabytes(diskBytes)} GB, and a site of this pack is stopped beyond ${gigabytes(limitBytes)}: choose a larger pack, then restore it again.`,
    );
  await removeTree(folder);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const room = await host.buildRoom.receive("backup");
  const signal = AbortSignal.any([job.signal, room.signal]);
  try {
    await unpack(fetchBackup(host.backups, lease, backup, signal), folder, signal);
    const { settings: _, ...compared } = wanted;
    const differs = difference(compared, await contentsOf(folder, signal));
    if (differs !== null) throw new DamageError(differs.replace("the table entries", "the volume"));
  } catch (error) {
    await removeTree(folder);
    signal.throwIfAborted();
    if (!(error instanceof TarError)) throw error;
    if (saysDiskFull([error.message])) throw new JobError(diskIsFull("try again"), { cause: error });
    if (saysSystemRefused.test(error.message)) throw error;
    throw new DamageError(`It could not be unpacked: ${error.message}`);
  } finally {
    room.end();
  }
}

/** tar's words if the system refuses a call, as of a disk that does not work; of an archive's form it has others. */
const saysSystemRefused = /: Cannot |memory exhausted/;

const gigabytes = (bytes: number): string => (bytes / 1024 ** 3).toFixed(1);
