import { beforeEach, expect, it, vi } from "vitest";
import { entryOperations } from "../../protocol/api/entry-operations.ts";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import type { JobKind } from "../../protocol/agent/jobs.ts";
import { sha256Hex } from "../../worker/domain/tokens.ts";
import { app } from "../../worker/app.ts";
import record from "../fixtures/records/2026-11-23.json" with { type: "json" };
import { emptyDatabase, migrate, migrations } from "./empty-database.ts";
import { tick } from "./hosts-service.ts";
import {
  bindings,
  call,
  deployResult,
  fail,
  finish,
  newSession,
  operatorLogin,
  pay,
  readyAgent,
  siteUrl,
} from "./service.ts";

type Row = Record<string, string | number>;
const { lastMigration, tables } = record as { lastMigration: string; tables: Record<string, Row[]> };
const { DB } = bindings;
const rowsOf = (table: string): Row[] => tables[table] ?? [];
const operatorId = String(rowsOf("accounts").find(({ email }) => email === operatorLogin.email)?.["id"]);

let logged: string[];
/** The rows as that release had them, without what its triggers would add to them, and the migrations since. */
beforeEach(async () => {
  await emptyDatabase();
  const at = migrations.findIndex(({ name }) => name === lastMigration) + 1;
  await migrate(migrations.slice(0, at));
  const { results: triggers } = await DB.prepare(
    "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'",
  ).all<{ name: string; sql: string }>();
  await DB.batch([
    DB.prepare("PRAGMA defer_foreign_keys = on"),
    ...triggers.map(({ name }) => DB.prepare(`DROP TRIGGER "${name}"`)),
    ...Object.entries(tables).flatMap(([table, rows]) => [
      DB.prepare(`DELETE FROM "${table}"`),
      ...rows.map((row) => {
        const names = Object.keys(row).map((name) => `"${name}"`);
        return DB.prepare(
          `INSERT INTO "${table}" (${names.join()}) VALUES (${names.map(() => "?").join()})`,
        ).bind(...Object.values(row));
      }),
    ]),
    ...triggers.map(({ sql }) => DB.prepare(sql)),
  ]);
  await migrate(migrations.slice(at));
  logged = [];
  vi.spyOn(console, "error").mockImplementation((line: string) => void logged.push(line));
  // Mails arrive, and whatever else is asked outside knows nothing.
  vi.spyOn(globalThis, "fetch").mockImplementation(() => Promise.resolve(Response.json({})));
  return () => vi.restoreAllMocks();
});

/** Sent by the operator, each time with a session of its own, so that none meets its limit. */
async function asOperator(method: string, path: string, body?: object): Promise<Response> {
  const now = Date.now();
  const { cookie } = await newSession(operatorId, { created_at: now, updated_at: now });
  return call(path, {
    method,
    redirect: "manual",
    headers: { Cookie: cookie, Origin: siteUrl, ...(body && { "Content-Type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
}

/** One thing of each status in a table. */
const eachOf = (table: string, named = "id"): string[] =>
  [...new Map(rowsOf(table).map((row) => [row["status"], row])).values()].map((row) => String(row[named]));

/** What a path may name, by the part of the path before it. */
const named: Record<string, string[]> = {
  accounts: rowsOf("accounts").map(({ id }) => String(id)),
  backups: eachOf("backups"),
  commands: eachOf("commands"),
  conversations: eachOf("conversations"),
  data: eachOf("site_volumes", "name"),
  databases: eachOf("databases"),
  deployments: eachOf("deployments"),
  domains: rowsOf("domains").map(({ name }) => String(name)),
  hosts: eachOf("hosts"),
  invoice: eachOf("invoices", "token"),
  invoices: eachOf("invoices"),
  jobs: eachOf("commands"),
  money: eachOf("invoices"),
  plan: [...eachOf("sites"), ...eachOf("databases")],
  schedules: eachOf("schedules"),
  sites: eachOf("sites"),
  "test-payments": eachOf("test_sessions"),
  volumes: eachOf("site_volumes", "name"),
};

/** A path such as `/sites/:id/domains/:name` with each thing that it may name; a `~` before each. */
function pathsOf(pattern: string): string[] {
  const [whole = "", before = ""] = /([\w-]+)\/(?::\w+|\{\w+\})(?:\{[^}]*\})?/.exec(pattern) ?? [];
  if (whole === "") return [pattern];
  return (named[before] ?? ["none"]).flatMap((id) => pathsOf(pattern.replace(whole, `${before}/~${id}`)));
}

/** What fails, and what finds nothing of all that there is. */
async function failing(patterns: readonly string[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const pattern of new Set(patterns)) {
    const answers = await Promise.all(
      pathsOf(pattern).map(async (path) => {
        const { status, body } = await asOperator("GET", path.replaceAll("~", ""));
        await body?.cancel();
        return { path, status };
      }),
    );
    found.push(...answers.filter(({ status }) => status >= 500));
    if (answers.every(({ status }) => status === 404)) found.push({ pattern });
  }
  return found;
}

const reads = Object.values({ ...operations, ...entryOperations } as Record<string, Operation>)
  .filter(({ method, path, streams }) => method === "get" && streams === undefined && path !== "/events")
  .map(({ path, at }) => (at === undefined ? "/api/v1" : "") + path);
/** A pending call (`/confirm/:id`) is in a Durable Object, for ten minutes. */
const pages = app.routes
  .filter(
    ({ method, path }) =>
      method === "GET" && !/^\/(?:api|agent|assets|install|backups|mcp|\.|confirm\/)|\*/.test(path),
  )
  .map(({ path }) => path);

it("every operation that reads answers over the record of an older release", async () => {
  expect([await failing(reads), logged]).toEqual([[], []]);
});

it("every page shows the record of an older release", async () => {
  expect(pages.length).toBeGreaterThan(60);
  expect([await failing(pages), logged]).toEqual([[], []]);
});

it("what an older release left is deployed, paid, restored from its backup and deleted", async () => {
  const idOf = (table: string, name: string) =>
    String(rowsOf(table).find((row) => row["name"] === name)?.["id"]);
  const [shop, unpaid, stopped] = [idOf("sites", "shop"), idOf("sites", "unpaid"), idOf("sites", "stopped")];
  const database = idOf("databases", "main");
  const id = String(rowsOf("sites").find((row) => row["id"] === shop)?.["host_id"]);
  const token = `hst_0${"a".repeat(43)}`;
  await DB.prepare("UPDATE hosts SET token_hash = ? WHERE id = ?").bind(sha256Hex(token), id).run();
  const host = await readyAgent(10, { id, token });
  const statusOf = async (path: string) =>
    (await (await asOperator("GET", `/api/v1${path}`)).json<{ status?: string }>()).status;
  /** Carries out what the host is asked for, up to a job of this kind. */
  async function work(kind: JobKind): Promise<void> {
    for (;;) {
      const { job, attempt } = await host.next("job");
      if (job.kind === "database.backup") await fail(host, job, attempt);
      else if (job.kind.startsWith("database."))
        await finish(host, job, attempt, { version: "17.2", damage: null, volume: job.id });
      else await finish(host, job, attempt, job.kind === "site.deploy" ? deployResult : {});
      if (job.kind === kind) return;
    }
  }

  await work("site.deploy");
  expect(await statusOf(`/sites/${shop}`)).toBe("RUNNING");

  const invoice = rowsOf("invoices").find((row) => row["resource_id"] === unpaid);
  expect((await pay(String(invoice?.["token"]))).status).toBe(200);
  await work("site.deploy");
  expect(await statusOf(`/sites/${unpaid}`)).toBe("RUNNING");

  const backupId = rowsOf("backups").find((row) => row["status"] === "VERIFIED")?.["id"];
  expect((await asOperator("POST", `/api/v1/databases/${database}/restore`, { backupId })).status).toBe(202);
  await work("database.restore");
  expect(await statusOf(`/databases/${database}`)).toBe("RUNNING");

  expect((await asOperator("DELETE", `/api/v1/sites/${stopped}`)).status).toBe(202);
  await work("site.delete");
  expect((await asOperator("GET", `/api/v1/sites/${stopped}`)).status).toBe(404);
  expect(logged).toEqual([]);
  host.close();
});

it("the password of then signs in", async () => {
  const response = await call("/sign-in", {
    method: "POST",
    redirect: "manual",
    headers: { Origin: siteUrl },
    body: new URLSearchParams(operatorLogin),
  });
  expect([response.status, response.headers.get("Location")]).toEqual([303, "/"]);
});

it("the timer finds nothing in the record of an older release that it cannot work on", async () => {
  await tick();
  expect(logged).toEqual([]);
});
