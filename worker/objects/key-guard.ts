import { DurableObject } from "cloudflare:workers";
import { contextOf } from "../compose.ts";
import type { Env } from "../env.ts";
import { logError } from "../log-error.ts";
import { Guard, type GuardStorage, type KeyActor, type Uses } from "./guard.ts";
import type { KeyGuardRpc, KeyVerdict } from "./rpc.ts";

/** How much of the window a crash may lose. */
const persistEveryMs = 1000;

/** One object per API key: a guard in one hop, whose storage survives hibernation. */
export class KeyGuard extends DurableObject<Env> implements KeyGuardRpc {
  private isPersisting = false;
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
    return {
      actor: () => kv.get<KeyActor>("actor"),
      keepActor: (actor) => void (actor ? kv.put("actor", actor) : kv.delete("actor")),
      uses: () => kv.get<Uses>("uses"),
      keepUses: () => this.persistSoon(),
      dropUses: () => void kv.delete("uses"),
      isRevoked: () => kv.get("revoked") === true,
      keepRevoked: () => kv.put("revoked", true),
    };
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
          const { uses } = this.guard;
          return uses && this.ctx.storage.put("uses", uses, { allowUnconfirmed: true });
        })
        .catch((error: unknown) => logError({ guard: "persist" }, error)),
    );
  }
}
