import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { HostUsage } from "../../protocol/api/hosts.ts";
import { machineUse, watchProcessors } from "../../agent/running/machine-use.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("the processors' use is that of the last seconds, not since the start, and unknown at first", () => {
  const over = new AbortController();
  let times = { busyMs: 9000, allMs: 10_000 };
  const busy = watchProcessors(over.signal, () => times);
  expect(busy()).toBeNull();
  times = { busyMs: 9500, allMs: 12_000 };
  vi.advanceTimersByTime(10_000);
  expect(busy()).toBe(0.25);
  // Nothing passed: a machine that slept.
  vi.advanceTimersByTime(10_000);
  expect(busy()).toBe(0.25);
  over.abort();
  times = { busyMs: 19_500, allMs: 22_000 };
  vi.advanceTimersByTime(60_000);
  expect(busy()).toBe(0.25);
});

it("what is used of memory and disk is what is not free, and a disk that the agent cannot see is unknown", async () => {
  const gigabyte = 1024 ** 3;
  const disk = () => Promise.resolve({ freeBytes: 3 * gigabyte, totalBytes: 4 * gigabyte });
  const use = HostUsage.parse(await machineUse(() => 0.5, disk));
  expect(use).toMatchObject({ cpuBusy: 0.5, disk: { usedMb: 1024, totalMb: 4096 } });
  expect(use.memory.usedMb).toBeGreaterThan(0);
  expect(use.memory.usedMb).toBeLessThan(use.memory.totalMb);
  const unseen = await machineUse(
    () => null,
    () => Promise.resolve(null),
  );
  expect(unseen).toMatchObject({ cpuBusy: null, disk: null });
});
