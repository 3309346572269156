import { stat } from "node:fs/promises";
import type { Answer } from "../../protocol/agent/running.ts";
import { maxDiskItems } from "../../protocol/api/disk.ts";
import { isId, type Id } from "../../protocol/ids.ts";
import { cacheBytesOf, type CacheRecord } from "../docker/build-cache.ts";
import type { Engine } from "../docker/engine.ts";
import { rotatedEnds } from "../docker/log-file.ts";
import { label } from "../docker/labels.ts";
import { megabytesOf } from "../docker/mebibyte.ts";
import { labelsOf } from "../docker/specs.ts";
import { log } from "../log.ts";
import type { DiskUse } from "./disk-use.ts";
import type { Records } from "./records.ts";

type Means = {
  engine: Pick<Engine, "listContainers" | "inspectContainer" | "imageSizes" | "buildCache">;
  agentId: string;
  records: Pick<Records, "lastLinesBytes">;
  diskUse: Pick<DiskUse, "soon" | "databases">;
  imageRepository: (siteId: string) => string;
};
type Report = Extract<Answer, { kind: "disk" }>["found"][number];

/** An older measurement is taken again, which `withinMs` bounds together with all others of one question. */
const maxAgeMs = 60_000;
const withinMs = 6000;

/** What sites and databases take of this host's disk: data, images, logs and build cache. */
export async function reportDisk(means: Means, ids: readonly Id<"site" | "database">[]): Promise<Report[]> {
  const until = performance.now() + withinMs;
  const cache = ids.some((id) => isId("site", id)) ? await cacheOf(means) : null;
  const reports: Report[] = [];
  for (const id of ids)
    reports.push(await reportOf(means, id, cache, Math.max(1, until - performance.now())));
  return reports;
}

async function reportOf(
  means: Means,
  id: Id<"site" | "database">,
  cache: readonly CacheRecord[] | null,
  waitMs: number,
): Promise<Report> {
  const disk = await means.diskUse.soon(id, maxAgeMs, waitMs);
  const isSite = isId("site", id);
  const ofDatabase = means.diskUse.databases().find(({ databaseId }) => databaseId === id)?.usedMb ?? null;
  return {
    id,
    countedMb: isSite ? (disk?.totalMb ?? null) : ofDatabase,
    writtenMb: isSite ? (disk?.writtenMb ?? null) : 0,
    volumes: (disk?.volumes ?? []).slice(0, maxDiskItems),
    images: isSite ? await imagesOf(means, id) : [],
    logMb: await logMbOf(means, id),
    buildCacheMb: isSite ? cache && megabytesOf(cacheBytesOf(cache, means.imageRepository(id))) : 0,
  };
}

async function imagesOf({ engine, imageRepository }: Means, siteId: string): Promise<Report["images"]> {
  const found = await engine.imageSizes(imageRepository(siteId));
  return found
    .map(({ tag, sizeBytes }) => ({ deploymentId: tag, sizeMb: megabytesOf(sizeBytes) }))
    .toSorted((a, b) => b.deploymentId.localeCompare(a.deploymentId))
    .slice(0, maxDiskItems);
}

/** null: a container's log is not visible to the agent. */
async function logMbOf({ engine, agentId, records }: Means, id: string): Promise<number | null> {
  const containers = await engine.listContainers({ ...labelsOf(id), [label.agent]: agentId });
  let bytes = records.lastLinesBytes(id);
  for (const { id: containerId } of containers) {
    const container = await engine.inspectContainer(containerId);
    if (!container) continue;
    if (container.logFile === undefined) return null;
    const sizes = await Promise.all(rotatedEnds.map((end) => sizeOf(`${container.logFile}${end}`)));
    if (sizes.includes(null)) return null;
    bytes += sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  }
  return megabytesOf(bytes);
}

/** 0: there is no such file; null: the agent may not see it. */
const sizeOf = (file: string): Promise<number | null> =>
  stat(file).then(
    ({ size }) => size,
    ({ code }: NodeJS.ErrnoException) => (code === "ENOENT" ? 0 : null),
  );

async function cacheOf({ engine }: Means): Promise<CacheRecord[] | null> {
  try {
    return await engine.buildCache();
  } catch (error) {
    // The engine measures for one caller at a time.
    log("error", "The build cache was not measured", { error });
    return null;
  }
}
