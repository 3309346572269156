import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { app } from "../../worker/app.ts";
import type { Env } from "../../worker/env.ts";
import { bindings, operatorCookie } from "./service.ts";

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

it("what only reads goes on where a limit can count nothing, as on a full disk, but not where it is asked too much", async () => {
  const refusing = (error: Error): Env => ({
    ...bindings,
    RATE_LIMIT: {
      idFromName: () => "",
      get: () => ({ take: () => Promise.reject(error) }),
    } as unknown as Env["RATE_LIMIT"],
  });
  const full = refusing(new Error("internal error; SQLITE_FULL"));
  const cookie = await operatorCookie();
  const status = async (env: Env, path: string, init?: RequestInit) =>
    (await app.request(`http://127.0.0.1:8787${path}`, init, env)).status;
  const signedIn = { headers: { Cookie: cookie, Origin: "http://127.0.0.1:8787" } };
  expect(await status(full, "/api/v1/sites", signedIn)).toBe(200);
  expect(await status(full, "/", signedIn)).toBe(200);
  expect(await status(full, "/sign-in")).toBe(200);
  expect(await status(full, "/api/v1/keys", { ...signedIn, method: "POST", body: "{}" })).toBe(500);
  const overloaded = refusing(Object.assign(new Error("overloaded"), { overloaded: true }));
  expect(await status(overloaded, "/api/v1/sites", signedIn)).toBe(500);
});
