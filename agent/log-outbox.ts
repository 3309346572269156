import type { AgentLogLine, FromAgent } from "../protocol/agent/messages.ts";
import type { Id } from "../protocol/ids.ts";

type LogFrame = Extract<FromAgent, { type: "log" }>;
type Source = { jobId: Id<"job">; attempt: number; deploymentId: Id<"deployment"> };

const flushAfterMs = 100;
const maxBatchBytes = 64 * 1024;
const maxHeldBytes = 4 * 1024 * 1024;
const maxLineCharacters = 8000;

/**
 * The lines of one attempt, numbered from 1, held until the control plane has them: sent in batches, sent again after a
 * reconnect. While too much is held, lines are dropped and a marker says so.
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
  private timer: NodeJS.Timeout | undefined;

  constructor(source: Source, send: (frame: LogFrame) => void) {
    this.source = source;
    this.send = send;
  }

  add(text: string, stream: AgentLogLine["stream"], at: Date): void {
    for (const line of text.split("\n")) {
      if (this.heldBytes > maxHeldBytes) {
        this.dropped++;
        continue;
      }
      if (this.dropped > 0) {
        this.push(
          `${this.dropped} lines were dropped: the log grew faster than it could be sent.`,
          "system",
          at,
        );
        this.dropped = 0;
      }
      this.push(
        line.length > maxLineCharacters ? `${line.slice(0, maxLineCharacters)} … (line cut)` : line,
        stream,
        at,
      );
    }
    if (this.unsentBytes >= maxBatchBytes) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), flushAfterMs);
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
        bytes += line.text.length;
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
    const count = Math.min(this.held.length, Math.max(0, lastSeq + 1 - this.firstSeq));
    for (const line of this.held.splice(0, count)) this.heldBytes -= line.text.length;
    this.firstSeq += count;
  }

  isEmpty(): boolean {
    return this.held.length === 0;
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private push(text: string, stream: AgentLogLine["stream"], at: Date): void {
    this.held.push({ at: at.toISOString(), stream, text });
    this.heldBytes += text.length;
    this.unsentBytes += text.length;
  }
}
