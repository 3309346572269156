import type { AgentLogLine, FromAgent } from "../protocol/agent/messages.ts";
import type { DeploymentStep } from "../protocol/deployment-steps.ts";
import type { Id } from "../protocol/ids.ts";

type LogFrame = Extract<FromAgent, { type: "log" }>;
type Source = { jobId: Id<"job">; attempt: number; deploymentId: Id<"deployment" | "command"> };
/**
 * How far the control plane has the log: the last line's number, the time of the last output line, and the number of
 * output bytes.
 */
export type LogPosition = { seq: number; at: string | null; printedBytes: number };

const flushAfterMs = 100;
const resendAfterMs = 10_000;
const maxBatchBytes = 64 * 1024;
const maxHeldBytes = 4 * 1024 * 1024;
const maxLineCharacters = 8000;
/** Limit on an attempt's output; the agent's own lines are always added. */
const maxPrintedBytes = 4 * 1024 * 1024;
/** Limit on the last output, which follows the cut. */
const maxLastBytes = 256 * 1024;
/** Bytes counted per line in addition to its text, so that empty lines are not free. */
const lineOverheadBytes = 64;

const cutMarker = "The log is truncated after 4 MiB.";

/**
 * The lines of one attempt, numbered from 1 and held until acknowledged: sent in batches, and again after a
 * reconnect. If too many are held, lines are dropped and a marker is added; beyond 4 MiB the log is cut, except for
 * its end.
 */
export class LogOutbox {
  /** What the deployment is doing: lines that are added from now on belong to it. */
  step: DeploymentStep | undefined;
  private readonly source: Source;
  private readonly send: (frame: LogFrame) => void;
  private held: AgentLogLine[] = [];
  /** Number of the first held line. */
  private firstSeq = 1;
  private sentUpTo = 0;
  private askedAtSeq = 0;
  private heldBytes = 0;
  private unsentBytes = 0;
  private dropped = 0;
  private printedBytes = 0;
  private truncated = false;
  private closed = false;
  private timer: NodeJS.Timeout | undefined;
  private acknowledged: LogPosition;
  private readonly waiting: (() => void)[] = [];

  /** @param from where to resume the log of a previous agent */
  constructor(source: Source, send: (frame: LogFrame) => void, from: LogPosition | null = null) {
    this.source = source;
    this.send = send;
    this.acknowledged = from ?? { seq: 0, at: null, printedBytes: 0 };
    this.firstSeq = this.acknowledged.seq + 1;
    this.sentUpTo = this.acknowledged.seq;
    this.printedBytes = this.acknowledged.printedBytes;
    this.truncated = this.printedBytes > maxPrintedBytes;
  }

  get position(): LogPosition {
    return this.acknowledged;
  }

  get isFull(): boolean {
    return this.truncated;
  }

  /** Resolves when the control plane has every line, or the log is no longer wanted. */
  async delivered(signal: AbortSignal): Promise<void> {
    this.flush();
    // The control plane may have failed to store them.
    const again = setInterval(() => this.resend(), resendAfterMs);
    while (this.held.length > 0 && !this.closed && !signal.aborted)
      await new Promise<void>((resolve) => {
        this.waiting.push(resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    clearInterval(again);
  }

  add(text: string, stream: AgentLogLine["stream"], at: Date | string): void {
    if (this.closed) return;
    for (const line of text.split("\n")) {
      if (!this.hasRoom(line, stream, at)) continue;
      if (this.heldBytes > maxHeldBytes) {
        this.dropped++;
        continue;
      }
      this.tellDropped(at);
      this.push(cutLine(line), stream, at);
    }
    if (this.unsentBytes >= maxBatchBytes) this.flush();
    else this.flushSoon();
  }

  /** Adds the last output to a truncated log, as far as there is room. */
  addLast(lines: readonly AgentLogLine[]): void {
    const [first] = lines;
    if (this.closed || !first) return;
    let bytes = 0;
    const tooEarly = lines.findLastIndex(({ text }) => (bytes += costOf(text)) > maxLastBytes);
    this.push("It printed last:", "system", first.at);
    for (const { text, stream, at } of lines.slice(tooEarly + 1)) this.push(cutLine(text), stream, at);
    this.flushSoon();
  }

  /** Sends all unsent lines. */
  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    for (;;) {
      const from = this.sentUpTo + 1 - this.firstSeq;
      const lines: AgentLogLine[] = [];
      for (
        let bytes = 0;
        from + lines.length < this.held.length && lines.length < 1000 && bytes < maxBatchBytes;
      ) {
        const line = this.held[from + lines.length];
        if (!line) break;
        bytes += bytesOf(line);
        lines.push(line);
      }
      if (lines.length === 0) break;
      this.send({ type: "log", ...this.source, firstSeq: this.sentUpTo + 1, lines });
      this.sentUpTo += lines.length;
    }
    this.unsentBytes = 0;
  }

  /** On a new connection unacknowledged lines may be lost. */
  resend(): void {
    this.sentUpTo = this.firstSeq - 1;
    this.flush();
  }

  /** Resends if nothing was acknowledged since the last call. Slow progress does not cause a resend. */
  resendStalled(): void {
    if (this.held.length > 0 && this.firstSeq === this.askedAtSeq) this.resend();
    this.askedAtSeq = this.firstSeq;
  }

  acknowledge(lastSeq: number): void {
    const count = Math.max(0, Math.min(lastSeq, this.sentUpTo) + 1 - this.firstSeq);
    const { seq, at, printedBytes } = this.acknowledged;
    const taken = this.held.splice(0, count);
    for (const line of taken) this.heldBytes -= bytesOf(line);
    this.firstSeq += count;
    const printed = taken.filter(({ stream }) => stream !== "system");
    this.acknowledged = {
      seq: seq + count,
      at: printed.at(-1)?.at ?? at,
      // The marker ends the output: no shorter line may follow it.
      printedBytes: taken.some(({ text }) => text === cutMarker)
        ? maxPrintedBytes + 1
        : printed.reduce((bytes, line) => bytes + costOf(line.text), printedBytes),
    };
    for (const wake of this.waiting.splice(0)) wake();
    if (this.dropped === 0 || this.heldBytes > maxHeldBytes / 2) return;
    this.tellDropped(new Date());
    this.flushSoon();
  }

  /** Nothing more is accepted or sent. */
  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.held = [];
    for (const wake of this.waiting.splice(0)) wake();
  }

  private hasRoom(text: string, stream: AgentLogLine["stream"], at: Date | string): boolean {
    if (stream === "system") return true;
    this.printedBytes += costOf(text);
    if (this.printedBytes <= maxPrintedBytes) return true;
    if (!this.truncated) this.push(cutMarker, "system", at);
    this.truncated = true;
    return false;
  }

  private flushSoon(): void {
    this.timer ??= setTimeout(() => this.flush(), flushAfterMs);
  }

  private tellDropped(at: Date | string): void {
    if (this.dropped === 0) return;
    this.push(`${this.dropped} lines were dropped: the log grew faster than it could be sent.`, "system", at);
    this.dropped = 0;
  }

  private push(text: string, stream: AgentLogLine["stream"], at: Date | string): void {
    const line: AgentLogLine = {
      at: typeof at === "string" ? at : at.toISOString(),
      stream,
      text,
      ...(this.step && { step: this.step }),
    };
    this.held.push(line);
    this.heldBytes += bytesOf(line);
    this.unsentBytes += bytesOf(line);
  }
}

const cutLine = (text: string): string =>
  text.length > maxLineCharacters ? `${text.slice(0, maxLineCharacters)} … (line cut)` : text;

const bytesOf = ({ text }: AgentLogLine): number => Buffer.byteLength(text) + lineOverheadBytes;

/** The bytes that an output line counts towards the limit. */
const costOf = (text: string): number =>
  Math.min(Buffer.byteLength(text), maxLineCharacters) + lineOverheadBytes;
