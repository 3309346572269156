import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";
import { maxReportedContainers, type SiteSample } from "../../protocol/api/running.ts";
import type { Engine } from "../docker/engine.ts";
import { mebibyte, megabytesOf } from "../docker/mebibyte.ts";
import { replicaOf } from "../docker/specs.ts";
import { readUsage, type Usage } from "../docker/usage.ts";
import { servingIds, type Ingress } from "../ingress/ingress.ts";
import { log } from "../log.ts";
import type { Records } from "./records.ts";
import { isLong, memoryNear, nearSince } from "./limit-warnings.ts";
import { sideBySide } from "./side-by-side.ts";

type Means = {
  engine: Engine;
  ingress: Ingress;
  records: Records;
  intervalMs: number;
  /** Running databases and their containers. */
  databases: () => Promise<ReadonlyMap<string, string>>;
  /** Databases of which the host has anything, running or not. */
  heldDatabases: () => Promise<Iterable<string>>;
  /** Megabytes the site or database holds on disk, as last measured. */
  diskMb: (siteId: string) => number | null;
  read?: typeof readUsage;
  /** Called at each sample once a site's container has been near its memory's limit for a while. */
  onMemoryNear?: (siteId: string, detail: string) => void;
};
/** The engine is asked for `pid` once, until that process ends. */
type Reading = Usage & {
  atMs: number;
  pid: number;
  replica: number;
  /** Since when its memory has been near the limit. */
  nearSince: number | null;
};
/** The counters at a container's start. */
const nothing: Usage = {
  cpuNanoseconds: 0,
  memoryBytes: 0,
  memoryLimitBytes: 0,
  receivedBytes: 0,
  sentBytes: 0,
};
type Sample = Omit<SiteSample, "at">;
type Used = Omit<Sample, "diskMb" | "replicas">;

/** Concurrent inspections by the engine. */
const concurrency = 4;

/**
 * Takes one sample per interval, at round times, of every site in service and every running database, without a call
 * to the engine for known containers.
 */
export function startSampling(means: Means, signal: AbortSignal): void {
  const { intervalMs, ingress, records, databases, heldDatabases } = means;
  let before = new Map<string, Reading>();
  const loop = async () => {
    for (;;) {
      await delay(intervalMs - (Date.now() % intervalMs), undefined, { signal, ref: false });
      try {
        const containers = await databases();
        const held = await heldDatabases();
        records.keepOnly([...ingress.sites(), ...ingress.lost(), ...held], new Date());
        before = await sampleAll(means, containers, before);
      } catch (error) {
        log("error", "No samples were taken", { error });
      }
    }
  };
  loop().catch(() => undefined);
}

async function sampleAll(
  { engine, ingress, records, intervalMs, diskMb, read = readUsage, onMemoryNear }: Means,
  databases: ReadonlyMap<string, string>,
  before: ReadonlyMap<string, Reading>,
): Promise<Map<string, Reading>> {
  const at = new Date();
  const readings = new Map<string, Reading>();
  const samples: [string, Sample][] = [];
  const containersOf = (id: string): string[] => {
    const database = databases.get(id);
    return database === undefined ? servingIds(ingress, id) : [database];
  };
  await sideBySide([...ingress.sites(), ...databases.keys()], concurrency, async (siteId) => {
    // Reads are synchronous: let other work run between two sites.
    await turn();
    const parts: (Used & { replica: number })[] = [];
    for (const containerId of containersOf(siteId)) {
      const known = before.get(containerId);
      const found = await readingOf(engine, read, containerId, known);
      if (!found) continue;
      const { ageMs, ...reading } = found;
      readings.set(containerId, reading);
      // Of its memory a database's server keeps what it can use.
      if (!databases.has(siteId) && isLong(reading.nearSince, reading.atMs))
        onMemoryNear?.(
          siteId,
          memoryNear(reading.memoryBytes / mebibyte, reading.memoryLimitBytes / mebibyte),
        );
      // For a new container; if it has run for longer, its usage in this interval is unknown.
      const start = { ...reading, ...nothing, atMs: reading.atMs - Math.max(ageMs, intervalMs) };
      const last = known ?? (ageMs < 2 * intervalMs ? start : undefined);
      if (last) parts.push({ ...usedBetween(last, reading), replica: reading.replica });
    }
    if (parts.length === 0) return;
    const replicas = parts.map(({ replica, cpuMilli, memoryMb }) => ({ replica, cpuMilli, memoryMb }));
    const several = replicas.length > 1 && { replicas: replicas.slice(0, maxReportedContainers) };
    samples.push([siteId, { ...sumOf(parts), diskMb: diskMb(siteId), ...several }]);
  });
  records.addSamples(at, intervalMs, samples);
  return readings;
}

async function readingOf(
  engine: Engine,
  read: typeof readUsage,
  containerId: string,
  before?: Reading,
): Promise<(Reading & { ageMs: number }) | null> {
  const known = before && read(containerId, before.pid);
  if (known) return { ...withNear(before, known, before), ageMs: Infinity };
  const found = await engine.inspectContainer(containerId);
  if (!found?.running || found.pid === 0) return null;
  const usage = read(containerId, found.pid);
  const ageMs = found.startedAt ? Math.max(0, Date.now() - found.startedAt.getTime()) : Infinity;
  const replica = replicaOf(found.labels);
  return usage && { ...withNear(before, usage, { pid: found.pid, replica }), ageMs };
}

function withNear(
  before: Reading | undefined,
  usage: Usage,
  { pid, replica }: Pick<Reading, "pid" | "replica">,
): Reading {
  const atMs = performance.now();
  const usedMb = usage.memoryBytes / mebibyte;
  const limitMb = usage.memoryLimitBytes / mebibyte;
  return {
    ...usage,
    atMs,
    pid,
    replica,
    nearSince: nearSince(before?.nearSince ?? null, { atMs, usedMb, limitMb }),
  };
}

type Counted = Omit<Reading, "replica" | "nearSince">;
/** The usage between two readings. Counters restart when Docker restarts the container. */
export function usedBetween(last: Counted, now: Counted): Used {
  const restarted = now.pid !== last.pid || now.cpuNanoseconds < last.cpuNanoseconds;
  const grown = (key: "cpuNanoseconds" | "receivedBytes" | "sentBytes") =>
    restarted ? now[key] : Math.max(0, now[key] - last[key]);
  return {
    // Nanoseconds per millisecond are millionths of a core.
    cpuMilli: Math.round(grown("cpuNanoseconds") / (now.atMs - last.atMs) / 100) / 10,
    memoryMb: megabytesOf(now.memoryBytes),
    networkInBytes: grown("receivedBytes"),
    networkOutBytes: grown("sentBytes"),
  };
}

/** The sum of all replicas. */
export function sumOf(parts: readonly Used[]): Used {
  const sum = (key: keyof Used) => parts.reduce((total, part) => total + part[key], 0);
  return {
    cpuMilli: Math.round(sum("cpuMilli") * 10) / 10,
    memoryMb: Math.round(sum("memoryMb") * 10) / 10,
    networkInBytes: sum("networkInBytes"),
    networkOutBytes: sum("networkOutBytes"),
  };
}
