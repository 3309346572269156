import { DurableObject, waitUntil } from "cloudflare:workers";
import { contextOf } from "../compose.ts";
import type { Env } from "../env.ts";
import { logError } from "../log-error.ts";
import { Guard, type GuardStorage, type Uses } from "../objects/guard.ts";
import type { Change, KeyUsesRpc } from "./bindings.ts";

/** The last uses of every key, for after a restart. */
export class KeyUses extends DurableObject {
  read(keyHash: string): Uses | undefined {
    return this.ctx.storage.kv.get<Uses>(keyHash);
  }

  /** In one transaction. */
  write(changes: Change[]): void {
    for (const [keyHash, uses] of changes)
      if (uses) this.ctx.storage.kv.put(keyHash, uses);
      else this.ctx.storage.kv.delete(keyHash);
  }
}

/** How much of the windows a crash may lose. */
const writeEveryMs = 1000;
/** Nothing that is kept of a key that was not used for so long has a meaning any more. */
const idleMs = 5 * 60_000;

/**
 * The guards of all keys in the memory of the Worker, which is one isolate here: a request costs no call, a key no object
 * with a database and a file of its own, and all windows together one write a second. A revocation is a change of this
 * memory; after a restart keys are read from the database anew.
 */
export function embeddedGuards(
  env: Env,
  usesOf: () => DurableObjectNamespace<KeyUsesRpc>,
): (keyHash: string) => Guard {
  const guards = new Map<string, { guard: Guard; usedAtMs: number }>();
  const changed = new Set<string>();
  let lateAtMs = 0;

  const stored = () => {
    const namespace = usesOf();
    return namespace.get(namespace.idFromName("berth"));
  };

  async function write(): Promise<void> {
    lateAtMs = 0;
    const changes = Array.from(changed, (hash): Change => [hash, guards.get(hash)?.guard.uses ?? null]);
    changed.clear();
    try {
      await stored().write(changes);
    } catch (error) {
      for (const [hash] of changes) changed.add(hash);
      throw error;
    }
    const now = Date.now();
    const idle = [...guards].filter(([hash, { usedAtMs }]) => now - usedAtMs > idleMs && !changed.has(hash));
    if (idle.length === 0) return;
    for (const [hash] of idle) guards.delete(hash);
    await stored().write(idle.map(([hash]) => [hash, null]));
  }

  /** A timer ends with the request that it began with, if that is cut off: a later request begins another. */
  function writeSoon(hash: string): void {
    changed.add(hash);
    const now = Date.now();
    if (now < lateAtMs) return;
    lateAtMs = now + 5 * writeEveryMs;
    waitUntil(
      scheduler
        .wait(writeEveryMs)
        .then(write)
        .catch((error: unknown) => logError({ guards: "write" }, error)),
    );
  }

  function guardStorage(hash: string): GuardStorage {
    let isRevoked = false;
    return {
      actor: () => undefined,
      keepActor: () => undefined,
      uses: () => stored().read(hash),
      keepUses: () => writeSoon(hash),
      dropUses: () => writeSoon(hash),
      isRevoked: () => isRevoked,
      keepRevoked: () => void (isRevoked = true),
    };
  }

  const db = () => contextOf(env, { type: "system" }, waitUntil).db;
  return (hash) => {
    let known = guards.get(hash);
    if (!known)
      guards.set(hash, (known = { guard: new Guard(guardStorage(hash), db, waitUntil), usedAtMs: 0 }));
    known.usedAtMs = Date.now();
    return known.guard;
  };
}
