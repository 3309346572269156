import { setTimeout as delay } from "node:timers/promises";
import type { SiteSample } from "../../protocol/api/running.ts";
import type { Engine } from "../docker/engine.ts";
import type { Usage } from "../docker/usage.ts";
import type { Ingress } from "../host.ts";
import { log } from "../log.ts";
import type { Records } from "./records.ts";

type Means = { engine: Engine; ingress: Ingress; records: Records; intervalMs: number };
type Reading = Usage & { atMs: number };
type Sample = Omit<SiteSample, "at">;

const mebibyte = 1024 * 1024;
/** Statistics asked for at once. */
const concurrency = 4;

/** One sample of every site in service per interval, at round times; one call to the engine each. */
export function startSampling(means: Means, signal: AbortSignal): void {
  const { intervalMs, ingress, records } = means;
  let before = new Map<string, Reading>();
  const loop = async () => {
    for (;;) {
      await delay(intervalMs - (Date.now() % intervalMs), undefined, { signal, ref: false });
      try {
        records.keepOnly(ingress.sites(), new Date());
        before = await sampleAll(means, before);
      } catch (error) {
        log("error", "No samples were taken", { error });
      }
    }
  };
  loop().catch(() => undefined);
}

async function sampleAll(
  { engine, ingress, records, intervalMs }: Means,
  before: ReadonlyMap<string, Reading>,
): Promise<Map<string, Reading>> {
  const at = new Date();
  const readings = new Map<string, Reading>();
  const samples: [string, Sample][] = [];
  const waiting = ingress.sites();
  const work = async () => {
    for (let siteId = waiting.pop(); siteId !== undefined; siteId = waiting.pop()) {
      const target = ingress.current(siteId);
      if (target === null || target === "parked") continue;
      const usage = await engine.usage(target.containerId).catch(() => null);
      if (!usage) continue;
      const reading = { ...usage, atMs: performance.now() };
      readings.set(target.containerId, reading);
      const last = before.get(target.containerId);
      if (last) samples.push([siteId, sampleOf(last, reading)]);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  records.addSamples(at, intervalMs, samples);
  return readings;
}

/** What came between two readings. Counters begin anew when Docker restarts the container. */
export function sampleOf(last: Reading, now: Reading): Sample {
  const restarted = now.cpuNanoseconds < last.cpuNanoseconds;
  const grown = (key: "cpuNanoseconds" | "receivedBytes" | "sentBytes") =>
    restarted ? now[key] : Math.max(0, now[key] - last[key]);
  return {
    // Nanoseconds per millisecond are millionths of a core.
    cpuMilli: Math.round(grown("cpuNanoseconds") / (now.atMs - last.atMs) / 100) / 10,
    memoryMb: Math.round((now.memoryBytes / mebibyte) * 10) / 10,
    networkInBytes: grown("receivedBytes"),
    networkOutBytes: grown("sentBytes"),
    // The engine would walk all files the site wrote.
    diskMb: null,
  };
}
