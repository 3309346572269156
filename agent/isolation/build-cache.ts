import type { Engine } from "../docker/engine.ts";
import { log } from "../log.ts";
import { floorBytes, type Disk } from "./disk.ts";

/** Limits the engine's build cache: checked after builds, when none is running, and at long intervals unless the disk is full. */
type BuildCache = {
  buildBegins(): void;
  /** Resolves when the cache is within its limit or the next build begins; awaiting it is optional. */
  buildEnds(): Promise<void>;
  /** Gives up the cache where the disk is full, no build is running, and that was not in vain lately. */
  makeRoom(): Promise<void>;
};

const everyMs = 10 * 60_000;
const defaultBytes = 10 * 1024 ** 3;

/** The operator's choice, or 10 GiB, or 20 % of a small disk. */
export const cacheBytes = (disk: Disk | null, maxMb: number | null): number =>
  maxMb === null ? Math.min(defaultBytes, (disk?.totalBytes ?? Infinity) * 0.2) : maxMb * 1024 ** 2;

export function openBuildCache(options: {
  engine: Pick<Engine, "pruneBuildCache">;
  disk: () => Promise<Disk | null>;
  maxMb: number | null;
  minFreeDiskMb: number | null;
  now?: () => number;
}): BuildCache {
  const { engine, disk, maxMb, minFreeDiskMb, now = () => performance.now() } = options;
  let builds = 0;
  let prunedAtMs = -everyMs;
  let inVainAtMs = -everyMs;
  let pruning: { stop: AbortController; ended: Promise<void> } | undefined;

  const isFull = (found: Disk | null) => found !== null && found.freeBytes < floorBytes(found, minFreeDiskMb);

  /** @param forRoom what is within the limit is given up as well, where the disk is full: a host without room builds nothing */
  async function prune(forRoom: boolean, signal: AbortSignal): Promise<void> {
    const found = await disk();
    const isDue = forRoom
      ? isFull(found) && now() - inVainAtMs >= everyMs
      : isFull(found) || now() - prunedAtMs >= everyMs;
    if (!isDue) return;
    for (const keepBytes of [cacheBytes(found, maxMb), ...(forRoom ? [0] : [])]) {
      signal.throwIfAborted();
      const freedBytes = await engine.pruneBuildCache(Math.floor(keepBytes), signal);
      prunedAtMs = now();
      if (freedBytes > 0) log("info", "The oldest entries of the build cache were removed", { freedBytes });
      if (!isFull(await disk())) return;
    }
    if (forRoom) inVainAtMs = now();
  }

  function start(forRoom: boolean): Promise<void> {
    const stop = new AbortController();
    const ended = prune(forRoom, stop.signal)
      .catch((error: unknown) => {
        // An interrupted run resumes after the next build.
        if (stop.signal.aborted) return;
        inVainAtMs = now();
        log("error", "The build cache was not pruned", { error });
      })
      .finally(() => (pruning = undefined));
    pruning = { stop, ended };
    return ended;
  }

  return {
    buildBegins() {
      builds++;
      // Both would compete for the same disk.
      pruning?.stop.abort();
    },
    async buildEnds() {
      builds--;
      if (builds > 0 || pruning) return;
      await start(false);
    },
    async makeRoom() {
      await pruning?.ended;
      if (builds === 0) await (pruning?.ended ?? start(true));
    },
  };
}
