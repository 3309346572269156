import { Timestamp } from "../../protocol/api/common.ts";
import { StreamFrames } from "./stream-frames.ts";

export type LogEntry = {
  /** With nine decimals, so that lexical order is time order; later than every entry before it. */
  at: string;
  stream: "stdout" | "stderr";
  text: string;
};

/** Longer lines arrive in parts of 16 KiB: two are kept, so that a secret across the first cut is whole. */
const keepCharacters = 32 * 1024;

/** Joins the parts of long lines. Equal or earlier times are advanced, so that each identifies one entry. */
export class LogEntries {
  private lastAt = "";
  private readonly open = new Map<LogEntry["stream"], LogEntry>();
  private readonly flushed: Set<string>;

  /** @param flushed what earlier readers of the log flushed at its end: it is no entry again when the container runs again */
  constructor(flushed: Set<string> = new Set()) {
    this.flushed = flushed;
  }

  /** @returns the entries that this message completes. What has no time is none: a file of the engine's may be damaged */
  message(stream: LogEntry["stream"], at: string, text: string): LogEntry[] {
    if (!isTime(at)) return [];
    const isWhole = text.endsWith("\n");
    const part = isWhole ? text.slice(0, -1) : text;
    const before = this.open.get(stream);
    // The parts of a line have one time: with another, a new run of the container begins.
    const open = before?.at === at ? before : undefined;
    if (open && open.text.length < keepCharacters) open.text += part;
    const entry = open ?? { at, stream, text: part };
    if (!isWhole) this.open.set(stream, entry);
    else if (before) this.open.delete(stream);
    const complete = before && !open && !this.flushed.has(keyOf(before)) ? [this.timed(before)] : [];
    if (isWhole) complete.push(this.timed(entry));
    return complete;
  }

  /** Flushes the last output of an ended container that has no newline. */
  end(): LogEntry[] {
    const entries = [...this.open.values()].filter((entry) => !this.flushed.has(keyOf(entry)));
    this.open.clear();
    for (const entry of entries) this.flushed.add(keyOf(entry));
    return entries.map((entry) => this.timed(entry));
  }

  private timed(entry: LogEntry): LogEntry {
    if (entry.at <= this.lastAt) entry.at = nanosecondAfter(this.lastAt);
    this.lastAt = entry.at;
    return entry;
  }
}

/** Of an entry whose time is still the engine's. */
const keyOf = ({ stream, at }: LogEntry): string => `${stream} ${at}`;

const isTime = (at: string): boolean => at.length === 30 && Timestamp.safeParse(at).success;

/** Parses a container's log as the engine sends it with timestamps, one message per frame. */
export class LogParser {
  /** The number of complete messages so far. */
  messages = 0;
  /** The engine could not read a part of the log, or what follows there. */
  isDamaged = false;
  private readonly frames = new StreamFrames();
  private pieces: Buffer[] = [];
  private readonly entries: LogEntries;

  /** @param flushed as `LogEntries` */
  constructor(flushed?: Set<string>) {
    this.entries = new LogEntries(flushed);
  }

  push(chunk: Buffer): LogEntry[] {
    const entries: LogEntry[] = [];
    for (const { stream, bytes, isLast } of this.frames.push(chunk)) {
      this.pieces.push(bytes);
      if (!isLast) continue;
      const text = Buffer.concat(this.pieces).toString();
      this.pieces = [];
      if (stream === "engine") {
        this.isDamaged = true;
        continue;
      }
      entries.push(...this.message(stream, text));
      this.messages++;
    }
    return entries;
  }

  end(): LogEntry[] {
    return this.entries.end();
  }

  private message(stream: LogEntry["stream"], text: string): LogEntry[] {
    const space = text.indexOf(" ");
    return this.entries.message(stream, text.slice(0, space), text.slice(space + 1));
  }
}

/** An ISO time with nine decimals. */
export function withNanoseconds(at: string): string {
  const fraction = /\.(\d+)Z$/.exec(at)?.[1] ?? "";
  return `${new Date(at).toISOString().slice(0, 19)}.${fraction.padEnd(9, "0").slice(0, 9)}Z`;
}

const nanoseconds = (at: string): bigint =>
  BigInt(Date.parse(`${at.slice(0, 19)}Z`)) * 1_000_000n + BigInt(at.slice(20, 29));

export const nanosecondsBetween = (from: string, to: string): bigint => nanoseconds(to) - nanoseconds(from);

/** The time this many nanoseconds later, not before 1970. */
export function shifted(at: string, by: bigint): string {
  const moved = notNegative(nanoseconds(at) + by);
  const seconds = new Date(Number(moved / 1_000_000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(moved % 1_000_000_000n).padStart(9, "0")}Z`;
}

export const nanosecondAfter = (at: string): string => shifted(at, 1n);

const notNegative = (nanoseconds: bigint): bigint => (nanoseconds < 0n ? 0n : nanoseconds);

/**
 * Seconds and nanoseconds since 1970, in the engine's format; one second earlier, to include entries that are out of
 * order.
 */
export function engineTimeBefore(at: string): string {
  const earlier = notNegative(nanoseconds(at) - 1_000_000_000n);
  return `${earlier / 1_000_000_000n}.${String(earlier % 1_000_000_000n).padStart(9, "0")}`;
}
