import { DurableObject } from "cloudflare:workers";
import type { Id } from "../../protocol/ids.ts";
import { contextOf } from "../compose.ts";
import type { Ctx, Reader } from "../ctx.ts";
import type { Env } from "../env.ts";
import { logError } from "../log-error.ts";
import { findWorking } from "../services/accounts/find-working.ts";
import {
  beginFollowing,
  changesAfter,
  changesRead,
  extendFollowing,
  followedMs,
  type Change,
} from "../services/events/read.ts";
import { accessEnded } from "./host-questions.ts";
import type { AccountEventsRpc } from "./rpc.ts";

/** Concurrent readers per account. */
const maxFollowers = 50;
/** Proxies close silent connections. */
const heartbeatMs = 15_000;
/** A hint may be lost. */
const lookMs = 5000;
/** Before every change. */
const neverSeq = -1;
/** Changes that a slow or returning reader can catch up with; behind them it begins anew. */
const maxRecent = 2 * changesRead;

type Follower = {
  /** null: where it wants to go on is not known here. */
  afterSeq: number | null;
  isGreeted: boolean;
  reader: Reader;
  isCutOff: boolean;
  /** true: send a heartbeat. */
  wake: (isBeat: boolean) => void;
};

/**
 * One object per account that has readers. Reads what triggers wrote to `changes` and streams it as server-sent events. D1 is
 * the truth: all of this may be lost at any time, and a reader resumes at another object.
 */
export class AccountEvents extends DurableObject<Env> implements AccountEventsRpc {
  private readonly followers = new Set<Follower>();
  private readonly encoder = new TextEncoder();
  private timers: ReturnType<typeof setInterval>[] = [];
  /** Changes after `since`, up to `upTo`, in order. */
  private recent: Change[] = [];
  private since = 0;
  private upTo = 0;
  private followedUntil = 0;
  private beginning: Promise<void> | null = null;
  private reading: Promise<void> | null = null;
  private isToReadAgain = false;

  /** The account has changed. Costs nothing without readers. */
  async wake(): Promise<void> {
    if (this.hasFollowers) await this.read();
  }

  private get hasFollowers(): boolean {
    return this.followers.size > 0;
  }

  /** The changes after `afterSeq`, then live until the reader's key or session ends; null: too many readers. */
  async follow(afterSeq: number | null, reader: Reader): Promise<ReadableStream<Uint8Array> | null> {
    if (this.followers.size >= maxFollowers) return null;
    const follower: Follower = {
      afterSeq,
      isGreeted: false,
      reader,
      isCutOff: false,
      wake: () => undefined,
    };
    const isFirst = !this.hasFollowers;
    this.followers.add(follower);
    try {
      if (isFirst) await (this.beginning = this.begin());
      else await this.beginning?.catch(() => this.extend());
    } catch (error) {
      this.forget(follower);
      throw error;
    }
    return new ReadableStream(
      {
        type: "bytes",
        pull: async (controller) => {
          const text = await this.next(follower);
          controller.enqueue(this.encoder.encode(text));
          if (follower.isCutOff) controller.close();
        },
        cancel: () => this.forget(follower),
      },
      { highWaterMark: 1 },
    );
  }

  private async begin(): Promise<void> {
    await this.reading?.catch(() => undefined);
    for (const timer of this.timers) clearInterval(timer);
    this.timers = [
      setInterval(() => this.beat(), heartbeatMs),
      setInterval(() => void this.read().catch(this.report), lookMs),
    ];
    const { changes, since, upTo } = await beginFollowing(this.context(), this.accountId);
    this.recent = changes;
    this.since = since;
    this.upTo = upTo;
    this.followedUntil = Date.now() + followedMs;
  }

  /** Several hints at once cause one more reading, which begins after the last of them. */
  private async read(): Promise<void> {
    await this.beginning;
    this.isToReadAgain = true;
    this.reading ??= this.readAll().finally(() => (this.reading = null));
    return this.reading;
  }

  private async readAll(): Promise<void> {
    while (this.isToReadAgain) {
      this.isToReadAgain = false;
      const found = await changesAfter(this.context(), this.accountId, this.upTo);
      if (found.length === 0) continue;
      this.recent.push(...found);
      const dropped = this.recent.splice(0, Math.max(0, this.recent.length - maxRecent));
      this.since = dropped.at(-1)?.seq ?? this.since;
      this.upTo = found.at(-1)?.seq ?? this.upTo;
      this.isToReadAgain ||= found.length === changesRead;
      this.wakeAll();
    }
  }

  /** Waits for the next events for this follower. */
  private async next(follower: Follower): Promise<string> {
    for (;;) {
      if (follower.isCutOff) return accessEnded;
      if (!follower.isGreeted) return this.greet(follower);
      const after = follower.afterSeq ?? this.upTo;
      if (after < this.since) return this.beginAnew(follower);
      const changes = this.recent.filter(({ seq }) => seq > after);
      follower.afterSeq = changes.at(-1)?.seq ?? after;
      if (changes.length > 0) return changes.map(eventOf).join("");
      const isBeat = await new Promise<boolean>((resolve) => (follower.wake = resolve));
      if (isBeat) return ": still here\n\n";
    }
  }

  /** The first event says where the stream begins: there is an id to resume after before anything has changed. */
  private greet(follower: Follower): string {
    follower.isGreeted = true;
    const { afterSeq } = follower;
    if (afterSeq !== null && (afterSeq < this.since || afterSeq > this.upTo)) return this.beginAnew(follower);
    const at = (follower.afterSeq ??= this.upTo);
    return `id: ${at}\nevent: ready\ndata: {}\n\n`;
  }

  private beginAnew(follower: Follower): string {
    follower.afterSeq = this.upTo;
    return `id: ${this.upTo}\nevent: reset\ndata: {}\n\n`;
  }

  private beat(): void {
    this.wakeAll(true);
    this.cutOffEnded().catch(this.report);
    if (this.followedUntil - Date.now() > followedMs / 2) return;
    this.extend().catch(this.report);
  }

  private async extend(): Promise<void> {
    const until = Date.now() + followedMs;
    // What the database has of a beginning that failed is not known here.
    const isBegun = await this.beginning?.then(
      () => true,
      () => false,
    );
    if (isBegun && (await extendFollowing(this.context(), this.accountId))) {
      this.followedUntil = until;
      return;
    }
    await (this.beginning = this.begin());
    // What changed meanwhile was not written down.
    for (const follower of this.followers) follower.afterSeq = neverSeq;
    this.wakeAll();
  }

  /** One query for all followers; streams whose key or session has ended are closed. */
  private async cutOffEnded(): Promise<void> {
    const followers = [...this.followers];
    const working = await findWorking(
      this.context(),
      followers.map(({ reader }) => reader),
    );
    for (const follower of followers) {
      if (working.has(follower.reader)) continue;
      follower.isCutOff = true;
      this.forget(follower);
      follower.wake(false);
    }
  }

  private wakeAll(isBeat = false): void {
    for (const follower of this.followers) follower.wake(isBeat);
  }

  private forget(follower: Follower): void {
    this.followers.delete(follower);
    if (this.hasFollowers) return;
    for (const timer of this.timers) clearInterval(timer);
    this.timers = [];
  }

  private readonly report = (error: unknown): void => logError({ followers: this.followers.size }, error);

  private context(): Ctx {
    return contextOf(this.env, { type: "system" }, (work) => this.ctx.waitUntil(work));
  }

  private get accountId(): Id<"account"> {
    if (this.ctx.id.name === undefined) throw new Error("An object of an account has its id as name");
    return this.ctx.id.name as Id<"account">;
  }
}

const eventOf = ({ seq, event }: Change): string =>
  `id: ${seq}\nevent: change\ndata: ${JSON.stringify(event)}\n\n`;
