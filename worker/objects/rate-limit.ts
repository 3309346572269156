import { DurableObject } from "cloudflare:workers";
import { admit, type Window } from "../domain/sliding-window.ts";
import type { Env } from "../env.ts";
import type { RateLimitRpc } from "./rpc.ts";

/** One per thing that is limited (an address, an account, the service): admits at most so many in any window. */
export class RateLimit extends DurableObject<Env> implements RateLimitRpc {
  /** Seconds to wait, or 0 when admitted. */
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

  /** A use that was admitted counts for nothing after all. */
  async giveBack(): Promise<void> {
    const hits = this.hits();
    if (hits) this.ctx.storage.kv.put("hits", hits.slice(0, -1));
  }

  /** Nothing is kept of what is long past. It looks once a window: an alarm set with each use would be a write more. */
  override async alarm(): Promise<void> {
    const pastAt = (this.hits()?.at(-1) ?? 0) + (this.ctx.storage.kv.get<number>("windowMs") ?? 0);
    if (pastAt > Date.now()) await this.ctx.storage.setAlarm(pastAt);
    else await this.ctx.storage.deleteAll();
  }

  private hits(): number[] | undefined {
    return this.ctx.storage.kv.get<number[]>("hits");
  }
}
