import { DrizzleQueryError } from "drizzle-orm/errors";
import { Hono } from "hono";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { AppEnv } from "../../worker/app-env.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Env } from "../../worker/env.ts";
import worker from "../../worker/index.ts";
import { logError } from "../../worker/log-error.ts";
import { onError } from "../../worker/middleware/errors.ts";
import { drainRequestBody } from "../../worker/middleware/body.ts";
import { bindings } from "./service.ts";

const secret = "hunter2-secret\n    at the first line of a key";
const failed = () =>
  new DrizzleQueryError(
    "insert into sites values (?, ?)",
    ["site_1", secret],
    new Error("D1_ERROR: disk I/O error", { cause: new Error("SQLITE_IOERR") }),
  );

function listen() {
  const said: string[] = [];
  vi.spyOn(console, "error").mockImplementation((text) => void said.push(String(text)));
  return said;
}
afterEach(() => vi.restoreAllMocks());

describe("the log of an unknown error", () => {
  it("has the whole cause and the query, but no parameter, and the route instead of the path", async () => {
    const said = listen();
    const invoices = new Hono<AppEnv>().get("/:token/pdf", () => {
      throw failed();
    });
    const app = new Hono<AppEnv>().route("/invoice", invoices).use("/*", (_c, next) => next());
    app.onError(onError);
    const response = await app.request("/invoice/inv_0secrettoken/pdf");
    expect([response.status, await response.json()]).toEqual([500, { error: "server_error" }]);
    expect(said).toHaveLength(1);
    expect(JSON.parse(said[0] ?? "")).toEqual({
      level: "error",
      method: "GET",
      route: "/invoice/:token/pdf",
      error: "Error: Failed query: insert into sites values (?, ?)",
      causes: ["Error: D1_ERROR: disk I/O error", "Error: SQLITE_IOERR"],
      stack: expect.stringMatching(/^\s+at /),
    });
    expect(said.join("")).not.toMatch(/hunter2|first line of a key|inv_0secrettoken|site_1/);
  });

  it("has no parameter either where the error came from another object as its message only", () => {
    const said = listen();
    logError({}, new Error(failed().message));
    logError({}, new AggregateError([failed(), "a text"], "both failed"));
    logError({}, new Error("No resolver answered", { cause: [new Error("one"), failed()] }));
    expect(said.join("")).not.toMatch(/hunter2|first line of a key/);
    expect(said.map((line) => (JSON.parse(line) as { causes: string[] }).causes)).toEqual([
      [],
      [
        "Error: Failed query: insert into sites values (?, ?)",
        "a text",
        "Error: D1_ERROR: disk I/O error",
        "Error: SQLITE_IOERR",
      ],
      [
        "Error: one",
        "Error: Failed query: insert into sites values (?, ?)",
        "Error: D1_ERROR: disk I/O error",
        "Error: SQLITE_IOERR",
      ],
    ]);
  });

  it("is the same for what was left to be done after the answer", async () => {
    const said = listen();
    const work: Promise<unknown>[] = [];
    contextOf(bindings, { type: "system" }, (one) => void work.push(one)).defer(Promise.reject(failed()));
    await Promise.all(work);
    expect(JSON.parse(said[0] ?? "")).toMatchObject({
      deferred: true,
      causes: ["Error: D1_ERROR: disk I/O error", "Error: SQLITE_IOERR"],
    });
    expect(said.join("")).not.toContain("hunter2");
  });

  it("names the timer's task, whose own error tells the platform nothing", async () => {
    const said = listen();
    const broken = () => Promise.reject(new Error("D1_ERROR: gone"));
    const statement = { bind: () => statement, all: broken, run: broken, raw: broken, first: broken };
    const env = { ...bindings, DB: { prepare: () => statement, batch: broken } } as unknown as Env;
    const work: Promise<unknown>[] = [];
    worker.scheduled({} as ScheduledController, env, {
      waitUntil: (one: Promise<unknown>) => void work.push(one.catch(String)),
    } as unknown as ExecutionContext);
    expect(await Promise.all(work)).toContainEqual(expect.stringMatching(/task "\w+" failed/));
    await vi.waitFor(() => expect(said.length).toBeGreaterThanOrEqual(8), 10_000);
    for (const line of said) expect(line).toContain("D1_ERROR: gone");
    expect(said.join("")).toContain('"task":"keys"');
  });

  it("ends none of the timer's other tasks: the platform waits for each of them", async () => {
    listen();
    const database = Promise.withResolvers<void>();
    const later = () => database.promise.then(() => Promise.reject(new Error("Enough of this test.")));
    const at = (answer: () => Promise<never>) => {
      const statement = { bind: () => statement, all: answer, run: answer, raw: answer, first: answer };
      return statement;
    };
    const broken = at(() => Promise.reject(new Error("D1_ERROR: gone")));
    const prepare = (sql: string) => (sql.includes("idempotent_requests") ? broken : at(later));
    const env = { ...bindings, DB: { prepare, batch: later } } as unknown as Env;
    const work: Promise<unknown>[] = [];
    worker.scheduled({} as ScheduledController, env, {
      waitUntil: (one: Promise<unknown>) => void work.push(one),
    } as unknown as ExecutionContext);
    const ended: unknown[] = [];
    const all = Promise.all(work.map((one) => one.catch((error: unknown) => ended.push(error))));
    await vi.waitUntil(() => ended.length > 0, 10_000);
    expect(ended.length).toBeLessThan(work.length);
    database.resolve();
    await all;
  });
});

it("a refusal is told at once to who sends a body without end, and is over within five seconds", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const app = new Hono<AppEnv>().use(drainRequestBody).post("/", (c) => c.text("no", 401));
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start: (out) => out.enqueue(new Uint8Array(1)),
    cancel: () => void (isCancelled = true),
  });
  const answer = await app.request("/", { method: "POST", body });
  expect(answer.status).toBe(401);
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("no");
  expect(isCancelled).toBe(false);
  await vi.advanceTimersByTimeAsync(5000);
  expect((await reader.read()).done).toBe(true);
  expect(isCancelled).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});
