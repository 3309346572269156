import { expect, it } from "vitest";
import { cacheBytes, openBuildCache } from "../../agent/isolation/build-cache.ts";

const gibibyte = 1024 ** 3;
const disk = (gibibytes: number) => ({ freeBytes: 0, totalBytes: gibibytes * gibibyte });

function cacheOf(
  prune: (keepBytes: number, signal: AbortSignal) => Promise<number>,
  found = { ...disk(100), freeBytes: 50 * gibibyte },
) {
  const pruned: number[] = [];
  const clock = { ms: 0 };
  const cache = openBuildCache({
    engine: {
      pruneBuildCache: (keepBytes, signal) => {
        pruned.push(keepBytes);
        return prune(keepBytes, signal);
      },
    },
    disk: () => Promise.resolve({ ...found }),
    maxMb: null,
    minFreeDiskMb: null,
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

/** A cache on a disk of 100 GiB, of which 95 can be free. */
function filledCache() {
  const found = { totalBytes: 100 * gibibyte, freeBytes: 95 * gibibyte };
  const fill = (gibibytes: number) => void (found.freeBytes = (95 - gibibytes) * gibibyte);
  const opened = cacheOf((keepBytes) => {
    const freedBytes = Math.max(95 * gibibyte - found.freeBytes - keepBytes, 0);
    found.freeBytes += freedBytes;
    return Promise.resolve(freedBytes);
  }, found);
  return { ...opened, fill, found };
}

it("a build that fills the disk right after it was kept has it kept again", async () => {
  const { cache, pruned, fill, found } = filledCache();
  cache.buildBegins();
  await cache.buildEnds();
  cache.buildBegins();
  fill(94);
  await cache.buildEnds();
  expect(pruned).toEqual([10 * gibibyte, 10 * gibibyte]);
  expect(found.freeBytes).toBe(85 * gibibyte);
});

it("what it holds is given up before a deployment is refused for want of room, unless something is built", async () => {
  const { cache, pruned, fill, found } = filledCache();
  await cache.makeRoom();
  expect(pruned).toEqual([]);
  fill(94);
  cache.buildBegins();
  await cache.makeRoom();
  expect(pruned).toEqual([]);
  await cache.buildEnds();
  fill(94);
  await Promise.all([cache.makeRoom(), cache.makeRoom()]);
  expect(pruned).toEqual([10 * gibibyte, 10 * gibibyte]);
  expect(found.freeBytes).toBe(85 * gibibyte);
});

it("on a disk that is full of other things, all of it is given up, and every ten minutes at most", async () => {
  const { cache, pruned, clock } = cacheOf(() => Promise.resolve(0), disk(100));
  cache.buildBegins();
  await Promise.all([cache.buildEnds(), cache.makeRoom(), cache.makeRoom()]);
  await cache.makeRoom();
  expect(pruned.splice(0)).toEqual([10 * gibibyte, 10 * gibibyte, 0]);
  clock.ms = 10 * 60_000;
  await cache.makeRoom();
  expect(pruned).toHaveLength(2);
});

it("an engine that does not prune is asked every ten minutes at most", async () => {
  const { cache, pruned } = cacheOf(() => Promise.reject(new Error("no")), disk(100));
  await cache.makeRoom();
  await cache.makeRoom();
  expect(pruned).toHaveLength(1);
});
