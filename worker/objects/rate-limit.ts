import { DurableObject } from "cloudflare:workers";
import { admit, type Window } from "../domain/sliding-window.ts";
import type { Env } from "../env.ts";
import type { RateLimitRpc } from "./rpc.ts";

/**
 * One object per limited subject (an address, an account, the service): admits a maximum number of uses in any window.
 */
export class RateLimit extends DurableObject<Env> implements RateLimitRpc {
  /** Seconds to wait, or 0 if admitted. */
  async take(window: Window): Promise<number> {
    const known = this.hits();
    const { admitted, hits, resetMs } = admit(known ?? [], Date.now(), window);
    if (!admitted) return Math.max(1, Math.ceil(resetMs / 1000));
    this.ctx.storage.kv.put("hits", hits);
    if (known) return 0;
    this.ctx.storage.kv.put("windowMs", window.windowMs);
    await this.ctx.storage.setAlarm(Date.now() + window.windowMs);
    return 0;
  }

  /** Takes back an admitted use. */
  async giveBack(): Promise<void> {
    const hits = this.hits();
    if (hits) this.ctx.storage.kv.put("hits", hits.slice(0, -1));
  }

  /**
   * Deletes expired state. It runs once per window, because setting an alarm with each use would cost another write.
   */
  override async alarm(): Promise<void> {
    const pastAt = (this.hits()?.at(-1) ?? 0) + (this.ctx.storage.kv.get<number>("windowMs") ?? 0);
    if (pastAt > Date.now()) await this.ctx.storage.setAlarm(pastAt);
    else await this.ctx.storage.deleteAll();
  }

  private hits(): number[] | undefined {
    return this.ctx.storage.kv.get<number[]>("hits");
  }
}
