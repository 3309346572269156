import { DurableObject } from "cloudflare:workers";
import type { LogLine } from "../../protocol/api/deployments.ts";
import type { AgentLogLine } from "../../protocol/agent/messages.ts";
import type { DeploymentStep } from "../../protocol/deployment-steps.ts";
import type { Id } from "../../protocol/ids.ts";
import { contextOf } from "../compose.ts";
import type { Ctx, Reader } from "../ctx.ts";
import type { Env } from "../env.ts";
import { logError } from "../log-error.ts";
import { findWorking } from "../services/accounts/find-working.ts";
import { isLogOver } from "../services/deployments/log-over.ts";
import { accessEnded } from "./host-questions.ts";
import type { DeploymentLogRpc } from "./rpc.ts";

const keepMs = 30 * 86_400_000;
/**
 * Lines kept per deployment or command, more than one attempt may print; beyond that, one line notes the truncation.
 */
const maxLines = 70_000;

/** Concurrent readers per log. */
const maxWatchers = 20;
/** Proxies close silent connections. */
const heartbeatMs = 15_000;
/** Lines read at a time for a follower, once it has taken the previous ones, so slow readers use no memory. */
const pageLines = 200;

/**
 * `wake`: more lines have arrived or the log is complete; true: send a heartbeat. `isCutOff`: the reader's key or
 * session has ended.
 */
type Watcher = {
  afterSeq: number;
  reader: Reader;
  isOver: boolean;
  isCutOff: boolean;
  wake: (isBeat: boolean) => void;
};
type Row = Pick<LogLine, "seq" | "at" | "stream" | "text" | "step">;
type StoredRow = Omit<Row, "step"> & { step: DeploymentStep | null };
const table =
  "CREATE TABLE IF NOT EXISTS lines (seq INTEGER PRIMARY KEY, at TEXT, stream TEXT, text TEXT, step TEXT)";

/**
 * One object per deployment or command. Stores its log for thirty days and streams it to watchers as server-sent
 * events. Without lines it has no table: an object that stores nothing is gone.
 */
export class DeploymentLog extends DurableObject<Env> implements DeploymentLogRpc {
  private readonly watchers = new Set<Watcher>();
  private readonly encoder = new TextEncoder();
  private heartbeat: ReturnType<typeof setInterval> | undefined;
  private hasTable: boolean;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const names = ctx.storage.sql
      .exec<{ name: string }>("SELECT name FROM pragma_table_info('lines')")
      .toArray();
    this.hasTable = names.length > 0;
    // Logs that began before lines had a step.
    if (this.hasTable && !names.some(({ name }) => name === "step"))
      ctx.storage.sql.exec("ALTER TABLE lines ADD COLUMN step TEXT");
  }

  /**
   * Appends lines from `firstSeq` of this attempt; idempotent. Returns the last known line of the attempt. Lines after
   * the end are acknowledged and dropped.
   */
  async append(attempt: number, firstSeq: number, lines: AgentLogLine[]): Promise<number> {
    if (this.ended()) return firstSeq + lines.length - 1;
    const known = this.ctx.storage.kv.get<{ attempt: number; seq: number }>("source") ?? {
      attempt: 0,
      seq: 0,
    };
    if (attempt < known.attempt) return firstSeq + lines.length - 1;
    const fresh = attempt > known.attempt;
    const last = fresh ? 0 : known.seq;
    // After a gap, the missing lines and these are sent again when the agent reconnects.
    if (firstSeq > last + 1) return last;
    const added = lines.slice(Math.max(0, last + 1 - firstSeq));
    if (fresh && known.attempt > 0)
      added.unshift({
        at: new Date().toISOString(),
        stream: "system",
        text: `The host was interrupted; starting over (attempt ${attempt}).`,
      });
    this.ctx.storage.transactionSync(() => {
      this.insert(added);
      this.ctx.storage.kv.put("source", { attempt, seq: Math.max(last, firstSeq + lines.length - 1) });
    });
    if (known.attempt === 0) await this.ctx.storage.setAlarm(Date.now() + keepMs);
    return Math.max(last, firstSeq + lines.length - 1);
  }

  /** The deployment has ended: writes the last line and completes the streams. */
  async finish(text: string): Promise<void> {
    if (this.ended()) return;
    this.insert([{ at: new Date().toISOString(), stream: "system", text }]);
    this.ctx.storage.kv.put("ended", true);
    await this.ctx.storage.setAlarm(Date.now() + keepMs);
    this.wakeAll();
  }

  async read(afterSeq: number, limit: number): Promise<LogLine[]> {
    return this.linesAfter(afterSeq, limit);
  }

  /**
   * The log as server-sent events after `afterSeq`, then live until the deployment ends or the reader's key or session
   * does; null: too many readers. @param isOver the log is complete, whatever this object knows
   */
  async follow(afterSeq: number, reader: Reader, isOver = false): Promise<ReadableStream<Uint8Array> | null> {
    const watcher: Watcher = { afterSeq, reader, isOver, isCutOff: false, wake: () => undefined };
    if (!isOver && !this.ended()) {
      if (this.watchers.size >= maxWatchers) return null;
      this.watchers.add(watcher);
      this.heartbeat ??= setInterval(() => this.beat(), heartbeatMs);
    }
    return new ReadableStream(
      {
        type: "bytes",
        // Sends the response headers, which wait for the first bytes.
        start: (controller) => controller.enqueue(this.encoder.encode(": following\n\n")),
        pull: async (controller) => {
          const next = await this.next(watcher);
          controller.enqueue(this.encoder.encode(next.text));
          if (next.isLast) controller.close();
        },
        cancel: () => this.forget(watcher),
      },
      { highWaterMark: 1 },
    );
  }

  async remove(): Promise<void> {
    for (const watcher of this.watchers) watcher.isOver = true;
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
    this.hasTable = false;
    this.wakeAll();
  }

  override alarm(): Promise<void> {
    return this.remove();
  }

  private ended(): boolean {
    return this.ctx.storage.kv.get<boolean>("ended") ?? false;
  }

  private linesAfter(afterSeq: number, limit: number): Row[] {
    if (!this.hasTable) return [];
    return this.ctx.storage.sql
      .exec<StoredRow>(
        "SELECT seq, at, stream, text, step FROM lines WHERE seq > ? ORDER BY seq LIMIT ?",
        afterSeq,
        limit,
      )
      .toArray()
      .map(({ step, ...line }) => (step === null ? line : { ...line, step }));
  }

  private insert(lines: AgentLogLine[]): void {
    this.ctx.storage.sql.exec(table);
    this.hasTable = true;
    let seq = this.ctx.storage.sql
      .exec<{ seq: number }>("SELECT coalesce(max(seq), 0) AS seq FROM lines")
      .one().seq;
    for (const line of lines) {
      if (seq >= maxLines) break;
      const row: Row = { ...line, seq: ++seq };
      if (seq === maxLines) row.text = `The log is truncated here: more than ${maxLines} lines.`;
      this.ctx.storage.sql.exec(
        "INSERT INTO lines (seq, at, stream, text, step) VALUES (?, ?, ?, ?, ?)",
        row.seq,
        row.at,
        row.stream,
        row.text,
        row.step ?? null,
      );
    }
    this.wakeAll();
  }

  /** Waits for the next events for this watcher. */
  private async next(watcher: Watcher): Promise<{ text: string; isLast: boolean }> {
    for (;;) {
      if (watcher.isCutOff) return { text: accessEnded, isLast: true };
      const lines = this.linesAfter(watcher.afterSeq, pageLines);
      watcher.afterSeq = lines.at(-1)?.seq ?? watcher.afterSeq;
      if (lines.length > 0) return { text: lines.map(eventOf).join(""), isLast: false };
      if (watcher.isOver || this.ended()) {
        this.forget(watcher);
        return { text: "event: end\ndata: {}\n\n", isLast: true };
      }
      const isBeat = await new Promise<boolean>((resolve) => (watcher.wake = resolve));
      if (isBeat) return { text: ": still here\n\n", isLast: false };
    }
  }

  private wakeAll(isBeat = false): void {
    for (const watcher of this.watchers) watcher.wake(isBeat);
  }

  private beat(): void {
    this.wakeAll(true);
    const ctx = contextOf(this.env, { type: "system" }, (work) => this.ctx.waitUntil(work));
    const onError = (error: unknown) => logError({ followers: this.watchers.size }, error);
    this.cutOffEnded(ctx).catch(onError);
    this.endWhenOver(ctx).catch(onError);
  }

  /** The notification of the end may have been lost. */
  private async endWhenOver(ctx: Ctx): Promise<void> {
    const { name } = this.ctx.id;
    if (name === undefined || !(await isLogOver(ctx, name as Id<"deployment" | "command">))) return;
    for (const watcher of this.watchers) watcher.isOver = true;
    this.wakeAll();
  }

  /** One query for all watchers; streams whose key or session has ended are closed. */
  private async cutOffEnded(ctx: Ctx): Promise<void> {
    const watchers = [...this.watchers];
    const working = await findWorking(
      ctx,
      watchers.map(({ reader }) => reader),
    );
    for (const watcher of watchers) {
      if (working.has(watcher.reader)) continue;
      watcher.isCutOff = true;
      this.forget(watcher);
      watcher.wake(false);
    }
  }

  private forget(watcher: Watcher): void {
    this.watchers.delete(watcher);
    if (this.watchers.size > 0) return;
    clearInterval(this.heartbeat);
    this.heartbeat = undefined;
  }
}

const eventOf = (line: Row): string => `id: ${line.seq}\nevent: line\ndata: ${JSON.stringify(line)}\n\n`;
