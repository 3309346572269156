import type { Actor, Db } from "../ctx.ts";
import { admit, keyWindow } from "../domain/sliding-window.ts";
import { findKeyActor } from "../services/keys/find.ts";
import { touchKey } from "../services/keys/touch.ts";
import type { Guarding, KeyVerdict } from "./rpc.ts";

export type KeyActor = Actor & { type: "key" };

/**
 * The times of the last admitted requests, and when the last use was written to D1: one value, since both change in
 * one write.
 */
export type Uses = { hits: number[]; touchedAtMs: number };

/** What survives the memory of a guard. */
export type GuardStorage = {
  actor(): KeyActor | undefined;
  keepActor(actor: KeyActor | null): void;
  uses(): Uses | undefined | Promise<Uses | undefined>;
  /** Writes them down within a second, and lets no answer wait for it. */
  keepUses(): void;
  dropUses(): void;
  isRevoked(): boolean;
  /** For good. */
  keepRevoked(): void;
};

/** "Last used" needs minute precision at most; a busy key is written to D1 twelve times per hour. */
const touchEveryMs = 5 * 60_000;

/**
 * Validates one API key and enforces its limit. The window is counted in memory; storage keeps what must survive it: the
 * actor (a copy of D1's rows, read at first use and after every notified change) and the last uses.
 */
export class Guard implements Guarding {
  uses: Uses | undefined;
  private actor: KeyActor | undefined;
  /** Counts notified changes: a read from D1 that began before a change is discarded. */
  private changes = 0;
  private readonly storage: GuardStorage;
  private readonly db: () => Db;
  private readonly outlive: (work: Promise<unknown>) => void;

  constructor(storage: GuardStorage, db: () => Db, outlive: (work: Promise<unknown>) => void) {
    this.storage = storage;
    this.db = db;
    this.outlive = outlive;
  }

  async check(keyHash: string): Promise<KeyVerdict> {
    const actor = this.actor ?? (await this.known(keyHash));
    if (!actor) return { actor: null, admitted: false, limit: 0, left: 0, resetSeconds: 0, windowSeconds: 0 };
    if (!this.uses) {
      const kept = await this.storage.uses();
      // Another request may have read them meanwhile.
      this.uses ??= kept ?? { hits: [], touchedAtMs: 0 };
    }
    const now = Date.now();
    const { admitted, hits, left, resetMs } = admit(this.uses.hits, now, keyWindow);
    const touches = admitted && now - this.uses.touchedAtMs >= touchEveryMs;
    this.uses = { hits, touchedAtMs: touches ? now : this.uses.touchedAtMs };
    if (admitted) this.storage.keepUses();
    if (touches) this.outlive(this.touch(keyHash, new Date(now)));
    return {
      actor,
      admitted,
      limit: keyWindow.limit,
      left,
      resetSeconds: Math.max(1, Math.ceil(resetMs / 1000)),
      windowSeconds: keyWindow.windowMs / 1000,
    };
  }

  /**
   * Takes effect on the next request. The mark is kept, so that a read from D1 that began before the revocation cannot
   * revive the key.
   */
  async revoke(): Promise<void> {
    this.storage.keepRevoked();
    this.storage.dropUses();
    this.uses = undefined;
    await this.forget();
  }

  /** The account's role or plan has changed: the next request reads it from D1. */
  async forget(): Promise<void> {
    this.changes++;
    this.actor = undefined;
    this.storage.keepActor(null);
  }

  /** After a restore of the database the key may be unknown; it is then read again and rejected. */
  private async touch(keyHash: string, at: Date): Promise<void> {
    if (!(await touchKey(this.db(), keyHash, at))) await this.forget();
  }

  private async known(keyHash: string): Promise<KeyActor | undefined> {
    const kept = this.storage.actor();
    if (kept) return (this.actor = kept);
    for (;;) {
      if (this.storage.isRevoked()) return undefined;
      const { changes } = this;
      const found = await findKeyActor(this.db(), keyHash);
      if (changes !== this.changes) continue;
      if (!found) return undefined;
      this.storage.keepActor(found);
      return (this.actor = found);
    }
  }
}
