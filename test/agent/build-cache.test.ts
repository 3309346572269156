import { expect, it } from "vitest";
import { cacheBytes, openBuildCache } from "../../agent/isolation/build-cache.ts";

const gibibyte = 1024 ** 3;
const disk = (gibibytes: number) => ({ freeBytes: 0, totalBytes: gibibytes * gibibyte });

function cacheOf(prune: (keepBytes: number, signal: AbortSignal) => Promise<number>) {
  const pruned: number[] = [];
  const clock = { ms: 0 };
  const cache = openBuildCache({
    engine: {
      pruneBuildCache: (keepBytes, signal) => {
        pruned.push(keepBytes);
        return prune(keepBytes, signal);
      },
    },
    disk: () => Promise.resolve(disk(100)),
    maxMb: null,
    now: () => clock.ms,
  });
  return { cache, pruned, clock };
}

it("the bound is 10 GiB, a fifth of a small disk, or what the operator says", () => {
  expect(cacheBytes(disk(1000), null)).toBe(10 * gibibyte);
  expect(cacheBytes(disk(20), null)).toBe(4 * gibibyte);
  expect(cacheBytes(null, null)).toBe(10 * gibibyte);
  expect(cacheBytes(disk(20), 0)).toBe(0);
});

it("it is kept after the last build, and every ten minutes at most", async () => {
  const { cache, pruned, clock } = cacheOf(() => Promise.resolve(1));
  cache.buildBegins();
  cache.buildBegins();
  await cache.buildEnds();
  expect(pruned).toEqual([]);
  await cache.buildEnds();
  expect(pruned).toEqual([10 * gibibyte]);
  cache.buildBegins();
  await cache.buildEnds();
  expect(pruned).toHaveLength(1);
  clock.ms = 10 * 60_000;
  cache.buildBegins();
  await cache.buildEnds();
  expect(pruned).toHaveLength(2);
});

it("a build that begins ends it, and it goes on after that", async () => {
  const { cache, pruned } = cacheOf(
    (_, signal) =>
      new Promise((resolve, reject) => {
        if (pruned.length > 1) return resolve(0);
        signal.addEventListener("abort", () => reject(new Error("aborted")));
      }),
  );
  cache.buildBegins();
  const ended = cache.buildEnds();
  await expect.poll(() => pruned.length).toBe(1);
  cache.buildBegins();
  await ended;
  await cache.buildEnds();
  expect(pruned).toHaveLength(2);
});
