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

/** The times of the last admitted requests, and when D1 last heard of one: one value, as both change in one write. */
type Uses = { hits: number[]; touchedAtMs: number };

/** At most once a minute was asked for; D1 hears of a key that is used all the time twelve times an hour. */
const touchEveryMs = 5 * 60_000;
/** What a crash forgives. */
const persistEveryMs = 1000;

/**
 * One per API key: is it valid and within its limit, in one hop. The window is counted in memory; storage holds what memory
 * has after a sleep: the actor (a copy of D1's rows, read at first use and after every change that it is told of) and the
 * last uses.
 */
export class KeyGuard extends DurableObject<Env> implements KeyGuardRpc {
  private actor: KeyActor | undefined;
  private uses: Uses | undefined;
  private isPersisting = false;
  /** Changes that this guard was told of: a reading of D1 that began before one of them is not believed. */
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
   * Effective on the very next request. The mark stays, so that a reading of D1 that began before the revocation cannot
   * bring the key back.
   */
  async revoke(): Promise<void> {
    this.ctx.storage.kv.put("revoked", true);
    this.ctx.storage.kv.delete("uses");
    this.uses = undefined;
    await this.forget();
  }

  /** The account's role or plan has changed: the very next request goes by what D1 holds now. */
  async forget(): Promise<void> {
    this.changes++;
    this.actor = undefined;
    this.ctx.storage.kv.delete("actor");
  }

  /** A record that was put back to an earlier moment may not know the key any more: it is read anew, and refused then. */
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

  /** Once a second at most, and no answer waits for it. */
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
