import type { Engine } from "../docker/engine.ts";
import { log } from "../log.ts";
import type { Disk } from "./disk.ts";

/** Bounds what the engine keeps of builds: looked at after builds, when none is under way, and seldom. */
export type BuildCache = {
  buildBegins(): void;
  /** Resolves when the cache is as small as it should be, or the next build begins; nobody need wait for it. */
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
      // Both would read and write the same disk.
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
        if (freedBytes > 0) log("info", "The oldest of the build cache was removed", { freedBytes });
      } catch (error) {
        // What was interrupted goes on after the next build.
        if (!signal.aborted) log("error", "The build cache was not made smaller", { error });
      } finally {
        pruning = undefined;
      }
    },
  };
}
