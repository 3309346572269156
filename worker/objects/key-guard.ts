import { DurableObject } from "cloudflare:workers";
import { contextOf } from "../compose.ts";
import type { Actor, Db } from "../ctx.ts";
import { admit, keyWindow } from "../domain/sliding-window.ts";
import type { Env } from "../env.ts";
import { logError } from "../log-error.ts";
import { findKeyActor } from "../services/keys/find.ts";
import { touchKey } from "../services/keys/touch.ts";
import type { KeyGuardRpc, KeyVerdict } from "./rpc.ts";

type KeyActor = Actor & { type: "key" };

/**
 * The times of the last admitted requests, and when the last use was written to D1: one value, since both change in
 * one write.
 */
type Uses = { hits: number[]; touchedAtMs: number };

/** "Last used" needs minute precision at most; a busy key is written to D1 twelve times per hour. */
const touchEveryMs = 5 * 60_000;
/** How much of the window a crash may lose. */
const persistEveryMs = 1000;

/**
 * One object per API key: validates the key and enforces its limit in one hop. The window is counted in memory;
 * storage keeps what must survive hibernation: the actor (a copy of D1's rows, read at first use and after every
 * notified change) and the last uses.
 */
export class KeyGuard extends DurableObject<Env> implements KeyGuardRpc {
  private actor: KeyActor | undefined;
  private uses: Uses | undefined;
  private isPersisting = false;
  /** Counts notified changes: a read from D1 that began before a change is discarded. */
  private changes = 0;

  async check(keyHash: string): Promise<KeyVerdict> {
    const actor = await this.known(keyHash);
    if (!actor) return { actor: null, admitted: false, limit: 0, left: 0, resetSeconds: 0, windowSeconds: 0 };
    const now = Date.now();
    this.uses ??= this.ctx.storage.kv.get<Uses>("uses") ?? { hits: [], touchedAtMs: 0 };
    const { admitted, hits, left, resetMs } = admit(this.uses.hits, now, keyWindow);
    const touches = admitted && now - this.uses.touchedAtMs >= touchEveryMs;
    this.uses = { hits, touchedAtMs: touches ? now : this.uses.touchedAtMs };
    if (admitted) this.persistSoon();
    if (touches) this.ctx.waitUntil(this.touch(keyHash, new Date(now)));
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
    this.ctx.storage.kv.put("revoked", true);
    this.ctx.storage.kv.delete("uses");
    this.uses = undefined;
    await this.forget();
  }

  /** The account's role or plan has changed: the next request reads it from D1. */
  async forget(): Promise<void> {
    this.changes++;
    this.actor = undefined;
    this.ctx.storage.kv.delete("actor");
  }

  /** After a restore of the database the key may be unknown; it is then read again and rejected. */
  private async touch(keyHash: string, at: Date): Promise<void> {
    if (!(await touchKey(this.db(), keyHash, at))) await this.forget();
  }

  private db(): Db {
    return contextOf(this.env, { type: "system" }, (work) => this.ctx.waitUntil(work)).db;
  }

  private async known(keyHash: string): Promise<KeyActor | undefined> {
    this.actor ??= this.ctx.storage.kv.get<KeyActor>("actor");
    if (this.actor) return this.actor;
    for (;;) {
      if (this.ctx.storage.kv.get("revoked")) return undefined;
      const { changes } = this;
      const found = await findKeyActor(this.db(), keyHash);
      if (changes !== this.changes) continue;
      if (!found) return undefined;
      this.ctx.storage.kv.put("actor", found);
      return (this.actor = found);
    }
  }

  /** At most once per second; no answer waits for it. */
  private persistSoon(): void {
    if (this.isPersisting) return;
    this.isPersisting = true;
    this.ctx.waitUntil(
      scheduler
        .wait(persistEveryMs)
        .then(() => {
          this.isPersisting = false;
          return this.uses && this.ctx.storage.put("uses", this.uses, { allowUnconfirmed: true });
        })
        .catch((error: unknown) => logError({ guard: "persist" }, error)),
    );
  }
}
