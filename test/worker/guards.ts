import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, vi } from "vitest";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import { embeddedGuards } from "../../worker/embedded/guards.ts";
import type { Uses } from "../../worker/objects/guard.ts";
import { bindings } from "./service.ts";

// The guards of keys are an object each, or all in the memory of the Worker (worker/embedded), whose loss is a restart.

const isEmbedded = "KEY_USES" in env;
const objectOf = (key: string) => bindings.KEY_GUARD.get(bindings.KEY_GUARD.idFromName(sha256Hex(key)));
const keyUses = () => env.KEY_USES.get(env.KEY_USES.idFromName("berth"));

function restart(uses = () => env.KEY_USES): void {
  bindings.GUARDS = embeddedGuards(bindings, uses);
}

/** The guard loses its memory when it has nothing to do. */
export async function guardSleeps(key: string): Promise<void> {
  if (isEmbedded) restart();
  else await evictDurableObject(objectOf(key));
}

/** The guard loses its memory in the middle of something. */
export async function guardIsKilled(key: string): Promise<void> {
  if (isEmbedded) restart();
  else
    await runInDurableObject(objectOf(key), (_object, state) => state.abort("killed")).catch(() => undefined);
}

const kept = (key: string): Promise<Uses | undefined> =>
  isEmbedded
    ? keyUses().read(sha256Hex(key))
    : runInDurableObject(objectOf(key), (_object, { storage }) => storage.kv.get<Uses>("uses"));

/** Until the guard has written down so many uses. */
export const persisted = (key: string, uses: number) =>
  vi.waitFor(async () => expect((await kept(key))?.hits.length ?? 0).toBe(uses), 10_000);

/** What is kept says that D1 was told of the last use at this time. */
export async function keepTouched(key: string, touchedAtMs: number): Promise<void> {
  const uses = { hits: [], ...(await kept(key)), touchedAtMs };
  if (isEmbedded) await keyUses().write([[sha256Hex(key), uses]]);
  else await runInDurableObject(objectOf(key), (_object, { storage }) => storage.kv.put("uses", uses));
}

/** Counts the writes of the key's uses from now on. */
export async function writesOf(key: string): Promise<() => number> {
  let writes = 0;
  const write: ReturnType<typeof keyUses>["write"] = (changes) => {
    if (changes.some(([hash]) => hash === sha256Hex(key))) writes++;
    return keyUses().write(changes);
  };
  const counting = { read: (hash: string) => keyUses().read(hash), write };
  if (isEmbedded) restart(() => ({ idFromName: () => "berth", get: () => counting }) as never);
  else
    await runInDurableObject(objectOf(key), (_object, { storage }) => {
      const put = storage.put.bind(storage) as (...args: unknown[]) => Promise<void>;
      const kvPut = storage.kv.put.bind(storage.kv);
      const count = (name: unknown) => void (name === "uses" && writes++);
      Object.assign(storage, { put: (...args: unknown[]) => (count(args[0]), put(...args)) });
      Object.assign(storage.kv, { put: (name: string, value: unknown) => (count(name), kvPut(name, value)) });
    });
  return () => writes;
}
