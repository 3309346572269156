import { DurableObject } from "cloudflare:workers";
import { admit, type Window } from "../domain/sliding-window.ts";
import type { Env } from "../env.ts";

/** One per thing that is limited (an address, an account, the service): admits at most so many in any window. */
export class RateLimit extends DurableObject<Env> {
  /** Seconds to wait, or 0 when admitted. */
  async take(window: Window): Promise<number> {
    const { admitted, hits, resetMs } = admit(
      this.ctx.storage.kv.get<number[]>("hits") ?? [],
      Date.now(),
      window,
    );
    if (!admitted) return Math.max(1, Math.ceil(resetMs / 1000));
    this.ctx.storage.kv.put("hits", hits);
    // Nothing is kept of what is long past.
    await this.ctx.storage.setAlarm(Date.now() + window.windowMs);
    return 0;
  }

  /** A use that was admitted counts for nothing after all. */
  async giveBack(): Promise<void> {
    const hits = this.ctx.storage.kv.get<number[]>("hits");
    if (hits) this.ctx.storage.kv.put("hits", hits.slice(0, -1));
  }

  override async alarm(): Promise<void> {
    await this.ctx.storage.deleteAll();
  }
}
