import type { SiteLogLine } from "../../protocol/agent/running.ts";

/** A line and the container that wrote it. */
export type Written = { containerId: string; line: SiteLogLine };

/** So long lines are collected, unless there are enough of them before. */
const flushMs = 40;
const batchBytes = 64 * 1024;
const batchLines = 1000;
/** What the places of a batch may add to it: it is one message of the link. */
const placesBytes = 384 * 1024;
/** Batches a second to a control plane that acknowledges none. */
const unacknowledgedMs = 60;
/**
 * Beyond this the reader waits, so that a site that writes faster than a follower reads does not fill the agent's
 * memory.
 */
const maxHeldBytes = 256 * 1024;

export const bytesOf = ({ text }: SiteLogLine): number => Buffer.byteLength(text) + 80;

export const byTime = ({ line: a }: Written, { line: b }: Written): number =>
  a.at < b.at ? -1 : a.at > b.at ? 1 : 0;

/** Delivers lines in batches of at most 64 KiB, sorted by time if containers overlap, as fast as they are acknowledged. */
export class LineBatches {
  private readonly deliver: (lines: Written[]) => void;
  private readonly signal: AbortSignal;
  /** Batches that may be delivered and not yet acknowledged; null: none is ever acknowledged. */
  private readonly window: number | null;
  private underWay = 0;
  private held: Written[] = [];
  private heldBytes = 0;
  private timer: NodeJS.Timeout | undefined;
  private waiting: (() => void)[] = [];
  private readonly places: { readonly length: number };

  /** @param places how long the place of a line may be */
  constructor(
    deliver: (lines: Written[]) => void,
    signal: AbortSignal,
    window: number | null = null,
    places: { readonly length: number } = { length: 1 },
  ) {
    this.deliver = deliver;
    this.places = places;
    this.signal = signal;
    this.window = window;
    signal.addEventListener("abort", () => this.wake(), { once: true });
  }

  /** Resolves when there is room for more. */
  async add(lines: readonly Written[]): Promise<void> {
    if (this.signal.aborted) return;
    for (const written of lines) {
      this.held.push(written);
      this.heldBytes += bytesOf(written.line);
    }
    if (this.held.length === 0) return;
    this.timer ??= setTimeout(() => this.flush(), flushMs);
    if (this.window !== null && this.heldBytes >= batchBytes) this.flush();
    if (this.heldBytes > maxHeldBytes) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  /** The reader has taken a batch. */
  acknowledged(): void {
    this.underWay = Math.max(0, this.underWay - 1);
    if (this.heldBytes >= batchBytes || (this.timer === undefined && this.held.length > 0)) this.flush();
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.signal.aborted) return;
    this.held.sort(byTime);
    do {
      if (this.window !== null && this.underWay >= this.window) break;
      this.send();
    } while (this.window !== null && this.heldBytes >= batchBytes);
    if (this.held.length > 0 && this.window === null)
      this.timer = setTimeout(() => this.flush(), unacknowledgedMs);
    else if (this.held.length > 0 && this.underWay < (this.window ?? 0))
      this.timer = setTimeout(() => this.flush(), flushMs);
    if (this.heldBytes <= maxHeldBytes) this.wake();
  }

  private send(): void {
    const most = Math.min(batchLines, Math.floor(placesBytes / this.places.length));
    let bytes = 0;
    let count = 0;
    for (const { line } of this.held) {
      const size = bytesOf(line);
      if (count >= most || (count > 0 && bytes + size > batchBytes)) break;
      bytes += size;
      count++;
    }
    this.underWay++;
    this.heldBytes -= bytes;
    this.deliver(this.held.splice(0, count));
  }

  private wake(): void {
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}
