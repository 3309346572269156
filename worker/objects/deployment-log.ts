import { DurableObject } from "cloudflare:workers";
import type { LogLine } from "../../protocol/api/deployments.ts";
import type { AgentLogLine } from "../../protocol/agent/messages.ts";
import type { Env } from "../env.ts";

const keepMs = 30 * 86_400_000;
/** Lines kept per deployment or command, more than one attempt may print; beyond it one marker line says so. */
const maxLines = 70_000;

/** Readers that follow one log at once. */
const maxWatchers = 20;
/** Proxies cut what is silent for long. */
const heartbeatMs = 15_000;
/** Chunks a slow reader may be behind; then it is let go, and goes on from the last line it has. */
const chunksAhead = 1024;

type Row = { seq: number; at: string; stream: LogLine["stream"]; text: string };

/** One per deployment: keeps its log for thirty days and fans it out to watchers as server-sent events. */
export class DeploymentLog extends DurableObject<Env> {
  private readonly watchers = new Set<WritableStreamDefaultWriter<Uint8Array>>();
  private readonly encoder = new TextEncoder();
  private heartbeat: ReturnType<typeof setInterval> | undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(
      "CREATE TABLE IF NOT EXISTS lines (seq INTEGER PRIMARY KEY, at TEXT, stream TEXT, text TEXT)",
    );
  }

  /**
   * Adds lines `firstSeq`… of this attempt. A batch sent twice is kept once; answers the last line known of the attempt. What
   * comes after the end is taken off the agent's hands, and dropped.
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
    // A gap: what is missing comes again after a reconnect, and these lines with it.
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

  /** The deployment has ended: the last line is said and watchers are let go. */
  async finish(text: string): Promise<void> {
    if (this.ended()) return;
    this.insert([{ at: new Date().toISOString(), stream: "system", text }]);
    this.ctx.storage.kv.put("ended", true);
    await this.ctx.storage.setAlarm(Date.now() + keepMs);
    for (const watcher of this.watchers) this.end(watcher);
  }

  async read(afterSeq: number, limit: number): Promise<LogLine[]> {
    return this.linesAfter(afterSeq, limit);
  }

  /**
   * The log as server-sent events after `afterSeq`, then live until the deployment ends; null: too many follow it already.
   * @param isOver nothing comes any more, whatever is known here
   */
  async follow(afterSeq: number, isOver = false): Promise<ReadableStream<Uint8Array> | null> {
    const ended = isOver || this.ended();
    if (!ended && this.watchers.size >= maxWatchers) return null;
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>(undefined, {
      highWaterMark: chunksAhead,
    });
    const writer = writable.getWriter();
    this.watchers.add(writer);
    writer.closed.catch(() => undefined).finally(() => this.forget(writer));
    // The answer's head goes out with its first bytes.
    this.write(writer, ": following\n\n");
    this.send(writer, this.linesAfter(afterSeq, maxLines));
    if (ended) this.end(writer);
    else
      this.heartbeat ??= setInterval(() => {
        for (const watcher of this.watchers) this.write(watcher, ": still here\n\n");
      }, heartbeatMs);
    return readable;
  }

  async remove(): Promise<void> {
    for (const watcher of this.watchers) this.end(watcher);
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
    this.ctx.storage.sql.exec(
      "CREATE TABLE IF NOT EXISTS lines (seq INTEGER PRIMARY KEY, at TEXT, stream TEXT, text TEXT)",
    );
  }

  override alarm(): Promise<void> {
    return this.remove();
  }

  private ended(): boolean {
    return this.ctx.storage.kv.get<boolean>("ended") ?? false;
  }

  private linesAfter(afterSeq: number, limit: number): Row[] {
    return this.ctx.storage.sql
      .exec<Row>(
        "SELECT seq, at, stream, text FROM lines WHERE seq > ? ORDER BY seq LIMIT ?",
        afterSeq,
        limit,
      )
      .toArray();
  }

  private insert(lines: AgentLogLine[]): void {
    let seq = this.ctx.storage.sql
      .exec<{ seq: number }>("SELECT coalesce(max(seq), 0) AS seq FROM lines")
      .one().seq;
    const kept: Row[] = [];
    for (const line of lines) {
      if (seq >= maxLines) break;
      const row = { ...line, seq: ++seq };
      if (seq === maxLines) row.text = `The log is cut here: more than ${maxLines} lines.`;
      this.ctx.storage.sql.exec(
        "INSERT INTO lines (seq, at, stream, text) VALUES (?, ?, ?, ?)",
        row.seq,
        row.at,
        row.stream,
        row.text,
      );
      kept.push(row);
    }
    for (const watcher of this.watchers) this.send(watcher, kept);
  }

  private send(writer: WritableStreamDefaultWriter<Uint8Array>, lines: Row[]): void {
    if (lines.length === 0) return;
    this.write(
      writer,
      lines.map((line) => `id: ${line.seq}\nevent: line\ndata: ${JSON.stringify(line)}\n\n`).join(""),
    );
  }

  private write(writer: WritableStreamDefaultWriter<Uint8Array>, text: string): void {
    if ((writer.desiredSize ?? 0) <= 0) return this.close(writer);
    writer.write(this.encoder.encode(text)).catch(() => this.forget(writer));
  }

  private end(writer: WritableStreamDefaultWriter<Uint8Array>): void {
    this.write(writer, "event: end\ndata: {}\n\n");
    this.close(writer);
  }

  private close(writer: WritableStreamDefaultWriter<Uint8Array>): void {
    this.forget(writer);
    this.ctx.waitUntil(writer.close().catch(() => undefined));
  }

  private forget(writer: WritableStreamDefaultWriter<Uint8Array>): void {
    this.watchers.delete(writer);
    if (this.watchers.size > 0) return;
    clearInterval(this.heartbeat);
    this.heartbeat = undefined;
  }
}
