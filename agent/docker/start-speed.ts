import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { log } from "../log.ts";
import type { ContainerState } from "./engine.ts";
import { ownerOf } from "./specs.ts";
import { controlFolder, hasEnded } from "./usage.ts";

type Limited = Pick<ContainerState, "id" | "pid" | "cpuMilli"> & Partial<Pick<ContainerState, "labels">>;

/** A program that starts works in one thread, its compiler in others. */
const startMilli = 2000;
/** The first answers take many times what the next ones do. */
const firstAnswersMs = 2000;
const startMs = 60_000;
/** Below a hundredth of a processor the longer one: the kernel takes no less than a millisecond of each. */
const periodsMicroseconds = { usual: 100_000, longest: 1_000_000 };
/** Of a site's or a database's, in an hour: starts that fail again and again would be a larger pack. */
const mostMs = 5 * startMs;
const hourMs = 3_600_000;
const spent = new Map<string, { sinceMs: number; ms: number }>();

/**
 * Runs what waits for a container that starts, and lets it have more processors than its pack meanwhile: most packs have less
 * than one, and the kernel stops whoever has used it up for the rest of a tenth of a second, in the middle of the first answers.
 * Where cores are short, each still gets as much as was paid for. The engine knows nothing of it: what it starts by itself
 * is held to its pack.
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

/** Also what an agent before this one has let start, or slowed down. */
export const holdToPack = (container: Limited, root = "/"): void => give(container, 0, root);

/** To less than its pack has. */
export const holdTo = (container: Limited, milli: number, root = "/"): void =>
  give({ ...container, cpuMilli: milli }, 0, root);

let warned = false;

/** At least what its pack has, in the kernel's own files: they take microseconds, the engine's way a tenth of a start. */
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
    if (!warned) log("warn", "Containers start with no more processors than their pack has", { error });
    warned = true;
  }
}
