import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { app } from "../../worker/app.ts";
import type { Env } from "../../worker/env.ts";
import { AppError } from "../../worker/domain/app-error.ts";
import { contextFor } from "../../worker/middleware/context.ts";
import {
  countedAddress,
  guessWithin,
  limitAddress,
  limits,
  takeForChat,
  takeForRequest,
  takeFrom,
} from "../../worker/middleware/limit.ts";
import { ownerOf } from "./assistant.ts";
import { ask, keyOf, made, notedLimits, type Answering } from "./direct.ts";
import { account, api, bindings, operator, operatorCookie } from "./service.ts";

beforeEach(() => void vi.restoreAllMocks());
afterEach(() => vi.restoreAllMocks());

describe("a limit", () => {
  /** What is answered, and what was counted for it. */
  const answered = async (
    work: Answering,
    refusing: Record<string, number | Error> = {},
    init: RequestInit = {},
  ) => {
    const { noted, limits: counters } = notedLimits(refusing);
    const { status, headers } = await ask(made().all("/", work), "/", init, { ...bindings, ...counters });
    return [status, headers.get("Retry-After"), noted];
  };
  const full = new Error("internal error; SQLITE_FULL");
  const overloaded = Object.assign(new Error("overloaded"), { overloaded: true });

  it("counts for one subject, and says when to come back", async () => {
    const work: Answering = async (c) => {
      await takeFrom(c, "webhook", "whk_1");
      return c.text("");
    };
    expect(await answered(work)).toEqual([200, null, ["webhook:whk_1"]]);
    expect(await answered(work, { webhook: 1 })).toEqual([429, "1", ["webhook:whk_1"]]);
  });

  it.each([
    ["203.0.113.7", "203.0.113.7"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    [undefined, "unknown"],
  ])("of the address %s counts for %s", async (address, counted) => {
    const headers: Record<string, string> = address === undefined ? {} : { "CF-Connecting-IP": address };
    expect(await answered((c) => c.text(countedAddress(c)), {}, { headers })).toEqual([200, null, []]);
    const limited = made().get("/", limitAddress, (c) => c.text("read"));
    for (const [wait, status, text] of [
      [0, 200, "read"],
      [3, 429, '{"error":"rate_limited"}'],
    ] as const) {
      const { noted, limits: counters } = notedLimits({ address: wait });
      const response = await ask(limited, "/", { headers }, { ...bindings, ...counters });
      expect([response.status, await response.text(), noted]).toEqual([status, text, [`address:${counted}`]]);
    }
  });

  it.each([
    ["GET", full, 200],
    ["HEAD", full, 200],
    ["POST", full, 500],
    ["DELETE", full, 500],
    ["GET", overloaded, 500],
    ["POST", overloaded, 500],
    ["GET", 5, 429],
    ["POST", 5, 429],
  ])("of requests answers %s where its counter says %s with %i", async (method, refusal, status) => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const work: Answering = async (c) => {
      await takeForRequest(c, "session", "acc_1");
      return c.text("");
    };
    const answer = await answered(work, { session: refusal }, { method });
    expect(answer).toEqual([status, status === 429 ? "5" : null, ["session:acc_1"]]);
    const lines = log.mock.calls.map(([line]) => JSON.parse(String(line)) as { limit?: string });
    expect(lines.map(({ limit }) => limit)).toEqual(
      status === 429 ? [] : [status === 200 ? "session" : undefined],
    );
  });

  it("of a day is one of 24 hours", () => {
    const { keyMade, chatFreeDaily, chatProDaily } = limits;
    for (const { windowMs } of [keyMade, chatFreeDaily, chatProDaily]) expect(windowMs).toBe(86_400_000);
  });

  it("of guesses counts those that miss, and is asked before anything is looked up", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const both = ["guessesOfAccount:acc_1", "guessesOfAddress:192.0.2.1"];
    const guessed = async (lookUp: () => Promise<unknown>, refusing: Record<string, number | Error> = {}) => {
      let lookUps = 0;
      const answer = await answered(async (c) => {
        const found = await guessWithin(
          c,
          [
            ["guessesOfAccount", "acc_1"],
            ["guessesOfAddress", "192.0.2.1"],
          ],
          () => {
            lookUps++;
            return lookUp();
          },
        );
        return c.json(found, found === null ? 202 : 201);
      }, refusing);
      return [lookUps, ...answer];
    };
    const failing = (error: Error) => () => Promise.reject(error);
    const back = both.map((name) => `not ${name}`);
    expect(await guessed(async () => ({ id: 1 }))).toEqual([1, 201, null, [...both, ...back]]);
    expect(await guessed(async () => null)).toEqual([1, 202, null, both]);
    for (const [error, status, isMiss] of [
      [new AppError("not_found"), 404, true],
      [new AppError("unauthorized"), 401, true],
      [new AppError("conflict"), 409, false],
      [new Error("gone"), 500, false],
      [Object.assign(new Error("gone"), { code: "not_found" }), 500, false],
    ] as const)
      expect(await guessed(failing(error))).toEqual([1, status, null, isMiss ? both : [...both, ...back]]);
    expect(await guessed(async () => null, { guessesOfAccount: 8 })).toEqual([0, 429, "8", both.slice(0, 1)]);
    for (const refusal of [9, full])
      expect(await guessed(async () => null, { guessesOfAddress: refusal })).toEqual([
        0,
        refusal === 9 ? 429 : 500,
        refusal === 9 ? "9" : null,
        [...both, back[0]],
      ]);
  });

  it("of messages to the assistant is the plan's, and what one of its two refuses the other gives back", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const sent = (actor: object, refusing: Record<string, number | Error> = {}) =>
      answered(async (c) => {
        c.set("ctx", contextFor(c, actor as never));
        await takeForChat(c);
        return c.text("");
      }, refusing);
    const accountId = "acc_1";
    const [free, pro] = [keyOf({ accountId }), keyOf({ accountId, plan: "pro" })];
    const session = { ...pro, type: "session" };
    const [ofFree, ofPro] = [
      ["chatFree:acc_1", "chatFreeDaily:acc_1"],
      ["chatPro:acc_1", "chatProDaily:acc_1"],
    ];
    expect(await sent(free)).toEqual([200, null, ofFree]);
    for (const actor of [pro, session]) expect(await sent(actor)).toEqual([200, null, ofPro]);
    expect(await sent(free, { chatFree: 4 })).toEqual([429, "4", [...ofFree, "not chatFreeDaily:acc_1"]]);
    expect(await sent(free, { chatFreeDaily: 5 })).toEqual([429, "5", [...ofFree, "not chatFree:acc_1"]]);
    expect(await sent(free, { chatFree: 6, chatFreeDaily: 7 })).toEqual([429, "6", ofFree]);
    expect(await sent(pro, { chatProDaily: full })).toEqual([500, null, [...ofPro, "not chatPro:acc_1"]]);
    for (const type of ["link", "assistant", "viewer", "system"])
      expect(await sent({ ...free, type })).toEqual([401, null, []]);
  });
});

it("what a limit has counted is kept for its window, and nothing for longer", async () => {
  const counter = bindings.RATE_LIMIT.get(bindings.RATE_LIMIT.idFromName("kept for its window"));
  const window = { limit: 1, windowMs: 60_000 };
  expect(await counter.take(window)).toBe(0);
  expect(await runDurableObjectAlarm(counter)).toBe(true);
  expect(await counter.take(window)).toBeGreaterThan(0);

  await runInDurableObject(counter, (_object, { storage }) =>
    storage.kv.put("hits", [Date.now() - window.windowMs]),
  );
  await evictDurableObject(counter);
  expect(await runDurableObjectAlarm(counter)).toBe(true);
  expect(await runInDurableObject(counter, (_object, { storage }) => [...storage.kv.list()])).toEqual([]);
  expect(await counter.take(window)).toBe(0);
});

describe("the counts of requests by sessions and addresses", () => {
  const late = { limit: 30, windowMs: 60_000, isLate: true };
  const counterOf = (name: string) => bindings.RATE_LIMIT.get(bindings.RATE_LIMIT.idFromName(name));
  type Counter = ReturnType<typeof counterOf>;
  const takeAtOnce = async (counter: Counter, times: number) =>
    (await Promise.all(Array.from({ length: times }, () => counter.take(late)))).filter((wait) => wait === 0)
      .length;
  const written = (counter: Counter, uses: number) =>
    vi.waitFor(
      async () =>
        expect(
          await runInDurableObject(counter, (_, { storage }) => storage.kv.get<number[]>("hits")?.length),
        ).toBe(uses),
      10_000,
    );

  it("are exact, before and after its object slept", async () => {
    expect([limits.session.isLate, limits.address.isLate]).toEqual([true, true]);
    const counter = counterOf("slept");
    expect(await takeAtOnce(counter, 20)).toBe(20);
    await written(counter, 20);
    await evictDurableObject(counter);
    expect(await takeAtOnce(counter, 20)).toBe(10);
    await counter.giveBack();
    expect(await takeAtOnce(counter, 20)).toBe(1);
  });

  it("forgive no more than the last second when its object is killed", async () => {
    let counter = counterOf("killed");
    await takeAtOnce(counter, 10);
    await written(counter, 10);
    await takeAtOnce(counter, 10);
    await runInDurableObject(counter, (_object, state) => state.abort("killed")).catch(() => undefined);
    counter = counterOf("killed");
    const admitted = await takeAtOnce(counter, 30);
    expect(admitted).toBeGreaterThanOrEqual(10);
    expect(admitted).toBeLessThanOrEqual(20);
  });

  it("cost one write a second at most after the first, and no answer waits for it", async () => {
    const counter = counterOf("writes");
    await counter.take(late);
    let [writes, waited] = [0, 0];
    await runInDurableObject(counter, (_object, { storage }) => {
      const put = storage.put.bind(storage) as (...args: unknown[]) => Promise<void>;
      const kvPut = storage.kv.put.bind(storage.kv);
      Object.assign(storage, { put: (...args: unknown[]) => (writes++, put(...args)) });
      Object.assign(storage.kv, { put: (name: string, value: unknown) => (waited++, kvPut(name, value)) });
    });
    const begun = Date.now();
    for (let times = 0; times < 20; times++) expect(await counter.take(late)).toBe(0);
    await written(counter, 21);
    expect(waited).toBe(0);
    expect(writes).toBeGreaterThan(0);
    expect(writes).toBeLessThanOrEqual(1 + Math.ceil((Date.now() - begun) / 1000));
  });
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
