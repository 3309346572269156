import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { app } from "../../worker/app.ts";
import { crashingDatabase } from "./crashing-database.ts";
import { execution, keyOf, made, type Answering } from "./direct.ts";
import { contextFor } from "../../worker/middleware/context.ts";
import { idempotency } from "../../worker/middleware/idempotency.ts";
import { ownerOf } from "./assistant.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  newSession,
  operator,
  readyAgent,
  run,
  runningSite,
  siteInput,
  siteUrl,
} from "./service.ts";

beforeEach(() => void vi.restoreAllMocks());
afterEach(() => vi.restoreAllMocks());

const post = (key: string, idempotencyKey: string, body: unknown, path = "/sites") =>
  change("POST", key, idempotencyKey, path, body);
const change = async (method: string, key: string, idempotencyKey: string, path: string, body?: unknown) => {
  const response = await call(`/api/v1${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${key}`,
      "Content-Type": "application/json",
      "Idempotency-Key": idempotencyKey,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return {
    status: response.status,
    replayed: response.headers.get("Idempotency-Replayed"),
    location: response.headers.get("Location"),
    text: await response.text(),
  };
};

const count = async (key: string) => (await api<{ data: unknown[] }>(key, "GET", "/sites")).body.data.length;

describe("a request with an Idempotency-Key", () => {
  it("sent again answers the first answer byte for byte and creates nothing", async () => {
    const key = await account();
    const input = siteInput();
    const first = await post(key, "once", input);
    const second = await post(key, "once", input);
    expect(first).toMatchObject({
      status: 201,
      replayed: null,
      location: expect.stringMatching(/\/sites\//),
    });
    expect(second).toEqual({ ...first, replayed: "true" });
    expect(await count(key)).toBe(1);
  });

  it("sent many times at once runs once", async () => {
    const key = await account();
    const input = siteInput();
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(key, "race", input)));
    expect(answers.filter(({ status, replayed }) => status === 201 && replayed === null)).toHaveLength(1);
    expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true);
    expect(await count(key)).toBe(1);
  });

  it("with another body is refused", async () => {
    const key = await account();
    await post(key, "other", siteInput());
    const second = await post(key, "other", siteInput());
    expect([second.status, JSON.parse(second.text)]).toEqual([422, { error: "idempotency_mismatch" }]);
    expect(await count(key)).toBe(1);
  });

  it("that was refused may be mended and sent again under the same key", async () => {
    const key = await account();
    expect((await post(key, "mend", siteInput({ port: 0 }))).status).toBe(400);
    expect((await post(key, "mend", siteInput())).status).toBe(201);
  });

  describe("that failed", () => {
    const purchase = { packageId: "cpk_001k0000000000000000000001" };
    const bought = async (key: string) =>
      (await api<{ data: unknown[] }>(key, "GET", "/invoices")).body.data.length;

    /** The same request to a Worker whose database is this one. */
    async function postWith(DB: D1Database, key: string): Promise<Response> {
      const work: Promise<unknown>[] = [];
      const execution = { waitUntil: (one: Promise<unknown>) => void work.push(one) };
      const response = await app.fetch(
        new Request(`${siteUrl}/api/v1/credits/purchase`, {
          method: "POST",
          headers: {
            Authorization: `Bearer ${key}`,
            "Content-Type": "application/json",
            "Idempotency-Key": "failed",
          },
          body: JSON.stringify(purchase),
        }),
        { ...bindings, DB },
        execution as unknown as ExecutionContext,
      );
      await Promise.all(work);
      return response;
    }

    it("answers its failure again and does nothing twice", async () => {
      vi.spyOn(console, "error").mockImplementation(() => undefined);
      const key = await account();
      let batches = 0;
      // The second batch makes the invoice: it is done, and the answer is lost.
      const DB = {
        prepare: (sql: string) => bindings.DB.prepare(sql),
        batch: async (list: D1PreparedStatement[]) => {
          const answer = await bindings.DB.batch(list);
          if (++batches === 2) throw new Error("D1_ERROR: Network connection lost");
          return answer;
        },
      } as D1Database;
      const first = await postWith(DB, key);
      expect([first.status, await bought(key)]).toEqual([500, 1]);
      const second = await post(key, "failed", purchase, "/credits/purchase");
      expect(second).toEqual({ status: 500, replayed: "true", location: null, text: await first.text() });
      expect(await bought(key)).toBe(1);
      expect((await post(key, "another", purchase, "/credits/purchase")).status).toBe(201);
    });

    it("without an answer, wherever it was cut short, acts once at most, also much later", async () => {
      vi.spyOn(console, "error").mockImplementation(() => undefined);
      let keptInvoices = 0;
      for (let roundTrip = 0; roundTrip < 4; roundTrip++)
        for (const when of ["before", "after"] as const) {
          const key = await account();
          await postWith(crashingDatabase(bindings.DB, { roundTrip, when }), key).catch(() => undefined);
          await bindings.DB.prepare("UPDATE idempotent_requests SET created_at = created_at - 3600000").run();
          const acted = await bought(key);
          const again = await post(key, "failed", purchase, "/credits/purchase");
          expect([201, 409]).toContain(again.status);
          expect([roundTrip, when, await bought(key)]).toEqual([
            roundTrip,
            when,
            acted + (again.status === 201 && again.replayed === null ? 1 : 0),
          ]);
          expect(await bought(key)).toBeLessThanOrEqual(1);
          if (again.status === 409) expect(again.text).toContain("was interrupted");
          keptInvoices += acted;
        }
      expect(keptInvoices).toBeGreaterThan(0);
    });
  });

  it("is the account's own: another account's equal key means nothing", async () => {
    const [one, two] = [await account(), await account()];
    const input = siteInput();
    expect((await post(one, "same", input)).status).toBe(201);
    expect(await post(two, "same", input)).toMatchObject({ status: 201, replayed: null });
  });

  it("that deploys deploys once, and one that deletes is told again what it deleted", async () => {
    const key = await account();
    const { siteId } = await runningSite(key, await readyAgent());
    const deploy = () => change("PATCH", key, "deploy", `/sites/${siteId}`, { action: "deploy" });
    const first = await deploy();
    expect([first.status, first.replayed]).toEqual([202, null]);
    expect(await deploy()).toEqual({ ...first, replayed: "true" });
    const { body } = await api<{ data: unknown[] }>(key, "GET", `/sites/${siteId}/deployments`);
    expect(body.data).toHaveLength(2);

    await api(key, "POST", `/sites/${siteId}/domains`, { domain: "www.example.org" });
    const remove = (again: string) =>
      change("DELETE", key, again, `/sites/${siteId}/domains/www.example.org`);
    const removed = await remove("remove");
    expect(removed.status).toBe(200);
    expect(await remove("remove")).toEqual({ ...removed, replayed: "true" });
    expect((await remove("another")).status).toBe(404);
  });

  it("is not answered again for whoever may not send it any more", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const rotate = { method: "POST", headers: { Authorization: `Bearer ${key}`, "Idempotency-Key": "mine" } };
    const path = `/api/v1/sites/${siteId}/webhook/rotate`;
    expect((await call(path, rotate)).status).toBe(200);
    const asViewer = { Authorization: `Bearer ${await operator()}`, "X-Berth-View-As": await ownerOf(key) };
    const seen = await call(path, { ...rotate, headers: { ...rotate.headers, ...asViewer } });
    expect([seen.status, await seen.json()]).toMatchObject([403, { error: "forbidden" }]);

    const promoted = await ownerOf(key);
    await run("UPDATE accounts SET role = 'operator' WHERE id = ?", promoted);
    const { cookie } = await newSession(promoted);
    const grant = () =>
      call("/api/v1/credits/grants", {
        method: "POST",
        headers: {
          Cookie: cookie,
          Origin: siteUrl,
          "Content-Type": "application/json",
          "Idempotency-Key": "grant",
        },
        body: JSON.stringify({ accountId: promoted, amount: 1 }),
      });
    expect((await grant()).status).toBe(201);
    await run("UPDATE accounts SET role = 'user' WHERE id = ?", promoted);
    expect((await grant()).status).toBe(403);
  });

  it("of a bad form is refused", async () => {
    const key = await account();
    expect((await post(key, "with space", siteInput())).status).toBe(400);
    expect((await post(key, "x".repeat(256), siteInput())).status).toBe(400);
  });

  it("runs anew after a day, and its answer is stored sealed", async () => {
    const key = await account();
    const first = await post(key, "old", siteInput());
    const { results } = await bindings.DB.prepare("SELECT * FROM idempotent_requests").all();
    expect(JSON.stringify(results)).not.toContain(
      (JSON.parse(first.text) as { invoiceToken: string }).invoiceToken,
    );
    await bindings.DB.prepare("UPDATE idempotent_requests SET created_at = 1").run();
    expect(await post(key, "old", siteInput())).toMatchObject({ status: 201, replayed: null });
  });
});

describe("an answer under an Idempotency-Key", () => {
  type Sent = { key?: string | undefined; body?: string; method?: string };
  /** Whoever answers, as an account of its own. */
  const answering = (handler: Answering) => {
    const actor = keyOf();
    const waited: Promise<unknown>[] = [];
    let times = 0;
    const app = made()
      .use((c, next) => {
        c.set("ctx", contextFor(c, actor));
        return next();
      })
      .use(idempotency({ access: "key", method: "post" }))
      .all("*", (c) => {
        times++;
        return handler(c);
      });
    const send = async (path = "/", { key, body = "{}", method = "POST" }: Sent = { key: "key" }) => {
      const headers: Record<string, string> = key === undefined ? {} : { "Idempotency-Key": key };
      const request = new Request(siteUrl + path, { method, headers, body });
      const response = await app.fetch(request, bindings, {
        ...execution,
        waitUntil: (work) => void waited.push(work),
      });
      const [type, location, replayed] = ["Content-Type", "Location", "Idempotency-Replayed"].map((name) =>
        response.headers.get(name),
      );
      return { status: response.status, text: await response.text(), type, location, replayed, times };
    };
    return { send, waited };
  };

  it("is given again with its status, place and text", async () => {
    const { send } = answering((c) => c.json({ id: 1 }, 201, { Location: "/one" }));
    const type = "application/json";
    const first = { status: 201, text: '{"id":1}', location: "/one", type, times: 1 };
    expect(await send()).toEqual({ ...first, replayed: null });
    expect(await send()).toEqual({ ...first, replayed: "true" });
    const nothing = answering((c) => c.body(null, 202));
    const empty = { status: 202, text: "", location: null, times: 1 };
    expect(await nothing.send()).toEqual({ ...empty, type: null, replayed: null });
    expect(await nothing.send()).toEqual({ ...empty, type, replayed: "true" });
  });

  it("belongs to one method, path, query and body", async () => {
    const { send } = answering((c) => c.json({}));
    await send();
    expect(await send("/other")).toMatchObject({ replayed: null, times: 2 });
    expect(await send("/", { key: "key", method: "PATCH" })).toMatchObject({ replayed: null, times: 3 });
    expect(await send("/", { key: "another" })).toMatchObject({ replayed: null, times: 4 });
    expect(await send("/", { key: "key", body: "[]" })).toMatchObject({ status: 422, times: 4 });
    expect(await send("/?force=1")).toMatchObject({ status: 422, times: 4 });
    expect(await send("/?force=1", { key: "forced" })).toMatchObject({ replayed: null, times: 5 });
    expect(await send("/?force=1", { key: "forced" })).toMatchObject({ replayed: "true", times: 5 });
    expect(await send("/", { key: "forced" })).toMatchObject({ status: 422, times: 5 });
  });

  it("is given again by a key of 1 to 255 characters of visible ASCII; any other is refused, and without one nothing is kept", async () => {
    for (const [key, status, times] of [
      [undefined, 200, 2],
      ["x", 200, 1],
      ["!~".padEnd(255, "x"), 200, 1],
      ["", 400, 0],
      ["x".repeat(256), 400, 0],
      ["a b", 400, 0],
    ] as const) {
      const { send } = answering((c) => c.json({}));
      await send("/", { key });
      const second = await send("/", { key });
      expect([key, second]).toMatchObject([key, { status, times }]);
      if (status === 400)
        expect(JSON.parse(second.text)).toEqual({
          error: "invalid_request",
          issues: [{ path: "Idempotency-Key", message: "1–255 visible ASCII characters" }],
        });
    }
  });

  it.each([
    ["success", 200, false, { times: 1, replayed: "true" }],
    ["failure, which may have done something,", 500, false, { times: 1, replayed: "true" }],
    ["refusal", 404, false, { times: 2, replayed: null }],
    ["conflict", 409, false, { times: 2, replayed: null }],
    ["read", 200, true, { times: 2, replayed: null }],
    ["failed read", 500, true, { times: 2, replayed: null }],
  ] as const)("that is a %s is kept if it may have done something", async (_, status, isRead, second) => {
    const { send } = answering((c) => {
      c.set("isRead", isRead);
      return c.json({}, status);
    });
    await send();
    expect(await send()).toMatchObject({ status, ...second });
  });

  it("shows once what is shown once", async () => {
    const { send } = answering((c) => {
      c.set("shownOnce", ["token", "command"]);
      return c.json({ id: 1, token: "hst_1", command: "install hst_1", name: "a" });
    });
    expect((await send()).text).toContain("hst_1");
    expect(await send()).toMatchObject({ text: '{"id":1,"name":"a"}', replayed: "true" });
  });

  it("that is a stream was given to whoever asked first", async () => {
    const stream = answering((c) => c.body("data: 1\n\n", 200, { "Content-Type": "text/event-stream; x" }));
    expect(await stream.send()).toMatchObject({ status: 200, text: "data: 1\n\n" });
    const again = await stream.send();
    expect(again).toMatchObject({ status: 409, times: 1 });
    expect(again.text).toContain("was a stream");
  });

  it("that is large is kept as long as its account's of the day have less than 16 MiB together; a small one always", async () => {
    const { send } = answering((c) => c.body("x".repeat(Number(c.req.query("bytes"))), 200));
    for (let kept = 0; kept < 256; kept++) await send("/?bytes=65536", { key: `large-${kept}` });
    expect(await send("/?bytes=65536", { key: "large-255" })).toMatchObject({
      status: 200,
      replayed: "true",
    });
    await send("/?bytes=4097", { key: "one-more" });
    const refused = await send("/?bytes=4097", { key: "one-more" });
    expect(refused).toMatchObject({ status: 409, replayed: null, times: 257 });
    expect(refused.text).toContain("large answers in a day");
    await send("/?bytes=4096", { key: "small" });
    expect(await send("/?bytes=4096", { key: "small" })).toMatchObject({ replayed: "true" });
    const another = answering((c) => c.body("x".repeat(5000), 200));
    await another.send();
    expect(await another.send()).toMatchObject({ replayed: "true" });
  });

  it("is kept also for a client that has gone, and a failure to keep it is told once", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { send, waited } = answering((c) => c.json({}));
    await send();
    expect(await Promise.allSettled(waited)).toEqual([{ status: "fulfilled", value: undefined }]);
    const failing = answering((c) => {
      c.set("shownOnce", ["token"]);
      return c.text("no JSON");
    });
    expect((await failing.send()).status).toBe(500);
    expect(await Promise.allSettled(failing.waited)).toEqual([{ status: "fulfilled", value: undefined }]);
  });
});
