import type { Engine } from "../docker/engine.ts";
import { log } from "../log.ts";
import type { Disk } from "./disk.ts";

/** Limits the engine's build cache: checked after builds, when none is running, and at long intervals. */
export type BuildCache = {
  buildBegins(): void;
  /** Resolves when the cache is within its limit or the next build begins; awaiting it is optional. */
  buildEnds(): Promise<void>;
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
  now?: () => number;
}): BuildCache {
  const { engine, disk, maxMb, now = () => performance.now() } = options;
  let builds = 0;
  let prunedAtMs = -everyMs;
  let pruning: AbortController | undefined;
  return {
    buildBegins() {
      builds++;
      // Both would compete for the same disk.
      pruning?.abort();
    },
    async buildEnds() {
      builds--;
      if (builds > 0 || pruning || now() - prunedAtMs < everyMs) return;
      const { signal } = (pruning = new AbortController());
      try {
        const keepBytes = cacheBytes(await disk(), maxMb);
        signal.throwIfAborted();
        const freedBytes = await engine.pruneBuildCache(Math.floor(keepBytes), signal);
        prunedAtMs = now();
        if (freedBytes > 0) log("info", "The oldest entries of the build cache were removed", { freedBytes });
      } catch (error) {
        // An interrupted run resumes after the next build.
        if (!signal.aborted) log("error", "The build cache was not pruned", { error });
      } finally {
        pruning = undefined;
      }
    },
  };
}
