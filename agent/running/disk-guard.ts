import type { Count } from "../docker/disk-used.ts";
import type { ContainerSummary, Engine } from "../docker/engine.ts";
import { commandLabels } from "../docker/specs.ts";
import { servingIds, type Ingress } from "../ingress/ingress.ts";
import { floorBytes, type Disk } from "../isolation/disk.ts";
import { log } from "../log.ts";
import { every } from "./every.ts";
import { beyondPack, type DiskUse, type Holding } from "./disk-use.ts";
import type { Crash, Records } from "./records.ts";
import { sideBySide } from "./side-by-side.ts";
import { endService, lastWords } from "./watch.ts";
import { label } from "../docker/labels.ts";

type Means = {
  engine: Engine;
  ingress: Ingress;
  records: Records;
  agentId: string;
  diskUse: Pick<DiskUse, "holdings" | "of">;
  databases: () => Promise<ReadonlyMap<string, string>>;
  /** The disk that containers write to; null if the agent cannot see it. */
  disk: () => Promise<Disk | null>;
  /** The operator's floor, or null. */
  minFreeMb: number | null;
  onCrash: (crash: Crash) => void;
};

/**
 * A site larger than its pack by this factor is stopped at its next measurement; if disk space is short, any excess
 * suffices.
 */
export const tolerance = 1.2;
/** The pause between measurements while free space stays the same. */
const againMs = 60_000;
/** Sites measured concurrently. */
const concurrency = 4;
/** The limit of the long walk, for sites with too many files for a short one. */
const longWalkMs = 10 * 60_000;
/** A disk that lost this much since the last check is being filled: databases are measured at once. */
const fastBytes = 256 * 1024 * 1024;
/** Short, because the site keeps filling the disk until it ends. */
const graceSeconds = 1;

/**
 * Takes sites that exceed their packs' disk out of service before they fill the shared disk: never a database, never
 * a site within its pack, never a volume's data. Their containers are removed, because only that frees their writable
 * layers.
 */
export class DiskGuard {
  private readonly means: Means;
  private readonly stopping = new Set<string>();
  private lookedAtMs = -againMs;
  private freeBytes = Infinity;
  private lastFreeBytes = 0;
  private measuring: Promise<void> | undefined;
  private counting: Promise<void> | undefined;

  constructor(means: Means) {
    this.means = means;
  }

  /** One statfs per check. */
  watch(intervalMs: number, signal: AbortSignal): void {
    every(intervalMs, signal, () =>
      this.look().catch((error) => log("error", "Disk use was not measured", { error })),
    );
  }

  get isShort(): boolean {
    return this.freeBytes !== Infinity;
  }

  /** Measures all writers when free space falls below the floor, and again as it keeps falling. */
  async look(): Promise<void> {
    const disk = await this.means.disk();
    if (!disk) return;
    const floor = floorBytes(disk, this.means.minFreeMb);
    const fell = this.lastFreeBytes - disk.freeBytes;
    // Compared with the last measurement, so that slow growth counts too: nothing else checks as often.
    if (fell >= fastBytes) this.measureDatabases();
    if (fell >= fastBytes || fell < 0) this.lastFreeBytes = disk.freeBytes;
    if (disk.freeBytes >= floor) {
      this.freeBytes = Infinity;
      return;
    }
    const falls = disk.freeBytes < this.freeBytes - floor / 20;
    if (!falls && performance.now() - this.lookedAtMs < againMs) return;
    this.freeBytes = disk.freeBytes;
    log("warn", "This host is short of disk: measuring its writers", { freeBytes: disk.freeBytes });
    this.measureDatabases();
    await this.stopWhoIsBeyond(disk);
    this.lookedAtMs = performance.now();
  }

  /** Handles a measurement of a site in service. */
  async judge(holding: Holding, isShort = false): Promise<void> {
    const { siteId, diskGb, heldMb, containerIds } = holding;
    const [first] = containerIds;
    if (heldMb === null || first === undefined || diskGb === 0 || this.stopping.has(siteId)) return;
    if (heldMb <= diskGb * 1024 * (isShort ? 1 : tolerance)) return;
    this.stopping.add(siteId);
    try {
      await this.stop(holding, first, `${beyondPack(holding, "The site")} ${remedy}`);
    } finally {
      this.stopping.delete(siteId);
    }
  }

  /** Not awaited: walking a database's files may take long. */
  private measureDatabases(): void {
    this.measuring ??= this.means
      .databases()
      .then((running) => sideBySide(running.keys(), concurrency, (id) => this.means.diskUse.of(id, 0)))
      .then(() => undefined)
      .catch((error) => log("error", "A database was not measured", { error }))
      .finally(() => (this.measuring = undefined));
  }

  private async stopWhoIsBeyond({ bytesPerFile = 0 }: Disk): Promise<void> {
    const { engine, agentId } = this.means;
    const running = (await engine.listContainers({ [label.managed]: "true", [label.agent]: agentId })).filter(
      (one) => one.running && siteOf(one),
    );
    const uncounted: string[] = [];
    await sideBySide(new Set(running.map(siteOf)), concurrency, async (siteId) => {
      if (!(await this.stopIfBeyond(siteId, running, { bytesPerFile }))) uncounted.push(siteId);
    });
    // In the background, so that sites with many files do not hold up the others.
    this.counting ??= sideBySide(uncounted, concurrency, (siteId) =>
      this.stopIfBeyond(siteId, running, { bytesPerFile, limitMs: longWalkMs }),
    )
      .catch((error) => log("error", "Disk use was not measured", { error }))
      .finally(() => (this.counting = undefined));
  }

  /** @returns false if its size could not be determined in time */
  private async stopIfBeyond(
    siteId: string,
    running: readonly ContainerSummary[],
    count: Count,
  ): Promise<boolean> {
    const serving = servingIds(this.means.ingress, siteId);
    const beside = running.filter((one) => siteOf(one) === siteId && !serving.includes(one.id));
    const holdings = await this.means.diskUse.holdings(siteId, serving, beside, count);
    // Counting takes long: space may be available again.
    if (this.freeBytes === Infinity) return true;
    for (const holding of holdings)
      await (
        holding.containerIds.some((id) => serving.includes(id))
          ? this.judge(holding, true)
          : this.judgeBeside(holding)
      ).catch((error) => log("error", "A site over its disk was not stopped", { siteId, error }));
    return holdings.every(({ heldMb }) => heldMb !== null);
  }

  /** Stops a command, or a version that is not in service; its job sees that it ended. */
  private async judgeBeside(holding: Holding): Promise<void> {
    const { siteId, diskGb, heldMb, containerIds } = holding;
    if (heldMb === null || diskGb === 0 || heldMb <= diskGb * 1024) return;
    for (const id of containerIds) await this.means.engine.stopContainer(id, graceSeconds);
    this.means.records.addEvent(siteId, containerIds[0] ?? "", {
      at: new Date().toISOString(),
      kind: "disk_full",
      detail: beyondPack(holding, "A command, or a version not in service,"),
    });
  }

  private async stop({ siteId, containerIds }: Holding, first: string, reason: string): Promise<void> {
    const { engine } = this.means;
    const container = await engine.inspectContainer(first);
    const deploymentId = container?.labels[label.deployment];
    if (!container || deploymentId === undefined) return;
    // Commands write to the same volumes.
    const commands = await engine.listContainers(commandLabels(siteId));
    const running = commands.filter((one) => one.running).map(({ id }) => id);
    await Promise.all([...containerIds, ...running].map((id) => engine.stopContainer(id, graceSeconds)));
    const error = await lastWords(engine, container, reason);
    // First: nothing can be recorded on a full disk.
    await Promise.all(containerIds.map((id) => engine.removeContainer(id)));
    await endService(this.means, { siteId, containerId: first, deploymentId, reason, error }, "disk_full");
  }
}

const remedy =
  "Its containers were removed with everything they wrote; its volumes are kept. Make it write less, remove files or choose a larger pack, then start it again.";

const siteOf = ({ labels }: ContainerSummary): string =>
  labels[label.database] ? "" : labels[label.site] || labels[label.commandsOf] || "";
