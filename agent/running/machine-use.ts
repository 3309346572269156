import { cpus, freemem, totalmem } from "node:os";
import type { HostUsage } from "../../protocol/api/hosts.ts";
import { mebibyte } from "../docker/mebibyte.ts";
import type { Disk } from "../isolation/disk.ts";

const intervalMs = 10_000;

type Times = { busyMs: number; allMs: number };
/** Of all processors since the machine started. */
function timesNow(): Times {
  const times = cpus().map((one) => one.times);
  const allMs = times.flatMap((one) => Object.values(one)).reduce((sum, ms) => sum + ms, 0);
  return { allMs, busyMs: allMs - times.reduce((sum, { idle }) => sum + idle, 0) };
}

/** The part of the machine's processors that was busy during the last seconds; null until it is known. */
export function watchProcessors(signal: AbortSignal, read = timesNow): () => number | null {
  let before = read();
  let busy: number | null = null;
  const timer = setInterval(() => {
    const now = read();
    const passedMs = now.allMs - before.allMs;
    if (passedMs > 0) busy = Math.min(1, Math.max(0, (now.busyMs - before.busyMs) / passedMs));
    before = now;
  }, intervalMs);
  timer.unref();
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  return () => busy;
}

const megabytes = (bytes: number): number => Math.floor(bytes / mebibyte);

/** What is used of the machine, by whatever runs on it. */
export async function machineUse(
  busy: () => number | null,
  disk: () => Promise<Disk | null>,
): Promise<HostUsage> {
  const [all, free] = [totalmem(), freemem()];
  const found = await disk();
  return {
    at: new Date().toISOString(),
    cpuCount: cpus().length,
    cpuBusy: busy(),
    memory: { usedMb: megabytes(all - free), totalMb: megabytes(all) },
    disk: found && {
      usedMb: megabytes(found.totalBytes - found.freeBytes),
      totalMb: megabytes(found.totalBytes),
    },
  };
}
