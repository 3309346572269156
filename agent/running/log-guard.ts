import { statSync, type Stats } from "node:fs";
import type { ContainerState, Engine } from "../docker/engine.ts";
import { ownerOf } from "../docker/specs.ts";
import { holdTo } from "../docker/start-speed.ts";
import { log } from "../log.ts";
import { every } from "./every.ts";
import type { Records } from "./records.ts";
import { label } from "../docker/labels.ts";

type Means = {
  engine: Pick<Engine, "listContainers" | "inspectContainer">;
  records: Pick<Records, "addEvent">;
  agentId: string;
  now?: () => number;
  stat?: (file: string) => Pick<Stats, "ino" | "size" | "birthtimeMs">;
  hold?: typeof holdTo;
};
type Writer = {
  container: Pick<ContainerState, "id" | "pid" | "cpuMilli" | "labels">;
  file: string;
  seen: Pick<Stats, "ino" | "size" | "birthtimeMs">;
  seenAtMs: number;
  /** Bytes written beyond the allowed rate and not yet compensated. */
  aheadBytes: number;
  /** The reduced CPU limit; null: that of its pack. */
  milli: number | null;
  toldAtMs: number;
};

/** The sustained rate per second; bursts, as at a start, may exceed it: 50,000 short lines a second for twenty seconds. */
const mostBytes = 1024 * 1024;
const burstBytes = 160 * 1024 * 1024;
/** Must match the log rotation in agent/docker/specs.ts. */
const rotatedAtBytes = 10 * 1000 * 1000;
const keptFiles = 3;
/** A millisecond of each second, in which a container that writes 4 KiB at a time still writes 0.7 MB. */
const leastMilli = 1;
const listEveryMs = 10_000;
const tellEveryMs = 3_600_000;

/** The owner of the container, also of a command's. */
const writerIn = (labels: Record<string, string>): string | undefined =>
  ownerOf(labels) ?? labels[label.commandsOf];

/**
 * Throttles containers that log excessively: each line costs the engine, which all tenants share, many times the CPU
 * that its writer pays for. Log sizes are read from the engine's own files, so this needs access to them.
 */
export class LogGuard {
  private readonly means: Means;
  private readonly now: () => number;
  private readonly stat: NonNullable<Means["stat"]>;
  private readonly hold: typeof holdTo;
  private readonly writers = new Map<string, Writer>();
  private listedAtMs = -Infinity;

  constructor(means: Means) {
    this.means = means;
    this.now = means.now ?? (() => performance.now());
    this.stat = means.stat ?? statSync;
    this.hold = means.hold ?? holdTo;
  }

  watch(intervalMs: number, signal: AbortSignal): void {
    every(intervalMs, signal, () =>
      this.look().catch((error) => log("error", "Containers' logs were not measured", { error })),
    );
  }

  async look(): Promise<void> {
    if (this.now() - this.listedAtMs >= listEveryMs) await this.list();
    for (const [id, writer] of this.writers) {
      try {
        await this.judge(writer);
      } catch {
        // It is gone or no longer readable: look it up again.
        this.writers.delete(id);
      }
    }
  }

  /** One call to the engine, and one more for each new container, also for one that was between two lives. */
  private async list(): Promise<void> {
    this.listedAtMs = this.now();
    const { engine, agentId } = this.means;
    const found = (await engine.listContainers({ [label.agent]: agentId })).filter(
      ({ running, labels }) => running && writerIn(labels) !== undefined,
    );
    const ids = new Set(found.map(({ id }) => id));
    for (const id of this.writers.keys()) if (!ids.has(id)) this.writers.delete(id);
    for (const id of ids) {
      if (this.writers.has(id)) continue;
      const writer = await this.writerOf(id);
      if (writer) this.writers.set(id, writer);
    }
  }

  private async writerOf(id: string): Promise<Writer | null> {
    const container = await this.means.engine.inspectContainer(id);
    const file = container?.logFile;
    if (!container?.running || !file) return null;
    try {
      const seen = this.stat(file);
      const writer = { container, file, seen, seenAtMs: this.now(), aheadBytes: 0, milli: null };
      return { ...writer, toldAtMs: -Infinity };
    } catch {
      return null;
    }
  }

  private async judge(writer: Writer): Promise<void> {
    const seen = this.stat(writer.file);
    const seconds = (this.now() - writer.seenAtMs) / 1000;
    if (seconds <= 0) return;
    const isSame = seen.ino === writer.seen.ino && seen.birthtimeMs === writer.seen.birthtimeMs;
    // A lower bound: of more than three files between two checks the first are gone.
    const bytes = isSame
      ? Math.max(0, seen.size - writer.seen.size)
      : seen.size +
        Math.max(0, rotatedAtBytes - writer.seen.size) +
        this.wholeFilesSince(writer) * rotatedAtBytes;
    writer.seen = seen;
    writer.seenAtMs = this.now();
    writer.aheadBytes = Math.max(0, writer.aheadBytes + bytes - mostBytes * seconds);
    if (writer.milli === null && writer.aheadBytes <= burstBytes) return;
    await this.slow(writer, bytes / seconds);
  }

  /** Those that the engine began and ended after the one that was seen last. */
  private wholeFilesSince({ file, seen }: Writer): number {
    for (let number = 1; number < keptFiles; number++)
      try {
        const { ino, birthtimeMs } = this.stat(`${file}.${number}`);
        if (ino === seen.ino && birthtimeMs === seen.birthtimeMs) return number - 1;
      } catch {
        // It is being renamed, or there is none.
        return 0;
      }
    return keptFiles - 1;
  }

  /**
   * Lowers the CPU limit step by step until the log rate is acceptable, and restores the pack's limit once the
   * container logs less by itself.
   */
  private async slow(writer: Writer, bytesPerSecond: number): Promise<void> {
    // The engine may have started it again, as another process.
    const now = await this.means.engine.inspectContainer(writer.container.id).catch(() => null);
    if (now?.running) writer.container = now;
    const { container } = writer;
    const pack = container.cpuMilli;
    if (pack === null) return;
    const step = Math.min(2, Math.max(0.1, mostBytes / Math.max(1, bytesPerSecond)));
    const milli = Math.max(leastMilli, (writer.milli ?? pack) * step);
    if (writer.milli === null) this.tell(writer);
    writer.milli = milli < pack ? Math.round(milli) : null;
    if (writer.milli === null) writer.aheadBytes = 0;
    this.hold(container, writer.milli ?? pack);
  }

  private tell(writer: Writer): void {
    if (this.now() - writer.toldAtMs < tellEveryMs) return;
    writer.toldAtMs = this.now();
    const { id, labels } = writer.container;
    const owner = writerIn(labels);
    log("warn", "A container writes too much to its log and is throttled", { owner, id });
    if (owner === undefined) return;
    const detail = `It writes more than ${mostBytes / 1024 / 1024} MB a second to its log and is throttled until it writes less: make it log less, or to a file.`;
    try {
      this.means.records.addEvent(owner, id, { at: new Date().toISOString(), kind: "slowed", detail });
    } catch (error) {
      // A full disk: it is slowed all the same.
      log("error", "An event of a container that is throttled was not recorded", { owner, error });
    }
  }
}
