import { DurableObject } from "cloudflare:workers";
import { contextOf, type Actor, type Db } from "../context.ts";
import { admit, keyWindow } from "../domain/sliding-window.ts";
import type { Env } from "../env.ts";
import { findKeyActor } from "../services/keys/find.ts";
import { touchKey } from "../services/keys/touch.ts";

type KeyActor = Actor & { type: "key" };
export type Verdict = {
  actor: KeyActor | null;
  admitted: boolean;
  limit: number;
  left: number;
  resetSeconds: number;
  windowSeconds: number;
};

/** The times of the last admitted requests, and when D1 last heard of one: one value, as both change in one write. */
type Uses = { hits: number[]; touchedAtMs: number };

/** At most once a minute was asked for; D1 hears of a key that is used all the time twelve times an hour. */
const touchEveryMs = 5 * 60_000;

/**
 * One per API key: is it valid and within its limit, in one hop. Storage holds the actor (a copy of D1's row, read at
 * first use, removed at revocation) and its last uses; memory only spares reading them.
 */
export class KeyGuard extends DurableObject<Env> {
  private actor: KeyActor | undefined;
  private uses: Uses | undefined;

  async check(keyHash: string): Promise<Verdict> {
    const actor = await this.known(keyHash);
    if (!actor) return { actor: null, admitted: false, limit: 0, left: 0, resetSeconds: 0, windowSeconds: 0 };
    const now = Date.now();
    this.uses ??= this.ctx.storage.kv.get<Uses>("uses") ?? { hits: [], touchedAtMs: 0 };
    const { admitted, hits, left, resetMs } = admit(this.uses.hits, now, keyWindow);
    const touches = admitted && now - this.uses.touchedAtMs >= touchEveryMs;
    this.uses = { hits, touchedAtMs: touches ? now : this.uses.touchedAtMs };
    if (admitted) this.ctx.storage.kv.put("uses", this.uses);
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
    this.actor = undefined;
    this.ctx.storage.kv.put("revoked", true);
    this.ctx.storage.kv.delete("actor");
    this.ctx.storage.kv.delete("uses");
  }

  /** A record that was put back to an earlier moment may not know the key any more: it is read anew, and refused then. */
  private async touch(keyHash: string, at: Date): Promise<void> {
    if (await touchKey(this.db(), keyHash, at)) return;
    this.actor = undefined;
    this.ctx.storage.kv.delete("actor");
  }

  private db(): Db {
    return contextOf(this.env, { type: "system" }, (work) => this.ctx.waitUntil(work)).db;
  }

  private async known(keyHash: string): Promise<KeyActor | undefined> {
    this.actor ??= this.ctx.storage.kv.get<KeyActor>("actor");
    if (this.actor) return this.actor;
    if (this.ctx.storage.kv.get("revoked")) return undefined;
    const found = await findKeyActor(this.db(), keyHash);
    if (!found || this.ctx.storage.kv.get("revoked")) return undefined;
    this.ctx.storage.kv.put("actor", found);
    return (this.actor = found);
  }
}
