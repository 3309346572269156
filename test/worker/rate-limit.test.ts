import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { bindings } from "./service.ts";

it("what a limit has counted is kept for its window, and nothing for longer", async () => {
  const counter = bindings.RATE_LIMIT.get(bindings.RATE_LIMIT.idFromName("kept for its window"));
  const window = { limit: 1, windowMs: 60_000 };
  expect(await counter.take(window)).toBe(0);
  expect(await runDurableObjectAlarm(counter)).toBe(true);
  expect(await counter.take(window)).toBeGreaterThan(0);

  await runInDurableObject(counter, (_object, { storage }) =>
    storage.kv.put("hits", [Date.now() - window.windowMs]),
  );
  expect(await runDurableObjectAlarm(counter)).toBe(true);
  expect(await runInDurableObject(counter, (_object, { storage }) => [...storage.kv.list()])).toEqual([]);
  expect(await counter.take(window)).toBe(0);
});
