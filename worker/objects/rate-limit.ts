import { DurableObject } from "cloudflare:workers";
import { admit } from "../domain/sliding-window.ts";
import type { Env } from "../env.ts";
import type { CountedWindow, RateLimitRpc } from "./rpc.ts";
import { writingSoon } from "./write-soon.ts";

/**
 * One object per limited subject (an address, an account, the service): admits a maximum number of uses in any window.
 */
export class RateLimit extends DurableObject<Env> implements RateLimitRpc {
  private counted: number[] | undefined;
  private isLate = false;
  private readonly writeSoon = writingSoon(
    this.ctx,
    "RateLimit",
    () => this.counted && this.ctx.storage.put("hits", this.counted, { allowUnconfirmed: true }),
  );

  /** Seconds to wait, or 0 if admitted. */
  async take({ isLate = false, ...window }: CountedWindow): Promise<number> {
    const known = this.hits();
    const { admitted, hits, resetMs } = admit(known ?? [], Date.now(), window);
    if (!admitted) return Math.max(1, Math.ceil(resetMs / 1000));
    this.isLate = isLate && known !== undefined;
    this.keep(hits);
    if (known) return 0;
    this.ctx.storage.kv.put("windowMs", window.windowMs);
    await this.ctx.storage.setAlarm(Date.now() + window.windowMs);
    return 0;
  }

  /** Takes back an admitted use. */
  async giveBack(): Promise<void> {
    const hits = this.hits();
    if (hits) this.keep(hits.slice(0, -1));
  }

  /**
   * Deletes expired state. It runs once per window, because setting an alarm with each use would cost another write.
   */
  override async alarm(): Promise<void> {
    const pastAt = (this.hits()?.at(-1) ?? 0) + (this.ctx.storage.kv.get<number>("windowMs") ?? 0);
    if (pastAt > Date.now()) return this.ctx.storage.setAlarm(pastAt);
    this.counted = undefined;
    await this.ctx.storage.deleteAll();
  }

  private keep(hits: number[]): void {
    if (this.isLate) this.writeSoon();
    else this.ctx.storage.kv.put("hits", hits);
    this.counted = hits;
  }

  private hits(): number[] | undefined {
    return (this.counted ??= this.ctx.storage.kv.get<number[]>("hits"));
  }
}
