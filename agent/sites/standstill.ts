import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseListeners, socketTables, type Listener } from "../docker/listening.ts";
import { controlFolder, hasEnded, readUsage } from "../docker/usage.ts";

/** What a container does at one moment. */
export type Activity = { listeners: readonly Listener[]; processes: readonly string[]; cpuMs: number };

/** So long nothing may change. */
const quietMs = 4000;
/** What a program takes that only waits, of one processor. */
const idleShare = 0.1;

/**
 * Tells an app that listens and only waits from now on from one that is still coming up: its listeners and processes are the
 * same for some seconds, in which it does next to nothing.
 */
export class Standstill {
  private last: (Activity & { atMs: number; sinceMs: number }) | undefined;

  /** @returns whether an app that listens has come to rest */
  take(now: Activity, atMs: number): boolean {
    const { last } = this;
    const isSame =
      last !== undefined &&
      textOf(last) === textOf(now) &&
      now.cpuMs - last.cpuMs <= (atMs - last.atMs) * idleShare;
    const sinceMs = isSame ? last.sinceMs : atMs;
    this.last = { ...now, atMs, sinceMs };
    return now.listeners.length > 0 && atMs - sinceMs >= quietMs;
  }
}

const textOf = ({ listeners, processes }: Activity): string =>
  JSON.stringify([
    listeners.map(({ port, loopbackOnly }) => `${port} ${loopbackOnly}`).toSorted(),
    processes,
  ]);

/** From the kernel's own files; null when they do not tell, or it has ended. */
export async function activityOf(container: { id: string; pid: number }): Promise<Activity | null> {
  try {
    const usage = readUsage(container.id, container.pid);
    const processes = processesOf(container);
    if (!usage || !processes) return null;
    const listeners = parseListeners(...(await socketTables(container.pid)));
    return { listeners, processes, cpuMs: usage.cpuNanoseconds / 1e6 };
  } catch (error) {
    if (hasEnded(error)) return null;
    throw error;
  }
}

function processesOf(container: { id: string; pid: number }): string[] | null {
  const found = controlFolder(container, "cpu");
  return found && readFileSync(join(found.folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean);
}

/** The arguments of each of its processes. */
export function commandsOf(container: { id: string; pid: number }): string[][] {
  try {
    return (processesOf(container) ?? []).flatMap((id) => {
      try {
        return [readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0").slice(0, -1)];
      } catch {
        // It has ended.
        return [];
      }
    });
  } catch {
    return [];
  }
}
