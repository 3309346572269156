import { beforeAll, describe, expect, it, vi } from "vitest";
import type { Answer, Question } from "../../protocol/agent/running.ts";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import type { DatabaseInsight, WriteConfirmation } from "../../protocol/api/insight.ts";
import { HostQuestions } from "../../worker/objects/host-questions.ts";
import {
  account,
  api,
  bindings,
  call,
  finish,
  pay,
  readyAgent,
  uniqueName,
  type Agent,
  runningDatabase,
} from "./service.ts";

let key: string;
let host: Agent;
let databaseId: string;
let login: { username: string; password: string };

beforeAll(async () => {
  key = await account();
  host = await readyAgent();
  const { spec, ...made } = await runningDatabase(key, host);
  ({ databaseId } = made);
  login = { username: spec.logins[0]?.username ?? "", password: spec.logins[0]?.password ?? "" };
});

/** The next question, and the way to answer it. */
async function asked(): Promise<{ question: Question; answer: (answer: Answer) => void }> {
  const { requestId, question } = await host.next("ask");
  return { question, answer: (answer) => host.send({ type: "answer", requestId, answer, last: true }) };
}
const path = (what: string, id = databaseId) => `/databases/${id}/${what}`;
const query = (body: object, of = key, id = databaseId) => api(of, "POST", path("query", id), body);
const result = {
  columns: [{ name: "n", type: "integer" }],
  rows: [[1]],
  truncated: false,
  affectedRows: null,
  durationMs: 3,
};

const insight: DatabaseInsight = {
  sizeMb: 8.5,
  connections: { used: 2, max: 32 },
  cacheHitRatio: 0.99,
  uptimeSeconds: 60,
  activeQueries: [
    {
      id: "7",
      statement: "SELECT 1",
      durationMs: 5,
      state: "active",
      waitsFor: "Lock: relation",
      blockedBy: ["8"],
    },
  ],
  slowQueries: [{ statement: "SELECT 2", calls: 3, totalMs: 9, meanMs: 3, maxMs: 4 }],
};

describe("what a database's server tells", () => {
  it("is asked of its host, with the owner's login and never the administrator's", async () => {
    const reading = api(key, "GET", path("insight"));
    const { question, answer } = await asked();
    expect(question).toEqual({
      kind: "insight",
      databaseId,
      type: "postgresql",
      databaseName: expect.stringMatching(/^data/),
      login,
    });
    answer({ kind: "insight", insight });
    const { status, body, headers } = await reading;
    expect([status, body]).toEqual([200, insight]);
    expect(headers.get("Cache-Control")).toBe("no-store");
    const schema = { tables: [], keyspaces: [], truncated: false };
    const looking = api(key, "GET", path("schema"));
    const second = await asked();
    expect(second.question).toMatchObject({ kind: "schema", login });
    second.answer({ kind: "schema", schema });
    expect((await looking).body).toEqual(schema);
  });

  it("comes with its log, metrics and events, which are the host's", async () => {
    const line = { at: "2026-01-01T00:00:01.000000001Z", stream: "stderr" as const, text: "ready" };
    const reading = api<{ data: object[] }>(key, "GET", path("logs?tail=5"));
    const first = await asked();
    expect(first.question).toEqual({
      kind: "logs",
      siteId: databaseId,
      masks: [],
      tail: 5,
      after: null,
      follow: false,
    });
    first.answer({ kind: "logs", lines: [line] });
    expect((await reading).body.data).toMatchObject([line]);
    for (const [what, key1, window, more] of [
      ["metrics", "samples", { window: "24h" }, { intervalSeconds: 60 }],
      ["events", "events", {}, {}],
    ] as const) {
      const asking = api(key, "GET", path(what));
      const one = await asked();
      expect(one.question).toEqual({ kind: what, siteId: databaseId, ...window });
      one.answer({ kind: what, [key1]: [] } as unknown as Answer);
      expect((await asking).body).toEqual({ data: [], ...more });
    }
  });

  it("is followed line by line and goes on after Last-Event-ID", async () => {
    const at = "2026-01-01T00:00:04.000000001Z";
    const response = await call(`/api/v1${path("logs?follow=1")}`, {
      headers: { Authorization: `Bearer ${key}`, "Last-Event-ID": at },
    });
    const { question, answer } = await asked();
    expect(question).toMatchObject({ siteId: databaseId, after: at, follow: true });
    answer({ kind: "logs", lines: [{ at: "2026-01-01T00:00:05.000000001Z", stream: "stdout", text: "on" }] });
    expect(await response.text()).toContain(`id: 2026-01-01T00:00:05.000000001Z@${host.hostId}\nevent: line`);
  });

  it("is its owner's", async () => {
    const stranger = await account();
    for (const what of ["insight", "schema", "logs", "logs?follow=1", "metrics", "events"]) {
      expect([what, (await api(stranger, "GET", path(what))).status]).toEqual([what, 403]);
      expect((await api(stranger, "GET", path(what, `db_001m8${"0".repeat(22)}`))).status).toBe(404);
    }
    expect((await query({ statement: "SELECT 1" }, stranger)).status).toBe(403);
    expect((await query({ statement: "DELETE FROM kept", write: true }, stranger)).status).toBe(403);
    expect(host.waiting().filter(({ type }) => type === "ask")).toEqual([]);
  });

  it("is refused for one that is not paid, does not run, or whose host is offline", async () => {
    const own = await account();
    const input = { name: uniqueName("unpaid"), type: "redis" };
    const { body } = await api<DatabaseCreated>(own, "POST", "/databases", input);
    for (const what of ["insight", "schema"])
      expect((await api(own, "GET", path(what, body.databaseId))).status).toBe(402);
    expect((await query({ statement: "GET x" }, own, body.databaseId)).status).toBe(402);
    expect(await api(own, "GET", path("logs", body.databaseId))).toMatchObject({ body: { data: [] } });
    expect((await api(own, "GET", path("logs?follow=1", body.databaseId))).status).toBe(409);
    await pay(body.invoiceToken);
    const { job, attempt } = await host.next("job");
    expect((await api(own, "GET", path("insight", body.databaseId))).body["reason"]).toContain(
      "PROVISIONING",
    );
    await finish(host, job, attempt, { version: "7.2" });
  });
});

describe("a statement", () => {
  it("that reads is asked with its limits, and answered as it came", async () => {
    const asking = query({ statement: " SELECT 1 AS n ", limit: 5, timeoutSeconds: 2 });
    const { question, answer } = await asked();
    expect(question).toMatchObject({
      kind: "query",
      statement: "SELECT 1 AS n",
      write: null,
      limit: 5,
      timeoutMs: 2000,
      login,
    });
    answer({ kind: "query", result });
    expect(await asking).toMatchObject({ status: 200, body: result });
    const preset = query({ statement: "SELECT 1" });
    const second = await asked();
    expect(second.question).toMatchObject({ limit: 100, timeoutMs: 10_000 });
    second.answer({ kind: "statementRefused", error: "PostgreSQL refused it: no." });
    expect(await preset).toMatchObject({
      status: 400,
      body: { issues: [{ path: "statement", message: "PostgreSQL refused it: no." }] },
    });
  });

  it.each([
    { statement: "" },
    { statement: "SELECT 1", limit: 1001 },
    { statement: "SELECT 1", timeoutSeconds: 31 },
    { statement: "x".repeat(100_001) },
    { statement: "SELECT 1", confirm: 1 },
    { statement: "SELECT 1", admin: true },
  ])("that is not within its limits is refused: %#", async (body) => {
    expect((await query(body)).status).toBe(400);
  });

  const withKey = (idempotencyKey: string, body: object) =>
    call(`/api/v1${path("query")}`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${key}`,
        "Content-Type": "application/json",
        "Idempotency-Key": idempotencyKey,
      },
      body: JSON.stringify(body),
    });
  const keptAnswers = async () =>
    (await bindings.DB.prepare("SELECT response_sealed FROM idempotent_requests").all()).results;

  it("that reads is asked anew under the same Idempotency-Key: what it showed is kept nowhere", async () => {
    const kept = await keptAnswers();
    for (let count = 0; count < 2; count++) {
      const asking = withKey("reads", { statement: "SELECT 1 AS n" });
      const { answer } = await asked();
      answer({ kind: "query", result });
      const answered = await asking;
      expect([answered.status, answered.headers.get("Idempotency-Replayed")]).toEqual([200, null]);
      expect(await answered.json()).toEqual(result);
    }
    expect(await keptAnswers()).toEqual(kept);
  });

  it("that writes and showed more than is kept says so under the same Idempotency-Key, and is not run twice", async () => {
    const wanted = { statement: "UPDATE kept SET a = 1 RETURNING *", write: true };
    const kept = await keptAnswers();
    const { confirm } = (await query(wanted)).body as unknown as WriteConfirmation;
    const asking = withKey("writes", { ...wanted, confirm });
    const { answer } = await asked();
    answer({ kind: "query", result: { ...result, rows: [["x".repeat(70_000)]] } });
    expect((await asking).status).toBe(200);
    const again = await withKey("writes", { ...wanted, confirm });
    expect([again.status, await again.json()]).toEqual([
      409,
      { error: "conflict", reason: expect.stringContaining("too large") },
    ]);
    expect(await keptAnswers()).toEqual([...kept, { response_sealed: null }]);
    expect(host.waiting().filter(({ type }) => type === "ask")).toEqual([]);
  });

  const statement = "DELETE FROM kept";
  const confirmation = async (body: object = { statement }, of = key, id = databaseId) => {
    const answered = await query({ write: true, ...body }, of, id);
    expect(answered.status).toBe(409);
    return answered.body as unknown as WriteConfirmation;
  };

  it("that writes is asked to be confirmed, word for word, by the same account, for the same database", async () => {
    const { confirm, reason, expiresAt } = await confirmation();
    expect(reason).toContain("change or delete");
    const leftMs = new Date(expiresAt).getTime() - Date.now();
    expect(leftMs).toBeGreaterThan(290_000);
    expect(leftMs).toBeLessThanOrEqual(300_000);
    const other = await runningDatabase(key, host);
    const owner = await account();
    const theirs = await runningDatabase(owner, host);
    for (const [body, of, id] of [
      [{ statement: "DELETE FROM kept2", confirm }, key, databaseId],
      [{ statement, confirm }, key, other.databaseId],
      [{ statement, confirm }, owner, theirs.databaseId],
      [
        { statement, confirm: `${confirm.slice(0, -2)}${confirm.endsWith("AA") ? "BA" : "AA"}` },
        key,
        databaseId,
      ],
      [{ statement, confirm: `${confirm}=` }, key, databaseId],
      [{ statement, confirm: "cfm_" }, key, databaseId],
    ] as const)
      expect((await confirmation(body, of, id)).reason).toContain("another statement");
    expect(host.waiting().filter(({ type }) => type === "ask")).toEqual([]);
    const asking = query({ statement, write: true, confirm });
    const { question, answer } = await asked();
    expect(question).toMatchObject({
      statement,
      write: { nonce: expect.stringMatching(/^[\w-]{16}$/), expiresAt },
    });
    answer({ kind: "query", result: { ...result, columns: [], rows: [], affectedRows: 2 } });
    expect((await asking).body).toMatchObject({ affectedRows: 2 });
    // The host tells the second use by the same nonce.
    const again = query({ statement, write: true, confirm });
    const second = await asked();
    expect(second.question).toEqual(question);
    second.answer({ kind: "statementRefused", error: "This confirmation was used already." });
    expect((await again).status).toBe(400);
  });

  it("that writes is not run once the confirmation has expired", async () => {
    const { confirm } = await confirmation();
    const now = Date.now();
    vi.spyOn(Date, "now").mockReturnValue(now);
    vi.useFakeTimers({ now: now + 300_001, toFake: ["Date"] });
    try {
      expect((await confirmation({ statement, confirm })).reason).toContain("expired");
    } finally {
      vi.useRealTimers();
      vi.restoreAllMocks();
    }
  });

  it("with a confirmation but without `write` can change nothing", async () => {
    const { confirm } = await confirmation();
    const asking = query({ statement, confirm });
    const { question, answer } = await asked();
    expect(question).toMatchObject({ write: null });
    answer({ kind: "statementRefused", error: "read-only transaction" });
    expect((await asking).status).toBe(400);
  });

  it("that writes is not said to be repeatable where the host is lost before it answers", async () => {
    const on = await readyAgent();
    const { databaseId: id } = await runningDatabase(key, on);
    const { confirm } = await confirmation({ statement }, key, id);
    const writing = query({ statement, write: true, confirm }, key, id);
    await on.next("ask");
    const reading = query({ statement: "SELECT 1" }, key, id);
    await on.next("ask");
    on.close();
    expect((await writing).body["reason"]).toMatch(/may have taken effect: check the data/);
    expect((await writing).body["reason"]).not.toContain("Try again");
    expect((await reading).body["reason"]).toContain("Try again");
  });

  it("that writes is not said to be repeatable where the host does not answer in time", async () => {
    const questions = new HostQuestions(
      () => undefined,
      () => true,
      async () => new Set(),
    );
    const { confirm } = await confirmation();
    const asking = query({ statement, write: true, confirm });
    const { question, answer } = await asked();
    answer({ kind: "query", result });
    await asking;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const answered = questions.ask(new WebSocketPair()[0], question);
      vi.runAllTimers();
      expect(await answered).toMatchObject({
        error: expect.stringMatching(/not answer in time\. The statement may have taken effect: check/),
      });
    } finally {
      vi.useRealTimers();
    }
  });
});
