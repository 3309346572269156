import type { Id } from "../../protocol/ids.ts";
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
import { lastWords, takeOut } from "./watch.ts";
import { label } from "../docker/labels.ts";

type Means = {
  engine: Engine;
  ingress: Ingress;
  records: Records;
  agentId: string;
  diskUse: Pick<DiskUse, "holdings" | "of">;
  databases: () => Promise<ReadonlyMap<string, string>>;
  /** The disk that containers write to; null where the agent does not see it. */
  disk: () => Promise<Disk | null>;
  /** The operator's floor, or null. */
  minFreeMb: number | null;
  onCrash: (crash: Crash) => void;
};

/** Beyond its pack by so much a site is stopped whenever it is measured; with too little free disk, beyond its pack at all. */
const tolerance = 1.2;
/** While the disk stays as full as it is, its writers are not measured more often. */
const againMs = 60_000;
/** Sites measured at once. */
const concurrency = 4;
/** What is not counted in a short walk, as its files are too many, is counted in one of so long. */
const longWalkMs = 10 * 60_000;
/** A disk that lost so much since the last look is filled by somebody: databases are measured at once. */
const fastBytes = 256 * 1024 * 1024;
/** What fills the disk does so until it ends. */
const graceSeconds = 1;

/**
 * Takes sites out of service that hold more than their packs have, before they fill the disk of all: never a database, never
 * what is within its pack, never a volume's data. Their containers go, as only so what they wrote does.
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

  /** One statfs each time. */
  watch(intervalMs: number, signal: AbortSignal): void {
    every(intervalMs, signal, () =>
      this.look().catch((error) => log("error", "The disk's writers were not measured", { error })),
    );
  }

  get isShort(): boolean {
    return this.freeBytes !== Infinity;
  }

  /** Measures all who write once the disk has less room than its floor, and again when it still falls. */
  async look(): Promise<void> {
    const disk = await this.means.disk();
    if (!disk) return;
    const floor = floorBytes(disk, this.means.minFreeMb);
    const fell = this.lastFreeBytes - disk.freeBytes;
    // Since the last measuring, however slowly: nobody else looks as often.
    if (fell >= fastBytes) this.measureDatabases();
    if (fell >= fastBytes || fell < 0) this.lastFreeBytes = disk.freeBytes;
    if (disk.freeBytes >= floor) {
      this.freeBytes = Infinity;
      return;
    }
    const falls = disk.freeBytes < this.freeBytes - floor / 20;
    if (!falls && performance.now() - this.lookedAtMs < againMs) return;
    this.freeBytes = disk.freeBytes;
    log("warn", "This host is short of disk: those who write are measured", { freeBytes: disk.freeBytes });
    this.measureDatabases();
    await this.stopWhoIsBeyond(disk);
    this.lookedAtMs = performance.now();
  }

  /** What a measurement found of a site in service. */
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

  /** Nobody waits for it: a database has files that take long to walk. */
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
    // Who has so many files holds up nobody else's measuring.
    this.counting ??= sideBySide(uncounted, concurrency, (siteId) =>
      this.stopIfBeyond(siteId, running, { bytesPerFile, limitMs: longWalkMs }),
    )
      .catch((error) => log("error", "The disk's writers were not measured", { error }))
      .finally(() => (this.counting = undefined));
  }

  /** @returns false: what it holds could not be counted in time. */
  private async stopIfBeyond(
    siteId: string,
    running: readonly ContainerSummary[],
    count: Count,
  ): Promise<boolean> {
    const serving = servingIds(this.means.ingress, siteId);
    const beside = running.filter((one) => siteOf(one) === siteId && !serving.includes(one.id));
    const holdings = await this.means.diskUse.holdings(siteId, serving, beside, count);
    // There may be room again, once that was counted.
    if (this.freeBytes === Infinity) return true;
    for (const holding of holdings)
      await (
        holding.containerIds.some((id) => serving.includes(id))
          ? this.judge(holding, true)
          : this.judgeBeside(holding)
      ).catch((error) => log("error", "A site over its disk was not stopped", { siteId, error }));
    return holdings.every(({ heldMb }) => heldMb !== null);
  }

  /** A command, or a version that is not in service: whoever waits for it hears that it ended. */
  private async judgeBeside(holding: Holding): Promise<void> {
    const { siteId, diskGb, heldMb, containerIds } = holding;
    if (heldMb === null || diskGb === 0 || heldMb <= diskGb * 1024) return;
    for (const id of containerIds) await this.means.engine.stopContainer(id, graceSeconds);
    this.say(siteId, containerIds[0] ?? "", beyondPack(holding, "A command, or a version not in service,"));
  }

  private async stop({ siteId, containerIds }: Holding, first: string, reason: string): Promise<void> {
    const { engine, records } = this.means;
    const container = await engine.inspectContainer(first);
    const deploymentId = container?.labels[label.deployment] as Id<"deployment"> | undefined;
    if (!container || deploymentId === undefined) return;
    // They write to the same volumes.
    const commands = await engine.listContainers(commandLabels(siteId));
    const running = commands.filter((one) => one.running).map(({ id }) => id);
    await Promise.all([...containerIds, ...running].map((id) => engine.stopContainer(id, graceSeconds)));
    const error = await lastWords(engine, container, reason);
    // First: to a disk that has no room at all nothing can be written.
    await Promise.all(containerIds.map((id) => engine.removeContainer(id)));
    this.say(siteId, first, reason);
    const crash: Crash = { type: "crashed", siteId: siteId as Id<"site">, deploymentId, error };
    const pending = { crash, containerId: first, isOut: false };
    records.addCrash(pending);
    await takeOut(this.means, pending);
  }

  private say(siteId: string, containerId: string, detail: string): void {
    this.means.records.addEvent(siteId, containerId, {
      at: new Date().toISOString(),
      kind: "disk_full",
      detail,
    });
  }
}

const remedy =
  "Its containers are gone with what they wrote, its volumes are kept. Let it write less, remove files or choose a larger pack, then start it again.";

const siteOf = ({ labels }: ContainerSummary): string =>
  labels[label.database] ? "" : labels[label.site] || labels[label.commandsOf] || "";
