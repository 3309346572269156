import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { log } from "../log.ts";
import type { ContainerState } from "./engine.ts";
import { ownerOf } from "./specs.ts";
import { controlFolder, hasEnded } from "./usage.ts";

type Limited = Pick<ContainerState, "id" | "pid" | "cpuMilli"> & Partial<Pick<ContainerState, "labels">>;

/** A starting program works in one thread and its compiler in others. */
const startMilli = 2000;
/** The first responses take many times as long as later ones. */
const firstAnswersMs = 2000;
const startMs = 60_000;
/** Below a hundredth of a core the longer one: the kernel's minimum quota is a millisecond per period. */
const periodsMicroseconds = { usual: 100_000, longest: 1_000_000 };
/** The limit per site or database and hour: otherwise repeated failing starts would amount to a larger pack. */
const mostMs = 5 * startMs;
const hourMs = 3_600_000;
const spent = new Map<string, { sinceMs: number; ms: number }>();

/**
 * Runs `work`, which waits for a starting container, and raises the container's CPU limit meanwhile: most packs have
 * less than one core, and throttling would stall the first responses for up to a tenth of a second each. When cores
 * are short, the shares still apply. The engine does not know of it: containers that it starts itself keep their
 * pack's limit.
 */
export async function atStartSpeed<T>(container: Limited, work: () => Promise<T>, root = "/"): Promise<T> {
  const used = spentBy(ownerOf(container.labels ?? {}) ?? container.id);
  if (used.ms >= mostMs) return work();
  const hold = () => holdToPack(container, root);
  const began = performance.now();
  give(container, startMilli, root);
  const longest = setTimeout(hold, startMs).unref();
  try {
    return await work();
  } finally {
    used.ms += Math.min(performance.now() - began, startMs) + firstAnswersMs;
    clearTimeout(longest);
    setTimeout(hold, firstAnswersMs).unref();
  }
}

function spentBy(owner: string): { ms: number } {
  const now = performance.now();
  for (const [one, { sinceMs }] of spent) if (now - sinceMs >= hourMs) spent.delete(one);
  const used = spent.get(owner) ?? { sinceMs: now, ms: 0 };
  spent.set(owner, used);
  return used;
}

/** Resets the limit, also after an agent before this one raised or lowered it. */
export const holdToPack = (container: Limited, root = "/"): void => give(container, 0, root);

/** Limits a container to less than its pack. */
export const holdTo = (container: Limited, milli: number, root = "/"): void =>
  give({ ...container, cpuMilli: milli }, 0, root);

let warned = false;

/**
 * Sets the CPU limit, at least that of the pack, in the kernel's own files: this takes microseconds, the engine's API
 * a tenth of a start.
 */
function give({ cpuMilli, ...container }: Limited, atLeastMilli: number, root: string): void {
  if (cpuMilli === null) return;
  const milli = Math.max(cpuMilli, atLeastMilli);
  const period = milli < 10 ? periodsMicroseconds.longest : periodsMicroseconds.usual;
  const quota = (milli * period) / 1000;
  try {
    const found = controlFolder(container, "cpu", root);
    if (!found) return;
    const files =
      found.version === 1
        ? { "cpu.cfs_period_us": `${period}`, "cpu.cfs_quota_us": `${quota}` }
        : { "cpu.max": `${quota} ${period}` };
    for (const [name, value] of Object.entries(files))
      writeFileSync(join(found.folder, name), value, { flag: "r+" });
  } catch (error) {
    if (hasEnded(error)) return;
    if (!warned) log("warn", "Containers start with no more CPU than their pack has", { error });
    warned = true;
  }
}
