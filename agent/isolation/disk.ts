import type { StatsFs } from "node:fs";
import { statfs } from "node:fs/promises";
import { JobError } from "../job.ts";

const gigabyte = 1e9;
const watchMs = 1000;

/** `bytesPerFile`: counts each file as this many bytes, if inodes run out before bytes do. */
export type Disk = { freeBytes: number; totalBytes: number; bytesPerFile?: number };

/** Free space that builds must leave: the operator's choice, or 2 GiB, or 5 % of a large disk. */
export function floorBytes({ totalBytes }: Disk, minFreeMb: number | null): number {
  return minFreeMb === null ? Math.max(2 * 1024 ** 3, totalBytes * 0.05) : minFreeMb * 1024 * 1024;
}

/** Some file systems have no inode limit and report 0. */
export function diskOf({
  bavail,
  blocks,
  bsize,
  files,
  ffree,
}: Pick<StatsFs, "bavail" | "blocks" | "bsize" | "files" | "ffree">): Disk {
  const [freeBytes, totalBytes] = [bavail * bsize, blocks * bsize];
  const freeAsFiles = files > 0 ? (ffree / files) * totalBytes : Infinity;
  return freeAsFiles < freeBytes
    ? { freeBytes: freeAsFiles, totalBytes, bytesPerFile: totalBytes / files }
    : { freeBytes, totalBytes };
}

/** null: it does not exist. */
export async function diskAt(path: string): Promise<Disk | null> {
  try {
    return diskOf(await statfs(path));
  } catch {
    // If the engine runs in a virtual machine, the agent cannot see its files.
    return null;
  }
}

/** The disk of these paths with the least room above its floor. */
export async function fullestOf(paths: readonly string[], minFreeMb: number | null): Promise<Disk | null> {
  const room = (disk: Disk) => disk.freeBytes - floorBytes(disk, minFreeMb);
  const disks = (await Promise.all(paths.map(diskAt))).filter((disk) => disk !== null);
  return disks.toSorted((a, b) => room(a) - room(b))[0] ?? null;
}

const gigabytes = (bytes: number) => `${(bytes / gigabyte).toFixed(1)} GB`;

/** If inodes run out first, gigabytes would be misleading. */
export function tooFull(disk: Disk, minFreeMb: number | null): string {
  const { freeBytes, bytesPerFile } = disk;
  const floor = floorBytes(disk, minFreeMb);
  const files = (bytes: number) => Math.ceil(bytes / (bytesPerFile ?? 1)).toLocaleString("en");
  const has =
    bytesPerFile === undefined
      ? `only ${gigabytes(freeBytes)} of free disk space, and a deployment needs ${gigabytes(floor)}`
      : `room on its disk for only ${files(freeBytes)} more files, and a deployment needs room for ${files(floor)}`;
  return `This host has ${has}: try again later, or ask the operator to make room.`;
}

/** @throws JobError if there is too little room for a build */
export async function demandDisk(paths: readonly string[], minFreeMb: number | null): Promise<void> {
  for (const path of paths) {
    const disk = await diskAt(path);
    if (disk && disk.freeBytes < floorBytes(disk, minFreeMb)) throw new JobError(tooFull(disk, minFreeMb));
  }
}

/** Aborts when free space falls below half the floor; the rest is left for the sites. */
export function watchDisk(
  paths: readonly string[],
  minFreeMb: number | null,
  what: { ended: string; advice: string },
): { signal: AbortSignal; end(): void } {
  const full = new AbortController();
  const timer = setInterval(() => {
    void fullestOf(paths, minFreeMb).then((disk) => {
      if (disk && disk.freeBytes < floorBytes(disk, minFreeMb) / 2)
        full.abort(
          new JobError(
            `${what.ended} was ended because this host ran out of free disk space: ${what.advice}.`,
          ),
        );
    });
  }, watchMs);
  return { signal: full.signal, end: () => clearInterval(timer) };
}
