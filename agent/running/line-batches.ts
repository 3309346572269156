import type { SiteLogLine } from "../../protocol/agent/running.ts";

/** A line and the container that wrote it. */
export type Written = { containerId: string; line: SiteLogLine };

const flushMs = 60;
const batchBytes = 64 * 1024;
const batchLines = 1000;
/**
 * Beyond this the reader waits, so that a site that writes faster than a follower reads does not fill the agent's
 * memory.
 */
const maxHeldBytes = 256 * 1024;

export const bytesOf = ({ text }: SiteLogLine): number => Buffer.byteLength(text) + 80;

export const byTime = ({ line: a }: Written, { line: b }: Written): number =>
  a.at < b.at ? -1 : a.at > b.at ? 1 : 0;

/** Delivers lines in batches, sorted by time if containers overlap, at most 64 KiB every 60 ms. */
export class LineBatches {
  private readonly deliver: (lines: Written[]) => void;
  private readonly signal: AbortSignal;
  private held: Written[] = [];
  private heldBytes = 0;
  private timer: NodeJS.Timeout | undefined;
  private waiting: (() => void)[] = [];

  constructor(deliver: (lines: Written[]) => void, signal: AbortSignal) {
    this.deliver = deliver;
    this.signal = signal;
    signal.addEventListener("abort", () => this.wake(), { once: true });
  }

  /** Resolves when there is room for more. */
  async add(written: Written): Promise<void> {
    if (this.signal.aborted) return;
    this.held.push(written);
    this.heldBytes += bytesOf(written.line);
    this.timer ??= setTimeout(() => this.flush(), flushMs);
    if (this.heldBytes > maxHeldBytes) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  private flush(): void {
    this.timer = undefined;
    if (this.signal.aborted) return;
    this.held.sort(byTime);
    let bytes = 0;
    let count = 0;
    for (const { line } of this.held) {
      if (count >= batchLines || (count > 0 && bytes + bytesOf(line) > batchBytes)) break;
      bytes += bytesOf(line);
      count++;
    }
    this.deliver(this.held.splice(0, count));
    this.heldBytes -= bytes;
    if (this.held.length > 0) this.timer = setTimeout(() => this.flush(), flushMs);
    this.wake();
  }

  private wake(): void {
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}
