import { stat } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { deletedBytes } from "../docker/deleted-files.ts";
import { diskUsed, type Count } from "../docker/disk-used.ts";
import { ownFolderOf } from "../docker/own-folder.ts";
import { isId, type Id } from "../../protocol/ids.ts";
import { containerName } from "../docker/database-objects.ts";
import type { ContainerSummary, Engine, VolumeSummary } from "../docker/engine.ts";
import { megabytesOf } from "../docker/mebibyte.ts";
import { labelsOf } from "../docker/specs.ts";
import { servingIds, type Ingress } from "../ingress/ingress.ts";
import { log } from "../log.ts";
import { every } from "./every.ts";
import { isNear } from "./limit-warnings.ts";
import type { Records } from "./records.ts";
import { label } from "../docker/labels.ts";

/** Receives every measurement of sites in service and of databases. */
type MeasurementListener = {
  onSite(holding: Holding): void;
  onDatabase(holding: DatabaseHolding): Promise<void>;
};
/** In megabytes; null if the host cannot tell. */
type SiteDisk = {
  volumes: { name: string; sizeMb: number | null }[];
  /** Outside the volumes, by the containers in service. */
  writtenMb: number | null;
  totalMb: number | null;
};
type Means = {
  engine: Engine;
  ingress: Ingress;
  records: Records;
  databases: () => Promise<ReadonlyMap<string, string>>;
  ownFolder?: typeof ownFolderOf;
};
/** The size of a site's containers and volumes, and its pack's limit; null if the host cannot tell. */
export type Holding = {
  siteId: string;
  containerIds: readonly string[];
  heldMb: number | null;
  diskGb: number;
  /** Set if files were counted, each as its share of the disk. */
  isOfFiles?: boolean;
};
/** The size of a database in megabytes, and its pack's limit. */
export type DatabaseHolding = { databaseId: string; containerId: string; usedMb: number; diskGb: number };
type Known = { atMs: number; disk: SiteDisk };

const none: ReadonlyMap<string, string> = new Map();
const keptMs = 10 * 60_000;

/**
 * Measures the disk use of sites. This walks all of their files, so it runs for one site at a time and at long
 * intervals.
 */
export class DiskUse {
  private readonly means: Means;
  private readonly known = new Map<string, Known>();
  private readonly over = new Set<string>();
  /** Megabytes of the volume that each database runs on. */
  private readonly ofDatabases = new Map<string, number>();
  private walking: Promise<unknown> = Promise.resolve();
  private walks = 0;
  private listener: MeasurementListener | undefined;

  constructor(means: Means) {
    this.means = means;
  }

  /** The listener measures sites itself, so it is created later than this. */
  listen(listener: MeasurementListener): void {
    this.listener = listener;
  }

  /** The last measurement, at most ten minutes old while the site serves. */
  totalMb(siteId: string): number | null {
    return this.known.get(siteId)?.disk.totalMb ?? null;
  }

  /** The last measurements of running databases. */
  databases(): { databaseId: Id<"database">; usedMb: number }[] {
    return [...this.ofDatabases].map(([id, usedMb]) => ({ databaseId: id as Id<"database">, usedMb }));
  }

  /** Measures unless there is a measurement of at most this age. */
  async of(siteId: string, maxAgeMs: number): Promise<SiteDisk> {
    const fresh = () => {
      const known = this.known.get(siteId);
      return known && performance.now() - known.atMs <= maxAgeMs ? known.disk : null;
    };
    const found = fresh();
    if (found) return found;
    const walk = this.walking.then(async () => {
      const meanwhile = fresh();
      if (meanwhile) return meanwhile;
      const disk = await this.measure(siteId);
      this.known.set(siteId, { atMs: performance.now(), disk });
      return disk;
    });
    this.walking = walk.catch(() => undefined);
    return walk;
  }

  /** A fresh measurement if it completes within `waitMs`, otherwise the last one. */
  async soon(siteId: string, maxAgeMs: number, waitMs: number): Promise<SiteDisk | null> {
    const late = new AbortController();
    const known = delay(waitMs, undefined, { signal: late.signal }).then(
      () => this.known.get(siteId)?.disk ?? null,
    );
    known.catch(() => undefined);
    try {
      return await Promise.race([this.of(siteId, maxAgeMs), known]);
    } finally {
      late.abort();
    }
  }

  /** Periodically measures the sites whose measurement is old. */
  watch(intervalMs: number, signal: AbortSignal, onMeasured: () => void): void {
    every(intervalMs, signal, async () => {
      const sites = [
        ...this.means.ingress.sites(),
        ...(await this.means.databases().catch(() => none)).keys(),
      ];
      for (const siteId of this.known.keys()) if (!sites.includes(siteId)) this.forget(siteId);
      const before = this.walks;
      for (const siteId of sites) {
        signal.throwIfAborted();
        await this.of(siteId, Math.min(keptMs, 10 * intervalMs)).catch((error) =>
          log("error", "The disk use of a site or database was not measured", { id: siteId, error }),
        );
      }
      if (this.walks > before) onMeasured();
    });
  }

  /** Measures without caching: the serving containers with the site's volumes, and each other container by itself. */
  async holdings(
    siteId: string,
    serving: readonly string[],
    beside: readonly Pick<ContainerSummary, "id">[],
    count: Count,
  ): Promise<Holding[]> {
    const volumes = await this.means.engine.volumes(labelsOf(siteId));
    const inVolumes = await diskUsed(
      volumes.map(({ folder }) => folder),
      count,
    );
    const isOfFiles = (count.bytesPerFile ?? 0) > 0;
    const found: Holding[] = [];
    for (const containerIds of [serving, ...beside.map(({ id }) => [id])]) {
      if (containerIds.length === 0) continue;
      const { diskGb, bytes } = await this.written(containerIds, count);
      const heldBytes = bytes && inVolumes && [...bytes, ...(found.length === 0 ? inVolumes : [])];
      found.push({ siteId, containerIds, heldMb: megabytes(heldBytes), diskGb, isOfFiles });
    }
    return found;
  }

  private forget(siteId: string): void {
    this.known.delete(siteId);
    this.ofDatabases.delete(siteId);
  }

  private async measure(siteId: string): Promise<SiteDisk> {
    this.walks++;
    const { engine, ingress } = this.means;
    const containerIds = servingIds(ingress, siteId);
    const volumes = await engine.volumes(labelsOf(siteId));
    const inVolumes = await diskUsed(volumes.map(({ folder }) => folder));
    const { diskGb, bytes } = await this.written(containerIds);
    const heldMb = inVolumes && bytes && megabytes([...inVolumes, ...bytes]);
    const holding = { siteId, containerIds, heldMb, diskGb };
    if (isId("database", siteId)) await this.measured(siteId, volumes, inVolumes);
    else {
      this.judge(siteId, heldMb, diskGb, () => overPack(holding));
      this.listener?.onSite(holding);
    }
    return {
      volumes: volumes.map(({ labels }, index) => ({
        name: labels[label.volume] ?? "",
        sizeMb: megabytes(inVolumes?.slice(index, index + 1) ?? null),
      })),
      writtenMb: megabytes(bytes),
      totalMb: heldMb,
    };
  }

  /** Bytes that containers wrote outside the site's volumes. */
  private async written(
    containerIds: readonly string[],
    count: Count = {},
  ): Promise<{ diskGb: number; bytes: number[] | null }> {
    const containers = await Promise.all(containerIds.map((id) => this.means.engine.inspectContainer(id)));
    const there = containers.filter((one) => one !== null);
    const { ownFolder = ownFolderOf } = this.means;
    const own = await Promise.all(there.map((one) => ownFolder(one)));
    const folders = [...own, ...there.flatMap(({ ownVolumes }) => ownVolumes)];
    const inFolders = folders.includes(null)
      ? null
      : await diskUsed(
          folders.filter((one) => one !== null),
          count,
        );
    const inFiles = await Promise.all([
      ...there.flatMap(({ ownFiles }) => ownFiles.map(fileBytes)),
      ...there.map((one) => deletedBytes(one)),
    ]);
    return {
      diskGb: Number(there[0]?.labels[label.disk] ?? 0),
      // These files exist in any container, so they do not add to the count of files.
      bytes: inFolders && [...inFolders, ...(count.bytesPerFile ? [] : inFiles)],
    };
  }

  /** Only the volume in use counts: a running restore has another one. */
  private async measured(
    databaseId: Id<"database">,
    volumes: readonly VolumeSummary[],
    bytes: readonly number[] | null,
  ): Promise<void> {
    const container = await this.means.engine.inspectContainer(containerName(databaseId));
    const index = volumes.findIndex(({ name }) => name === container?.labels[label.volume]);
    const usedMb = index < 0 ? null : megabytes(bytes?.slice(index, index + 1) ?? null);
    if (!container || usedMb === null) return;
    this.ofDatabases.set(databaseId, usedMb);
    const diskGb = Number(container.labels[label.disk] ?? 0);
    this.judge(databaseId, usedMb, diskGb, () => databaseOverQuota(usedMb, diskGb));
    await this.listener?.onDatabase({ databaseId, containerId: container.id, usedMb, diskGb });
  }

  /** Records an event once when a site or a database begins to exceed its pack. */
  private judge(id: string, heldMb: number | null, diskGb: number, says: () => string): void {
    if (heldMb === null || diskGb === 0) return;
    if (heldMb <= diskGb * 1024) return void this.over.delete(id);
    if (this.over.has(id)) return;
    this.over.add(id);
    this.means.records.addEvent(id, "", {
      at: new Date().toISOString(),
      kind: "disk_full",
      detail: says(),
    });
  }
}

/** Allocated bytes; 0 for a file that is missing or not visible to the agent. */
const fileBytes = (file: string): Promise<number> =>
  stat(file).then(
    ({ blocks }) => blocks * 512,
    () => 0,
  );

const megabytes = (bytes: readonly number[] | null): number | null =>
  bytes && megabytesOf(bytes.reduce((sum, one) => sum + one, 0));

export const overQuota = (volumesMb: number, diskGb: number): string =>
  `The site's volumes hold ${(volumesMb / 1024).toFixed(1)} GB and its pack has ${diskGb} GB: remove files from them, or a volume that is no longer needed. Until then the site keeps running, but new versions are not deployed.`;

const holds = ({ heldMb, diskGb, isOfFiles }: Holding): string =>
  `what its containers wrote and its volumes hold is ${isOfFiles ? "so many files that they take the place of " : ""}${((heldMb ?? 0) / 1024).toFixed(1)} GB, and its pack has ${diskGb} GB`;

const overPack = (holding: Holding): string =>
  `The site is over its disk: ${holds(holding)}. Remove files or choose a larger pack: a site that keeps writing is stopped.`;

/** What the owner of a site near or over its disk reads; null: it is neither. */
export const nearPack = (holding: Holding): string | null => {
  const { heldMb, diskGb } = holding;
  if (heldMb === null || !isNear(heldMb, diskGb * 1024)) return null;
  return heldMb > diskGb * 1024
    ? overPack(holding)
    : `The site's disk is nearly full: ${holds(holding)}. Remove files or choose a larger pack.`;
};

export const beyondPack = (holding: Holding, who: string): string =>
  `${who} wrote more than its pack's disk and was stopped: ${holds(holding)}.`;

const databaseOverQuota: typeof overQuota = (usedMb, diskGb) =>
  `The database holds ${(usedMb / 1024).toFixed(1)} GB and its pack has ${diskGb} GB: choose a larger pack, or delete what is no longer needed. Until then it keeps running and is backed up; if it exceeds the pack by more than a tenth, it is read-only while its host is short of disk.`;
