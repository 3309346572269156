import { beforeAll, describe, expect, it, vi } from "vitest";
import type { Answer, Question } from "../../protocol/agent/running.ts";
import type { Database, DatabaseCreated } from "../../protocol/api/databases.ts";
import { escaped, visitorWith, type Visitor } from "./pages.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  finish,
  operator,
  operatorCookie,
  readyAgent,
  uniqueName,
  type Agent,
  runningDatabase,
} from "./service.ts";

let me: Visitor;
let host: Agent;
let id: string;
let name: string;
/** What the database's host answers, by the kind of question. */
const answers = new Map<Question["kind"], (question: Question) => Answer>();
const asked: Question[] = [];

async function answerAll(on: Agent): Promise<never> {
  for (;;) {
    const { requestId, question } = await on.next("ask");
    asked.push(question);
    const answer = answers.get(question.kind)?.(question) ?? { kind: "refused", error: "Not now." };
    on.send({ type: "answer", requestId, answer, last: true });
  }
}

const read = async () => (await api<Database>(await operator(), "GET", `/databases/${id}`)).body;
const tabs = ["", "/connect", "/data", "/logs", "/metrics", "/backups", "/access", "/settings"];
const path = (tab = "") => `/databases/${id}${tab}`;

beforeAll(async () => {
  me = visitorWith(await operatorCookie());
  host = await readyAgent();
  void answerAll(host);
  name = uniqueName("shop");
  ({ databaseId: id } = await runningDatabase(await operator(), host, { name }));
});

const hostile = "<script>alert(1)</script>";
const query = (text: string) => ({
  columns: [{ name: hostile, type: "text" }],
  rows: [[text], [null]],
  truncated: false,
  affectedRows: null,
  durationMs: 3,
});

describe("the pages of databases", () => {
  it("are for who is signed in, and for nobody else's databases", async () => {
    const { body } = await api<DatabaseCreated>(await account(), "POST", "/databases", {
      name: uniqueName("other"),
      type: "redis",
    });
    for (const tab of ["", "/new"])
      expect((await call(`/databases${tab}`, { redirect: "manual" })).headers.get("Location")).toBe(
        `/sign-in?next=${encodeURIComponent(`/databases${tab}`)}`,
      );
    for (const tab of tabs) {
      const signedOut = await call(path(tab), { redirect: "manual", headers: { Accept: "text/html" } });
      expect([signedOut.status, signedOut.headers.get("Location")]).toEqual([
        303,
        `/sign-in?next=${encodeURIComponent(path(tab))}`,
      ]);
      expect((await me.get(`/databases/${body.databaseId}${tab}`)).status, tab).toBe(403);
      expect((await me.get(`/databases/db_unknown${tab}`)).status, tab).toBe(404);
      expect((await me.get(path(tab))).status, tab).toBe(200);
    }
    const refused = await me.send(`/databases/${body.databaseId}/settings`, "act", { action: "start" });
    expect(refused.status).toBe(403);
  });

  it("list each with its state, and lead to a new one", async () => {
    const { text } = await me.get("/databases");
    expect(text).toContain(`href="/databases/${id}"`);
    expect(text).toContain("In service");
    expect(text).toContain('href="/databases/new"');
  });

  it("create one beside a site, and keep what was typed if they refuse", async () => {
    const { siteId } = await createSite(await operator());
    const fields = { type: "redis", name: "Wrong Name", packId: "", billingTerm: "3", siteId };
    const refused = await me.send("/databases/new", "create", fields);
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(/value="Wrong Name"[^>]*aria-invalid="true"/);
    expect(refused.text).toMatch(/value="redis"[^>]*checked/);
    const wanted = uniqueName("queue");
    const done = await me.send("/databases/new", "create", { ...fields, name: wanted });
    expect([done.status, done.location]).toEqual([303, expect.stringMatching(/^\/invoice\/inv_/)]);
    const { data } = (await api<{ data: Database[] }>(await operator(), "GET", "/databases")).body;
    const made = data.find((one) => one.name === wanted);
    expect(made).toMatchObject({ type: "redis", billingTerm: 3, links: [{ siteId, variable: "REDIS_URL" }] });
    // Nothing can be asked of it yet, but where to pay for it is said on each tab.
    for (const tab of tabs)
      expect((await me.get(`/databases/${made?.id}${tab}`)).text, tab).toContain(`href="${done.location}"`);
    // Nothing was ever in it, so no backup of it is promised.
    const gone = await me.send(`/databases/${made?.id}/settings`, "delete", { confirm: wanted });
    expect(gone.said).toBe(`${wanted} is being deleted.`);
  });
});

it("the pages of a database have their own titles, with its name", async () => {
  const title = async (of: string) => /<title>([^<]+)</.exec((await me.get(path(of))).text)?.[1];
  const own = (await title("")) ?? "";
  expect(own).toMatch(/ · Berth$/);
  expect(own).not.toContain("Overview");
  expect(await title("/backups")).toBe(`Backups · ${own}`);
});

describe("a database's overview", () => {
  it("tells what happened in the words of pages, without ids", async () => {
    const detail = "Restoring backup bak_01 failed: the server used more memory than its pack has.";
    answers.set("events", () => ({
      kind: "events",
      events: [{ at: new Date().toISOString(), kind: "restore_failed", detail }],
    }));
    expect((await me.get(path())).text).toContain(
      "Restoring a backup failed: the server used more memory than its plan has.",
    );
    answers.delete("events");
  });

  it("shows what its server tells, escaped, and ends a session", async () => {
    answers.set("insight", () => ({
      kind: "insight",
      insight: {
        sizeMb: 512,
        connections: { used: 7, max: 32 },
        cacheHitRatio: 0.5,
        uptimeSeconds: 60,
        activeQueries: [
          {
            id: "4711",
            statement: `SELECT '${hostile}'`,
            durationMs: 65_000,
            state: "active",
            waitsFor: "Lock: relation",
            blockedBy: ["4712"],
          },
        ],
        slowQueries: [{ statement: "SELECT slow", calls: 3, totalMs: 9000, meanMs: 3000, maxMs: 4000 }],
      },
    }));
    const { text } = await me.get(path());
    for (const shown of ["7 of 32", "50.0%", "1.1 min", "blocked by session 4712", "SELECT slow", "3.0 s"])
      expect(text).toContain(shown);
    expect(text).toContain(escaped(hostile));
    expect(text).not.toContain(hostile);
    const end = async (ended: boolean) => {
      answers.set("endSession", () => ({ kind: "endSession", ended }));
      const { status, said } = await me.send(path(), "end:4711", { sessionId: "4711" });
      return [status, said];
    };
    expect(await end(true)).toEqual([303, "Session 4711 is ended."]);
    expect(asked).toContainEqual(expect.objectContaining({ kind: "endSession", session: "4711" }));
    expect(await end(false)).toEqual([303, "The server has no session 4711: it may have ended."]);
  });

  it("says so if the server does not answer, and shows the rest", async () => {
    answers.delete("insight");
    const { status, text } = await me.get(path());
    expect([status, text.includes("Not now."), text.includes(`${name}.internal:5432`)]).toEqual([
      200,
      true,
      true,
    ]);
  });
});

describe("a database's connection", () => {
  it("shows no password until it is revealed", async () => {
    const { body } = await api<{ password: string; connectionString: string }>(
      await operator(),
      "GET",
      `/databases/${id}/credentials`,
    );
    const before = await me.get(path("/connect"));
    expect(before.text).not.toContain(body.password);
    expect(before.text).toContain("••••••••@");
    const after = await me.get(path("/connect?reveal=1"));
    expect(after.text).toContain(escaped(body.connectionString));
    expect(after.headers.get("Cache-Control")).toBe("no-store");
  });

  it("tells how the owner's computer reaches it and imports a dump, which needs no access from the internet", async () => {
    const { text } = await me.get(path("/connect"));
    expect(text).toContain(escaped(`berth databases connect ${name} < dump.sql`));
    expect(text).toContain("--no-owner --no-acl --no-comments");
    expect(text).toContain("curl -fsSL http://127.0.0.1:8787/install/cli | sh");
    expect(text).not.toContain("From elsewhere it cannot be reached");
    answers.set("schema", () => ({
      kind: "schema",
      schema: { tables: [], keyspaces: [], truncated: false },
    }));
    expect((await me.get(path("/data"))).text).toContain("To import a dump, see");
    answers.delete("schema");
  });

  it("links a site under a variable, refuses it twice with what was typed, and removes it", async () => {
    const linkedName = uniqueName("linked");
    const { siteId } = await createSite(await operator(), { name: linkedName });
    const linked = await me.send(path("/connect"), "link", { siteId, variable: "SHOP_URL" });
    expect([linked.status, linked.said]).toEqual([
      303,
      `${linkedName} gets the variable SHOP_URL at its next deployment.`,
    ]);
    expect((await read()).links).toContainEqual({ siteId, variable: "SHOP_URL", inService: false });
    const again = await me.send(path("/connect"), "link", { siteId, variable: "not a name" });
    expect(again.status).toBe(400);
    await me.send(path("/connect"), `unlink:${siteId}`, { siteId });
    expect((await read()).links).toEqual([]);
  });

  it("rotates the password and says how far it is", async () => {
    const rotating = await me.send(path("/connect"), "rotate");
    expect(rotating.status).toBe(303);
    expect((await me.get(path("/connect"))).text).toContain("A new password is being rolled out");
    const { job, attempt } = await host.next("job");
    await finish(host, job, attempt);
  });
});

describe("a database's data", () => {
  it("are read by a statement that cannot write, and shown escaped", async () => {
    answers.set("query", (question) => {
      expect(question).toMatchObject({ write: null, dryRun: false });
      return { kind: "query", result: query(hostile) };
    });
    const statement = `SELECT '${hostile}' AS a`;
    const { status, text } = await me.send(path("/data"), "query", { statement, mode: "read" });
    expect(status).toBe(200);
    expect(text).not.toContain(hostile);
    expect(text).toContain(`<td class="">${escaped(hostile)}</td>`);
    expect(text).toContain(">null<");
    expect(text).toMatch(
      new RegExp(`<textarea[^>]*name="statement"[^>]*>${escaped(statement).replaceAll(/[()]/g, "\\$&")}`),
    );
  });

  it("are changed only after the rows were counted and the name was typed", async () => {
    const seen: string[] = [];
    answers.set("query", (question) => {
      const { write, dryRun } = question as Extract<Question, { kind: "query" }>;
      seen.push(write ? "write" : dryRun ? "dry run" : "read");
      return { kind: "query", result: { ...query("x"), columns: [], rows: [], affectedRows: 12 } };
    });
    const statement = "DELETE FROM orders";
    const tried = await me.send(path("/data"), "query", { statement, mode: "write" });
    expect(tried.status).toBe(200);
    expect(tried.text).toContain("This changes 12 rows");
    const [, token = ""] = /name="token" value="([^"]+)"/.exec(tried.text) ?? [];
    await vi.waitFor(async () =>
      expect((await me.get("/activity")).text).toMatch(
        /Ran a statement that writes<div[^>]*>Waited for your confirmation/,
      ),
    );
    const wrong = await me.send(path("/data"), "write", { statement, token, confirm: "another" });
    expect(wrong.status).toBe(400);
    // Asked again, with the statement.
    expect(wrong.text).toMatch(/<input[^>]*name="confirm"[^>]*aria-invalid="true"/);
    expect(wrong.text).toContain("This changes 12 rows");
    expect(wrong.text).toMatch(new RegExp(`<textarea[^>]*name="statement"[^>]*>${statement}<`));
    expect(seen).toEqual(["dry run", "dry run"]);
    const done = await me.send(path("/data"), "write", { statement, token, confirm: name });
    expect([done.status, done.said]).toEqual([303, "It was run: 12 rows changed."]);
    expect(seen).toEqual(["dry run", "dry run", "write"]);
  });

  it.each([
    ["SELECT setval('sq', -900)", "only INSERT"],
    ["WITH one AS (SELECT 1) SELECT setval('sq', -900)", "only INSERT"],
    ["-- DELETE\nSELECT setval('sq', -900)", "only INSERT"],
    ["UPDATE orders SET id = nextval('sq')", "it may set or advance a sequence, which is not rolled back"],
    ["UPDATE orders SET note = 'see nextval'", "it may set or advance a sequence"],
  ])("are not touched before the confirmation by %s, which no dry run rolls back", async (statement, why) => {
    const from = asked.length;
    const tried = await me.send(path("/data"), "query", { statement, mode: "write" });
    expect(tried.text).toMatch(/name="token" value="[^"]+"/);
    expect(tried.text).toContain(why);
    expect(asked.slice(from).filter(({ kind }) => kind === "query")).toEqual([]);
  });

  it.each([
    "-- Fix.\nUPDATE orders SET paid = true",
    "/* Fix. **/ /* Both. */ DELETE FROM orders",
    "WITH due AS (SELECT id FROM orders) UPDATE orders SET paid = true FROM due WHERE due.id = orders.id",
  ])("are counted for %j", async (statement) => {
    answers.set("query", () => ({
      kind: "query",
      result: { ...query("x"), columns: [], rows: [], affectedRows: 12 },
    }));
    const { text } = await me.send(path("/data"), "query", { statement, mode: "write" });
    expect(text).toContain("This changes 12 rows");
  });

  it("are offered at once for a statement that begins with many comments", async () => {
    const statement = `${"/**/ ".repeat(1000)}${"-- \n".repeat(1000)}${"/*".repeat(1000)}`;
    const { text } = await me.send(path("/data"), "query", { statement, mode: "write" });
    expect(text).toContain("only INSERT");
  });

  it("are changed also by a statement whose dry run is refused, which is said", async () => {
    const why = "A dry run is not possible in this database.";
    answers.set("query", () => ({ kind: "statementRefused", error: why }));
    const statement = "DELETE FROM orders";
    const { status, text } = await me.send(path("/data"), "query", { statement, mode: "write" });
    expect([status, text]).toEqual([200, expect.stringContaining(`There was no dry run: ${why}`)]);
    const [, token = ""] = /name="token" value="([^"]+)"/.exec(text) ?? [];
    const failed = await me.send(path("/data"), "write", { statement, token, confirm: name });
    // A part of it may have been committed.
    expect([failed.status, failed.text]).toEqual([409, expect.stringContaining(why)]);
    expect(failed.text).not.toContain("Nothing was changed");
    expect(failed.text).toMatch(new RegExp(`<textarea[^>]*name="statement"[^>]*>${statement}<`));
  });

  it("say why a statement failed, and keep it", async () => {
    answers.set("query", () => ({ kind: "refused", error: 'relation "nothing" does not exist' }));
    const failed = await me.send(path("/data"), "query", {
      statement: "SELECT * FROM nothing",
      mode: "read",
    });
    expect(failed.status).toBe(409);
    expect(failed.text).toContain("relation &quot;nothing&quot; does not exist");
    expect(failed.text).toContain("SELECT * FROM nothing</textarea>");
    expect((await me.send(path("/data"), "query", { statement: " ", mode: "read" })).status).toBe(400);
  });
});

describe("a database's backups", () => {
  it("are planned, made, restored only under the name of what is replaced, and downloaded", async () => {
    const planned = await me.send(path("/backups"), "schedule", {
      schedule: "weekly",
      hourUtc: "5",
      keep: "9",
    });
    expect(planned.status).toBe(303);
    expect((await read()).backups).toMatchObject({ schedule: "weekly", hourUtc: 5, keep: 9 });
    const refused = await me.send(path("/backups"), "schedule", { schedule: "", hourUtc: "99", keep: "9" });
    expect([refused.status, refused.text.includes('value="99"')]).toEqual([400, true]);
    expect(
      (await me.send(path("/backups"), "schedule", { schedule: "", hourUtc: "5", keep: "9" })).status,
    ).toBe(303);
    expect((await read()).backups.schedule).toBeNull();
    const cron = "30 */6 * * *";
    await api(await operator(), "PATCH", `/databases/${id}`, { backups: { schedule: cron } });
    const chosen = /<option value="([^"]*)" selected[^>]*>([^<]*)/.exec(
      (await me.get(path("/backups"))).text,
    );
    expect(chosen?.slice(1)).toEqual([cron, "Every 6 hours from 00:30 UTC on"]);
    await me.send(path("/backups"), "schedule", { schedule: chosen?.[1] ?? "", hourUtc: "5", keep: "8" });
    expect((await read()).backups).toMatchObject({ schedule: cron, keep: 8 });

    expect((await me.send(path("/backups"), "create")).status).toBe(303);
    const { data } = (
      await api<{ data: { id: string }[] }>(await operator(), "GET", `/databases/${id}/backups`)
    ).body;
    const [backup] = data;
    expect((await me.get(path("/backups"))).text).toContain("Being made");
    const early = await me.send(path("/backups"), `restore:${data[0]?.id}`, {
      backupId: data[0]?.id ?? "",
      target: id,
      confirm: name,
    });
    // Its form is not on the page, but the reason is.
    expect([early.status, early.text.includes("callout flash bad")]).toEqual([409, true]);
    await bindings.DB.prepare("UPDATE backups SET status = 'VERIFIED', size_bytes = 1500000 WHERE id = ?")
      .bind(backup?.id)
      .run();
    const restore = { backupId: backup?.id ?? "", target: id };
    const unconfirmed = await me.send(path("/backups"), `restore:${backup?.id}`, {
      ...restore,
      confirm: "x",
    });
    expect([unconfirmed.status, unconfirmed.text.includes(`type ${name}`)]).toEqual([409, true]);
    expect((await read()).restoring).toBeNull();
    const download = await me.send(path("/backups"), `download:${backup?.id}`, restore);
    expect(new URL(download.location ?? "").pathname).toBe(`/backups/${backup?.id}/download`);
    expect((await me.get(path("/backups"))).text).not.toContain("may be damaged");
    // Its file may be the last copy.
    await bindings.DB.prepare("UPDATE backups SET status = 'FAILED', sha256 = 'aa' WHERE id = ?")
      .bind(backup?.id)
      .run();
    const failed = (await me.get(path("/backups"))).text;
    expect([failed.includes("may be damaged"), failed.includes(`restore:${backup?.id}`)]).toEqual([
      true,
      false,
    ]);
    const whole = await me.send(path("/backups"), `download:${backup?.id}`, restore);
    expect(new URL(whole.location ?? "").pathname).toBe(`/backups/${backup?.id}/download`);
    expect((await me.send(path("/backups"), `remove:${backup?.id}`, restore)).status).toBe(303);
  });
});

describe("a database's access", () => {
  it("takes networks one a line, and names the one that is none at its field", async () => {
    const wrong = await me.send(path("/access"), "access", {
      enabled: "true",
      allow: "203.0.113.7\nmy office",
    });
    expect(wrong.status).toBe(400);
    expect(wrong.text).toContain("“my” is not an address");
    expect(wrong.text).toContain("203.0.113.7\nmy office</textarea>");
    const saved = await me.send(path("/access"), "access", {
      enabled: "true",
      allow: "203.0.113.7\n198.51.100.0/24\n",
    });
    expect(saved.status).toBe(303);
    expect((await read()).publicAccess).toMatchObject({
      enabled: true,
      allow: ["203.0.113.7", "198.51.100.0/24"],
    });
  });
});

describe("a database's settings", () => {
  it("show what each plan costs now, and lead from a dearer one to its invoice", async () => {
    const { data } = (
      await api<{ data: { id: string; kind: string; amountCents: number }[] }>(null, "GET", "/packs")
    ).body;
    const dearest = data.filter(({ kind }) => kind === "database").at(-1);
    const { text } = await me.get(path("/settings"));
    expect(text).toMatch(/\$\d+\.\d\d now for the time until \d+ \w{3} \d{4}/);
    const [, promised = ""] =
      new RegExp(`value="${dearest?.id}"[\\s\\S]*?(\\$[\\d.,]+) now for`).exec(text) ?? [];
    expect(promised).not.toBe("");
    const changed = await me.send(path("/settings"), "plan", { packId: dearest?.id ?? "", billingTerm: "1" });
    expect([changed.status, changed.location]).toEqual([303, expect.stringMatching(/^\/invoice\/inv_/)]);
    expect((await me.get(changed.location ?? "")).text).toContain(promised);
  });

  it("stop it, and delete it only under its name, saying what is lost", async () => {
    const stopped = await me.send(path("/settings"), "act:stop", { action: "stop" });
    expect([stopped.status, stopped.said]).toEqual([303, "The database is stopping. Its data is kept."]);
    const { text } = await me.get(path("/settings"));
    expect(text).toMatch(/A last backup is taken first.*kept for 30 days/);
    expect(text).toMatch(/The remaining term until <time[^>]*>\d+ \w{3} \d{4}<\/time> is not refunded/);
    const wrong = await me.send(path("/settings"), "delete", { confirm: "another" });
    expect([wrong.status, wrong.text.includes(`Nothing was changed. Type ${name}.`)]).toEqual([400, true]);
    const gone = await me.send(path("/settings"), "delete", { confirm: name });
    expect([gone.status, gone.location]).toEqual([303, "/databases"]);
    expect((await read()).status).toBe("DELETING");
  });
});
