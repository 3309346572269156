import { DurableObject } from "cloudflare:workers";
import { contextOf } from "../compose.ts";
import type { Env } from "../env.ts";
import { Guard, type GuardStorage, type KeyActor, type Uses } from "./guard.ts";
import type { KeyGuardRpc, KeyVerdict } from "./rpc.ts";
import { writingSoon } from "./write-soon.ts";

/** One object per API key: a guard in one hop, whose storage survives hibernation. */
export class KeyGuard extends DurableObject<Env> implements KeyGuardRpc {
  private readonly guard: Guard;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    const outlive = (work: Promise<unknown>) => state.waitUntil(work);
    this.guard = new Guard(
      this.guardStorage(),
      () => contextOf(env, { type: "system" }, outlive).db,
      outlive,
    );
  }

  check(keyHash: string): Promise<KeyVerdict> {
    return this.guard.check(keyHash);
  }

  revoke(): Promise<void> {
    return this.guard.revoke();
  }

  forget(): Promise<void> {
    return this.guard.forget();
  }

  private guardStorage(): GuardStorage {
    const { kv } = this.ctx.storage;
    const writeSoon = writingSoon(this.ctx, "KeyGuard", () => {
      const { uses } = this.guard;
      return uses && this.ctx.storage.put("uses", uses, { allowUnconfirmed: true });
    });
    return {
      actor: () => kv.get<KeyActor>("actor"),
      keepActor: (actor) => void (actor ? kv.put("actor", actor) : kv.delete("actor")),
      uses: () => kv.get<Uses>("uses"),
      keepUses: writeSoon,
      dropUses: () => void kv.delete("uses"),
      isRevoked: () => kv.get("revoked") === true,
      keepRevoked: () => kv.put("revoked", true),
    };
  }
}
