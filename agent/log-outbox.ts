import type { AgentLogLine, FromAgent } from "../protocol/agent/messages.ts";
import type { Id } from "../protocol/ids.ts";

type LogFrame = Extract<FromAgent, { type: "log" }>;
type Source = { jobId: Id<"job">; attempt: number; deploymentId: Id<"deployment"> };

const flushAfterMs = 100;
const maxBatchBytes = 64 * 1024;
const maxHeldBytes = 4 * 1024 * 1024;
const maxLineCharacters = 8000;
/** What an attempt may print in all; the agent's own lines always follow. */
const maxPrintedBytes = 4 * 1024 * 1024;
/** What a line costs beside its text; empty lines are not free. */
const lineOverheadBytes = 64;

/**
 * The lines of one attempt, numbered from 1, held until the control plane has them: sent in batches, sent again after a
 * reconnect. While too much is held, lines are dropped and a marker says so; beyond 4 MiB the log is cut.
 */
export class LogOutbox {
  private readonly source: Source;
  private readonly send: (frame: LogFrame) => void;
  private held: AgentLogLine[] = [];
  /** Number of the first held line. */
  private firstSeq = 1;
  private sentUpTo = 0;
  private heldBytes = 0;
  private unsentBytes = 0;
  private dropped = 0;
  private printedBytes = 0;
  private truncated = false;
  private closed = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(source: Source, send: (frame: LogFrame) => void) {
    this.source = source;
    this.send = send;
  }

  add(text: string, stream: AgentLogLine["stream"], at: Date): void {
    if (this.closed) return;
    for (const line of text.split("\n")) {
      if (!this.hasRoom(line, stream, at)) continue;
      if (this.heldBytes > maxHeldBytes) {
        this.dropped++;
        continue;
      }
      this.tellDropped(at);
      this.push(
        line.length > maxLineCharacters ? `${line.slice(0, maxLineCharacters)} … (line cut)` : line,
        stream,
        at,
      );
    }
    if (this.unsentBytes >= maxBatchBytes) this.flush();
    else this.flushSoon();
  }

  /** Sends what was not sent yet. */
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

  /** A new connection: what was not acknowledged may be lost. */
  resend(): void {
    this.sentUpTo = this.firstSeq - 1;
    this.flush();
  }

  acknowledge(lastSeq: number): void {
    const count = Math.max(0, Math.min(lastSeq, this.sentUpTo) + 1 - this.firstSeq);
    for (const line of this.held.splice(0, count)) this.heldBytes -= bytesOf(line);
    this.firstSeq += count;
    if (this.dropped === 0 || this.heldBytes > maxHeldBytes / 2) return;
    this.tellDropped(new Date());
    this.flushSoon();
  }

  /** Nothing more is taken or sent. */
  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.held = [];
  }

  private hasRoom(text: string, stream: AgentLogLine["stream"], at: Date): boolean {
    if (stream === "system") return true;
    this.printedBytes += Math.min(Buffer.byteLength(text), maxLineCharacters) + lineOverheadBytes;
    if (this.printedBytes <= maxPrintedBytes) return true;
    if (!this.truncated) this.push("The log is truncated after 4 MiB.", "system", at);
    this.truncated = true;
    return false;
  }

  private flushSoon(): void {
    this.timer ??= setTimeout(() => this.flush(), flushAfterMs);
  }

  private tellDropped(at: Date): void {
    if (this.dropped === 0) return;
    this.push(`${this.dropped} lines were dropped: the log grew faster than it could be sent.`, "system", at);
    this.dropped = 0;
  }

  private push(text: string, stream: AgentLogLine["stream"], at: Date): void {
    const line = { at: at.toISOString(), stream, text };
    this.held.push(line);
    this.heldBytes += bytesOf(line);
    this.unsentBytes += bytesOf(line);
  }
}

const bytesOf = ({ text }: AgentLogLine): number => Buffer.byteLength(text) + lineOverheadBytes;
