import { expect, it, vi } from "vitest";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import { embeddedGuards } from "../../worker/embedded/guards.ts";
import type { Uses } from "../../worker/objects/guard.ts";
import { account, bindings } from "./service.ts";

type Change = [keyHash: string, uses: Uses | null];

/** The guards of `npm start`, and what they wrote. */
function guards({ failing = 0 } = {}) {
  const writes: Change[][] = [];
  const rows = new Map<string, Uses>();
  const object = {
    read: async (hash: string) => rows.get(hash),
    write: async (changes: Change[]) => {
      if (failing-- > 0) throw new Error("the disk is full");
      writes.push(structuredClone(changes));
      for (const [hash, uses] of changes)
        if (uses) rows.set(hash, uses);
        else rows.delete(hash);
    },
  };
  const guardOf = embeddedGuards(bindings, () => ({ idFromName: () => "", get: () => object }) as never);
  return { writes, rows, guardOf, ask: (hash: string) => guardOf(hash).check(hash) };
}
const twoKeys = async () => [sha256Hex(await account()), sha256Hex(await account())] as const;

it("the windows of all keys are one write, a second after the first use", async () => {
  const [one, other] = await twoKeys();
  const { ask, writes, rows } = guards();
  await Promise.all([ask(one), ask(one), ask(other)]);
  await vi.waitFor(() => expect(writes).toHaveLength(1), 10_000);
  expect([rows.get(one)?.hits.length, rows.get(other)?.hits.length]).toEqual([2, 1]);
});

it("a key that nobody uses takes no memory and no row after five minutes, and begins anew", async () => {
  const [one, other] = await twoKeys();
  const { ask, rows } = guards();
  await ask(one);
  await vi.waitFor(() => expect(rows.has(one)).toBe(true), 10_000);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 6 * 60_000 });
  try {
    await ask(other);
    await vi.waitFor(() => expect([...rows.keys()]).toEqual([other]), 10_000);
    expect((await ask(one)).left).toBe(59);
  } finally {
    vi.useRealTimers();
  }
});

it("a write that fails is part of the next one", async () => {
  const [one, other] = await twoKeys();
  const { ask, rows, writes } = guards({ failing: 1 });
  await ask(one);
  await vi.waitFor(async () => {
    await ask(other);
    expect(writes.length).toBeGreaterThan(0);
  }, 10_000);
  expect([...rows.keys()].toSorted()).toEqual([one, other].toSorted());
});

it("a revoked key is refused at once, and what was kept of it goes", async () => {
  const [one] = await twoKeys();
  const { ask, rows, guardOf } = guards();
  await ask(one);
  await vi.waitFor(() => expect(rows.has(one)).toBe(true), 10_000);
  await guardOf(one).revoke();
  expect((await ask(one)).actor).toBeNull();
  await vi.waitFor(() => expect(rows.has(one)).toBe(false), 10_000);
});
