import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { app } from "../../worker/app.ts";
import type { Env } from "../../worker/env.ts";
import { ownerOf } from "./assistant.ts";
import { account, api, bindings, operator, operatorCookie } from "./service.ts";

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

it.each([
  ["free", { minute: "chatFree", most: 10, day: "chatFreeDaily", mostDaily: 100 }],
  ["pro", { minute: "chatPro", most: 30, day: "chatProDaily", mostDaily: 1000 }],
] as const)(
  "messages to the assistant are limited by the plan %s, for a minute and for a day, and what one refuses the other does not count",
  async (plan, { minute, most, day, mostDaily }) => {
    const [key, other] = [await account(), await account()];
    const [id, otherId] = [await ownerOf(key), await ownerOf(other)];
    for (const one of [id, otherId])
      expect((await api(await operator(), "PATCH", `/accounts/${one}`, { plan })).status).toBe(200);
    const send = async (as: string, count: number) => {
      const answers = await Promise.all(
        Array.from({ length: count }, () => api(as, "POST", "/chat", { message: "Hello" })),
      );
      // It is not paid for: what is admitted goes no further.
      return [402, 429].map((wanted) => answers.filter(({ status }) => status === wanted).length);
    };
    const usesOf = (limit: string, who: string, set?: number) =>
      runInDurableObject(
        bindings.RATE_LIMIT.get(bindings.RATE_LIMIT.idFromName(`${limit}:${who}`)),
        (_object, { storage: { kv } }) => {
          if (set !== undefined)
            kv.put(
              "hits",
              Array.from({ length: set }, () => Date.now()),
            );
          return kv.get<number[]>("hits")?.length;
        },
      );
    expect(await send(key, most + 5)).toEqual([most, 5]);
    expect(await usesOf(day, id)).toBe(most);
    await usesOf(day, otherId, mostDaily - 1);
    expect(await send(other, 3)).toEqual([1, 2]);
    expect(await usesOf(minute, otherId)).toBe(1);
  },
);
