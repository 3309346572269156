import { DurableObject } from "cloudflare:workers";
import type { Id } from "../../protocol/ids.ts";
import type { Env } from "../env.ts";
import type { PendingCall as Call, PendingCallRpc } from "./rpc.ts";

type Kept = Call & { state: "open" | "taken" | "declined"; outcome: string | null };

/**
 * One object per tool call that waits for a person's word outside a conversation: open → taken or declined, once. Expiry is checked
 * against the clock at every read; the alarm only cleans up.
 */
export class PendingCall extends DurableObject<Env> implements PendingCallRpc {
  async keep(call: Call): Promise<void> {
    this.ctx.storage.kv.put<Kept>("call", { ...call, state: "open", outcome: null });
    await this.ctx.storage.setAlarm(call.expiresAtMs);
  }

  /** The call while it waits; null: none, another account's, used or expired. */
  async read(accountId: Id<"account">): Promise<Call | null> {
    const kept = this.of(accountId);
    return kept?.state === "open" ? kept : null;
  }

  /** The same, and nobody else gets it any more. */
  async take(accountId: Id<"account">, as: "taken" | "declined"): Promise<Call | null> {
    const kept = this.of(accountId);
    if (kept?.state !== "open") return null;
    this.ctx.storage.kv.put<Kept>("call", { ...kept, state: as });
    return kept;
  }

  /** What came of the taken call, for whoever asked for it. */
  async settle(outcome: string): Promise<void> {
    const kept = this.ctx.storage.kv.get<Kept>("call");
    if (kept) this.ctx.storage.kv.put<Kept>("call", { ...kept, outcome });
  }

  /** null: nobody has answered. What was confirmed and never settled was cut off, or is still being carried out. */
  async outcome(accountId: Id<"account">): Promise<string | null> {
    const kept = this.of(accountId);
    if (!kept || kept.state === "open") return null;
    if (kept.state === "declined") return "declined";
    return kept.outcome ?? "confirmed, but not known to be carried out: look before you call the tool again";
  }

  override alarm(): Promise<void> {
    return this.ctx.storage.deleteAll();
  }

  private of(accountId: Id<"account">): Kept | null {
    const kept = this.ctx.storage.kv.get<Kept>("call");
    return kept && kept.accountId === accountId && Date.now() < kept.expiresAtMs ? kept : null;
  }
}
