import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { VolumeSummary } from "../docker/engine.ts";
import type { Host } from "../host.ts";
import { log } from "../log.ts";
import { writeAtomically } from "../write-atomically.ts";

type Means = Pick<Host, "engine" | "workDirectory">;

/** What would stay on the engine for ever, were this process killed before it has undone it: nothing else recognizes it. */
export type LeftOver =
  /** Files made immutable. Those of `own` are a site's, and are made again. */
  | { kind: "volumes"; volumes: VolumeSummary[]; own: string[] }
  /** A name that others must not find an image under. */
  | { kind: "image name"; name: string }
  /** An image that others must not find by its digest. */
  | { kind: "unnamed image"; id: string };

const ending = ".left-over.json";
export const isNote = (name: string): boolean => name.endsWith(ending);

/** Does the work, then undoes this; if the process ends before, the next one does. */
export async function undoneAfter<T>(host: Means, leftOver: LeftOver, work: () => Promise<T>): Promise<T> {
  const file = join(host.workDirectory, `${randomUUID()}${ending}`);
  writeAtomically(file, JSON.stringify(leftOver));
  try {
    return await work();
  } finally {
    await undo(host, leftOver);
    await rm(file);
  }
}

/** Undoes what the previous process could not. Call once no container is left that it was making. */
export async function undoLeftOvers(host: Means): Promise<void> {
  for (const name of (await readdir(host.workDirectory)).filter(isNote))
    try {
      const file = join(host.workDirectory, name);
      await undo(host, JSON.parse(await readFile(file, "utf8")) as LeftOver);
      await rm(file);
    } catch (error) {
      log("error", "What a killed agent left on the engine was not removed", { name, error });
    }
}

async function undo(host: Means, leftOver: LeftOver): Promise<void> {
  switch (leftOver.kind) {
    case "volumes":
      for (const volume of leftOver.volumes) await giveUp(host, volume, leftOver.own);
      return;
    case "image name":
      return host.engine.removeImage(leftOver.name);
    case "unnamed image":
      return void (await host.engine.removeUnnamed(leftOver.id));
    default:
      leftOver satisfies never;
  }
}

/** An immutable file takes no more, not even from who has it open (chattr(1)). */
export async function chattr(flag: "+i" | "-i", volumes: readonly VolumeSummary[]): Promise<void> {
  if (volumes.length === 0) return;
  const folders = volumes.map(({ folder }) => folder);
  await promisify(execFile)("chattr", ["-R", "-f", flag, ...folders]).catch((error: unknown) =>
    log("warn", "Not all files of these volumes have taken the attribute", { flag, folders, error }),
  );
}

/** What was copied until then goes. One that a container has after all stays. */
async function giveUp({ engine }: Means, volume: VolumeSummary, own: readonly string[]): Promise<void> {
  await chattr("-i", [volume]);
  const isGone = await engine.removeVolume(volume.name).catch((error: unknown) => {
    log("error", "A volume that filled the disk was not removed", { name: volume.name, error });
    return false;
  });
  if (isGone && own.includes(volume.name)) await engine.ensureVolume(volume.name, volume.labels);
}
