import { DurableObject } from "cloudflare:workers";
import type { ChatReply, StoredMessage } from "../../protocol/api/chat.ts";
import type { Id } from "../../protocol/ids.ts";
import { modelOf } from "../adapters/model.ts";
import { converse, type ChatEvent, type Memory } from "../assistant/converse.ts";
import { shownPending } from "../assistant/pending.ts";
import { creditsOf } from "../billing/credits/balance.ts";
import { holdCredits } from "../billing/credits/hold.ts";
import { spendHold } from "../billing/credits/post-hold.ts";
import { renewHold } from "../billing/credits/renew-hold.ts";
import { voidHold } from "../billing/credits/void-hold.ts";
import { contextOf } from "../compose.ts";
import { chatPricesOf } from "../config.ts";
import type { Ctx } from "../ctx.ts";
import { AppError, conflict } from "../domain/app-error.ts";
import { chatPrice, highestPrice, priceToBegin } from "../domain/chat-price.ts";
import type { ConversationRpc, History, Refused, Sent } from "./rpc.ts";
import type { Env } from "../env.ts";
import { logError } from "../log-error.ts";
import { touchConversation } from "../services/chat/touch.ts";

const keepMs = 30 * 86_400_000;
/** Longer than a turn takes: nine requests to the model within a minute each, and 24 calls of tools that wait for a host or a database. */
const holdMs = 30 * 60_000;
const maxMessages = 400;
const heartbeatMs = 15_000;

const holdEnd = (ctx: Ctx): Date => new Date(ctx.now().getTime() + holdMs);
const isEnd = (name: string): boolean => name === "done" || name === "error";
const nothing = (): void => undefined;

/** The credits that are held for a message. */
type Held = { id: Id<"message">; credits: number };
/** Whose credits are held, with the action that waited when it came. */
type Admitted = { held: Held; waiting: string | undefined };
/** Hears the messages from this one on, until the answer to one of them ends. */
type Listener = { number: number; hear: (seq: number, name: string, data: string) => void };

/**
 * One conversation: takes its messages one after the other, keeps their texts for thirty days, streams what happens, and goes on
 * where a reader is cut off. What a message costs is held before and spent once, when its answer is whole.
 */
export class Conversation extends DurableObject<Env> implements ConversationRpc {
  private turn: Promise<unknown> = Promise.resolve();
  /** Messages since the object is in memory: how many came, and which of them is answered or was last. */
  private arrived = 0;
  private current = 0;
  private readonly removal = new AbortController();
  /** The last statement that puts it into its account's list, and whether it did. */
  private listing = Promise.resolve(true);
  private readonly listeners = new Set<Listener>();
  private readonly encoder = new TextEncoder();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.createTables();
    const { sql } = ctx.storage;
    const [last] = sql.exec<{ name: string }>("SELECT name FROM events ORDER BY seq DESC LIMIT 1").toArray();
    // An earlier instance was lost while it wrote an answer, and nobody goes on with it.
    if (last && !isEnd(last.name)) this.tell("error", bodyOf(cutOff()));
  }

  /** The whole answer. */
  async send(sent: Sent): Promise<{ reply: ChatReply } | Refused> {
    return refusing(async () => {
      return { reply: await this.interact(sent, await this.begin(sent)).reply };
    });
  }

  /** The answer as it comes; it comes to its end, whether or not anybody reads. */
  async stream(sent: Sent): Promise<{ events: ReadableStream<Uint8Array> } | Refused> {
    return refusing(async () => {
      const { number, reply } = this.interact(sent, await this.begin(sent));
      this.ctx.waitUntil(reply.catch(nothing));
      return { events: this.follow(number, 0) };
    });
  }

  /** Events after one that the reader has seen, then those to come until the answer ends. */
  async resume(
    accountId: string,
    afterSeq: number,
  ): Promise<{ events: ReadableStream<Uint8Array> } | Refused> {
    return refusing(async () => {
      this.requireOwner(accountId);
      // Whoever has seen a part of the answer that is written goes on with it; of one that waits, nobody has seen anything.
      return { events: this.follow(this.firstSeq() <= afterSeq ? this.current : this.arrived, afterSeq) };
    });
  }

  async history(accountId: string): Promise<History | Refused> {
    return refusing(async () => {
      this.requireOwner(accountId);
      const messages = this.ctx.storage.sql
        .exec<Omit<StoredMessage, "toolCalls"> & { calls: string | null }>(
          "SELECT role, text, at, calls FROM messages LEFT JOIN tool_calls USING (seq) ORDER BY seq",
        )
        .toArray()
        .map(({ calls, ...message }) => ({
          ...message,
          toolCalls: JSON.parse(calls ?? "[]") as StoredMessage["toolCalls"],
        }));
      const asked = this.ctx.storage.kv.get<Memory["pending"]>("pending");
      return {
        messages,
        pendingAction: asked && asked.expiresAtMs > Date.now() ? shownPending(asked) : null,
      };
    });
  }

  /** For good. An answer that is written meanwhile is not waited for: it ends with its next tool, and writes nothing any more. */
  async remove(): Promise<void> {
    this.removal.abort();
    for (const { hear } of this.listeners)
      hear(this.lastSeq() + 1, "error", JSON.stringify(bodyOf(deleted())));
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
    this.createTables();
    await this.listing;
  }

  override alarm(): Promise<void> {
    return this.remove();
  }

  private createTables(): void {
    this.ctx.storage.sql.exec(
      "CREATE TABLE IF NOT EXISTS messages (seq INTEGER PRIMARY KEY, role TEXT, text TEXT, at TEXT)",
    );
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS tool_calls (seq INTEGER PRIMARY KEY, calls TEXT)");
    this.ctx.storage.sql.exec(
      "CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, name TEXT, data TEXT)",
    );
  }

  /** @throws AppError not_found, forbidden */
  private requireOwner(accountId: string): void {
    if (this.removal.signal.aborted) throw deleted();
    const owner = this.ctx.storage.kv.get<string>("accountId");
    if (owner === undefined) throw new AppError("not_found");
    if (owner !== accountId) throw new AppError("forbidden");
  }

  /** Whose it is, and whether it can be paid for. @throws AppError not_found, forbidden, payment_required */
  private async begin({ speaker, isNew, requestId, conversationId }: Sent): Promise<Admitted> {
    const { storage } = this.ctx;
    if (isNew && storage.kv.get("accountId") === undefined) storage.kv.put("accountId", speaker.accountId);
    this.requireOwner(speaker.accountId);
    const waiting = storage.kv.get<Memory["pending"]>("pending")?.id;
    const alarm = storage.setAlarm(Date.now() + keepMs);
    const held = await this.hold(this.context({ speaker, conversationId, requestId }), speaker.accountId);
    await alarm;
    return { held, waiting };
  }

  /** @throws AppError payment_required */
  private async hold(ctx: Ctx, accountId: Id<"account">): Promise<Held> {
    const id = ctx.newId("message");
    const prices = chatPricesOf(ctx.config);
    const credits = await holdCredits(ctx, {
      id,
      accountId,
      amount: highestPrice(prices),
      least: priceToBegin(prices),
      expiresAt: holdEnd(ctx),
    });
    return { id, credits };
  }

  /** After what was said before. */
  private interact(sent: Sent, admitted: Admitted): { number: number; reply: Promise<ChatReply> } {
    const number = ++this.arrived;
    const reply = this.turn.then(() => this.interactNow(number, sent, admitted));
    this.turn = reply.catch(nothing);
    return { number, reply };
  }

  private async interactNow(number: number, sent: Sent, { held, waiting }: Admitted): Promise<ChatReply> {
    const ctx = this.context(sent);
    const { accountId } = sent.speaker;
    this.current = number;
    try {
      this.requireOwner(accountId);
      // Only the events of the newest message that is answered are gone on with.
      this.ctx.storage.sql.exec("DELETE FROM events");
      // It may have waited for longer than the credits were held.
      if (!(await renewHold(ctx, held.id, holdEnd(ctx)))) held = await this.hold(ctx, accountId);
      this.requireOwner(accountId);
      const reply = await this.answer(ctx, sent, { held, waiting });
      this.tell("done", reply);
      return reply;
    } catch (error) {
      if (!(error instanceof AppError))
        logError({ conversation: sent.conversationId, requestId: sent.requestId }, error);
      await voidHold(ctx, held.id).catch(nothing);
      this.tell("error", bodyOf(error));
      throw error;
    }
  }

  private async answer(
    ctx: Ctx,
    sent: Sent,
    { held: { id: interactionId, credits }, waiting }: Admitted,
  ): Promise<ChatReply> {
    const { kv } = this.ctx.storage;
    const asked = kv.get<Memory["pending"]>("pending");
    const said = this.ctx.storage.sql
      .exec<Memory["history"][number] & { seq: number }>(
        "SELECT seq, role, text FROM messages WHERE seq > ? ORDER BY seq",
        kv.get<number>("summarizedSeq") ?? 0,
      )
      .toArray();
    const memory: Memory = {
      summary: kv.get<string>("summary") ?? null,
      history: said,
      groups: kv.get<Memory["groups"]>("groups") ?? [],
      // What was asked since the message came, its author has not seen, unless the message names it.
      pending: asked?.id === waiting || sent.confirm !== undefined ? asked : undefined,
    };
    // Gone before it is acted on: it is good once, whatever happens next.
    kv.delete("pending");
    this.keep("user", sent.message);
    // Whoever is cut off from here on finds it.
    if (sent.isNew) await this.list(ctx, sent);
    this.tell("conversation", { conversationId: sent.conversationId });
    const prices = chatPricesOf(ctx.config);
    const { signal } = this.removal;
    const done = await converse(
      ctx,
      modelOf(ctx.config),
      memory,
      { ...sent, signal },
      { prices, credits },
      (event) => this.emit(event),
    );
    if (!signal.aborted) {
      const summarizedSeq = said[done.summarized - 1]?.seq;
      if (summarizedSeq !== undefined && done.memory.summary !== null) {
        kv.put("summary", done.memory.summary);
        kv.put("summarizedSeq", summarizedSeq);
      }
      kv.put("groups", done.memory.groups);
      if (done.memory.pending) kv.put("pending", done.memory.pending);
      this.keep("assistant", done.message, done.toolCalls);
      void this.list(ctx, sent);
    }
    const price = Math.min(credits, chatPrice(prices, done.used));
    // Side by side: whoever has the answer may ask for the conversation.
    const [{ isSpent, balance }, isListed] = await Promise.all([
      done.isComplete
        ? spendHold(ctx, interactionId, price)
        : unspent(ctx, interactionId, sent.speaker.accountId),
      this.listing,
    ]);
    // The account is deleted, and with it everything that was said.
    if (!isListed) await this.remove();
    if (signal.aborted) throw deleted();
    const { pending } = done.memory;
    const pendingAction = pending ? shownPending(pending) : null;
    if (pendingAction) this.tell("action", { pendingAction });
    return {
      message: [done.message, ...done.shown].join("\n\n"),
      conversationId: sent.conversationId,
      balance,
      creditsUsed: isSpent ? price : 0,
      toolCalls: done.toolCalls,
      pendingAction,
    };
  }

  private list(ctx: Ctx, { conversationId, message, requestId }: Sent): Promise<boolean> {
    this.listing = touchConversation(ctx, conversationId, message).catch((error: unknown) => {
      logError({ conversation: conversationId, requestId }, error);
      return true;
    });
    return this.listing;
  }

  private context({
    speaker,
    conversationId,
    requestId,
  }: Pick<Sent, "speaker" | "conversationId" | "requestId">): Ctx {
    const actor = { type: "assistant" as const, conversationId, ...speaker };
    return contextOf(this.env, actor, (work) => this.ctx.waitUntil(work), requestId);
  }

  private keep(role: StoredMessage["role"], text: string, calls: StoredMessage["toolCalls"] = []): void {
    const { sql } = this.ctx.storage;
    sql.exec("INSERT INTO messages (role, text, at) VALUES (?, ?, ?)", role, text, new Date().toISOString());
    if (calls.length > 0)
      sql.exec("INSERT INTO tool_calls SELECT max(seq), ? FROM messages", JSON.stringify(calls));
    for (const table of ["tool_calls", "messages"])
      sql.exec(`DELETE FROM ${table} WHERE seq <= (SELECT max(seq) FROM messages) - ?`, maxMessages);
  }

  private emit({ type, ...data }: ChatEvent): void {
    this.tell(type, data);
  }

  private tell(name: string, value: object): void {
    const data = JSON.stringify(value);
    // The last word may hold a secret that is shown once: who was cut off before it asks for it again.
    const kept = name === "done" ? JSON.stringify({ ...value, message: "" }) : data;
    const seq = this.lastSeq() + 1;
    if (!this.removal.signal.aborted) {
      this.ctx.storage.kv.put("lastSeq", seq);
      this.ctx.storage.sql.exec("INSERT INTO events (seq, name, data) VALUES (?, ?, ?)", seq, name, kept);
    }
    for (const listener of this.listeners)
      if (listener.number <= this.current) listener.hear(seq, name, data);
  }

  private lastSeq(): number {
    return this.ctx.storage.kv.get<number>("lastSeq") ?? 0;
  }

  /** Where the events of the answer that is written, or was last, begin. */
  private firstSeq(): number {
    const { sql } = this.ctx.storage;
    return sql.exec<{ first: number | null }>("SELECT min(seq) AS first FROM events").one().first ?? Infinity;
  }

  /** What is said of a message, from an event on; of one that waits, once its turn has come. */
  private follow(number: number, afterSeq: number): ReadableStream<Uint8Array> {
    const { sql } = this.ctx.storage;
    type Event = { seq: number; name: string; data: string };
    const past =
      number > this.current
        ? []
        : sql
            .exec<Event>("SELECT seq, name, data FROM events WHERE seq > ? ORDER BY seq", afterSeq)
            .toArray();
    let stop = nothing;
    return new ReadableStream({
      type: "bytes",
      start: (controller) => {
        const write = (text: string) => controller.enqueue(this.encoder.encode(text));
        write(": conversation\n\n");
        const beat = setInterval(() => write(": beat\n\n"), heartbeatMs);
        const hear: Listener["hear"] = (seq, name, data) => {
          write(`id: ${seq}\nevent: ${name}\ndata: ${data}\n\n`);
          if (!isEnd(name)) return;
          stop();
          controller.close();
        };
        const listener = { number, hear };
        stop = () => {
          clearInterval(beat);
          this.listeners.delete(listener);
        };
        this.listeners.add(listener);
        for (const { seq, name, data } of past) {
          if (!this.listeners.has(listener)) return;
          hear(seq, name, data);
        }
      },
      cancel: () => stop(),
    });
  }
}

const deleted = () => new AppError("not_found", { reason: "The conversation was deleted." });
const cutOff = () =>
  conflict(
    "The service was restarted before this answer was complete. What the assistant has done stands: read the conversation before you send the message again.",
  );
/** As the API answers with it. */
const bodyOf = (error: unknown): object =>
  error instanceof AppError ? { error: error.message, ...error.extra } : { error: "server_error" };

async function unspent(ctx: Ctx, holdId: string, accountId: Id<"account">) {
  await voidHold(ctx, holdId);
  return { isSpent: false, balance: (await creditsOf(ctx, accountId)).balance };
}

async function refusing<Answer>(work: () => Promise<Answer>): Promise<Answer | Refused> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AppError) return { refused: { code: error.code, extra: error.extra } };
    throw error;
  }
}
