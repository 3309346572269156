import { sql } from "drizzle-orm";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { type Fingerprint, partBytes, partHashHeader } from "../../protocol/agent/backups.ts";
import type { Backup, BackupLink, FailingBackups } from "../../protocol/api/backups.ts";
import type { Database, DatabaseCreated } from "../../protocol/api/databases.ts";
import type { SiteEvents } from "../../protocol/api/running.ts";
import { contextOf } from "../../worker/compose.ts";
import { databases } from "../../worker/db/schema.ts";
import { keptAfterDeletionMs } from "../../worker/domain/backup-rules.ts";
import { maxAttempts } from "../../worker/domain/job-rules.ts";
import { reconcileBackups } from "../../worker/jobs/backups/reconcile.ts";
import { replacedVolumes } from "../../worker/jobs/databases/replaced-volumes.ts";
import { purgeOldJobs } from "../../worker/jobs/purge-old.ts";
import { reapJobs } from "../../worker/jobs/reap.ts";
import { reconcileTerms } from "../../worker/cron.ts";
import { begin, complete, fingerprint, from, putPart, sha256, upload, type Taken } from "./backup-uploads.ts";
import { foundOffline } from "./hosts-service.ts";
import {
  account,
  api,
  bindings,
  call,
  deployingSite,
  fail,
  finish,
  greetedAgent,
  jobOf,
  operator,
  pay,
  ready,
  readyAgent,
  run,
  runningDatabase,
  siteUrl,
} from "./service.ts";

const ctx = () => contextOf(bindings, { type: "system" }, () => undefined);
type Connected = Awaited<ReturnType<typeof readyAgent>>;

const take = jobOf;

async function running(key: string, on: Connected, overrides: object = {}) {
  return (await runningDatabase(key, on, overrides)).databaseId;
}

const backup = async (key: string, id: string) => (await api<Backup>(key, "GET", `/backups/${id}`)).body;
const list = async (key: string, databaseId: string) =>
  (await api<{ data: Backup[] }>(key, "GET", `/backups?databaseId=${databaseId}`)).body.data;

/** A backup that was asked for, uploaded and, unless `judged` says otherwise, verified. */
async function backedUp(
  key: string,
  on: Connected,
  databaseId: string,
  text = "a dump",
  damage: string | null = null,
  held: Fingerprint = fingerprint,
) {
  const asked = await api<Backup>(key, "POST", `/databases/${databaseId}/backups`);
  expect([asked.status, asked.body.status]).toEqual([202, "RUNNING"]);
  const taken = await take(on, "database.backup");
  await upload(on, taken, text, held);
  await finish(on, taken.job, taken.attempt);
  expect(await backup(key, asked.body.id)).toMatchObject({ status: "STORED", sizeBytes: text.length });
  const verification = await take(on, "database.verify");
  await finish(on, verification.job, verification.attempt, { damage });
  return asked.body.id;
}

/** The restore's job, where no backup of what is there could be made before. */
async function askedToRestore(key: string, on: Connected, databaseId: string, backupId: string | undefined) {
  await api(key, "POST", `/databases/${databaseId}/restore`, { backupId });
  const safety = await take(on, "database.backup");
  await fail(on, safety.job, safety.attempt);
  return take(on, "database.restore");
}

/** A database that a host restores from a backup of its own. */
async function restoring() {
  const key = await account();
  const on = await readyAgent();
  const databaseId = await running(key, on);
  const id = await backedUp(key, on, databaseId);
  return { key, on, databaseId, ...(await askedToRestore(key, on, databaseId, id)) };
}

const jobsOf = async (backupId: string) =>
  (
    await bindings.DB.prepare("SELECT status FROM jobs WHERE backup_id = ?")
      .bind(backupId)
      .all<{ status: string }>()
  ).results;
const objectsOf = async (id: string) =>
  (await bindings.BACKUPS.list()).objects.map(({ key }) => key).filter((key) => key.includes(id));

describe("a backup", () => {
  it("is RUNNING, then STORED when its manifest is written, and VERIFIED only after a restore was compared", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const { body: asked } = await api<Backup>(key, "POST", `/databases/${databaseId}/backups`);
    const again = await api<{ reason: string }>(key, "POST", `/databases/${databaseId}/backups`);
    expect([again.status, again.body.reason]).toEqual([409, expect.stringContaining("in progress")]);
    const taken = await take(on, "database.backup");
    expect(taken.job.args.database).toMatchObject({ databaseId, type: "postgresql" });
    await upload(on, taken, "a dump");
    // Its host has not said that it is all.
    expect((await backup(key, asked.id)).status).toBe("RUNNING");
    await finish(on, taken.job, taken.attempt);
    expect(await backup(key, asked.id)).toMatchObject({
      status: "STORED",
      trigger: "api",
      sizeBytes: 6,
      sha256: sha256("a dump"),
      tables: 1,
      rows: 3,
      verifiedAt: null,
    });
    const verification = await take(on, "database.verify");
    expect(verification.job.args.backup).toMatchObject({
      backupId: asked.id,
      sizeBytes: 6,
      sha256: sha256("a dump"),
    });
    // A server like the one it was made of, which nobody can sign in to.
    const { like } = verification.job.args;
    expect(like).toMatchObject({ image: "postgres:17", databaseName: taken.job.args.database.databaseName });
    expect(like.adminPassword).not.toBe(taken.job.args.database.adminPassword);
    const data = await call(`/agent/backups/${asked.id}/data`, {
      headers: from(on, verification, { Range: "bytes=2-" }),
    });
    expect([data.status, await data.text(), data.headers.get("Content-Range")]).toEqual([
      206,
      "dump",
      "bytes 2-5/6",
    ]);
    const manifest = await call(`/agent/backups/${asked.id}/manifest`, { headers: from(on, verification) });
    expect(await manifest.json()).toMatchObject({ backupId: asked.id, databaseId, fingerprint });
    await finish(on, verification.job, verification.attempt, { damage: null });
    expect(await backup(key, asked.id)).toMatchObject({ status: "VERIFIED", verifiedAt: expect.any(String) });
    const listed = await api<{ data: Backup[] }>(key, "GET", `/databases/${databaseId}/backups`);
    expect(listed.body.data.map(({ id }) => id)).toEqual([asked.id]);
  });

  it("that is damaged is FAILED and says how; a good one that a host could not verify stays good and is tried again, ever more seldom", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    await api(key, "PATCH", `/databases/${databaseId}`, { backups: { schedule: null } });
    const damaged = await backedUp(key, on, databaseId, "spoilt", "The table items has 2 rows instead of 3.");
    expect(await backup(key, damaged)).toMatchObject({
      status: "FAILED",
      error: expect.stringContaining("2 rows"),
    });
    // It may be the last copy of what is in it, so its file can be had; a restore cannot use it.
    const { status, body } = await api<BackupLink>(key, "POST", `/backups/${damaged}/link`);
    expect(status).toBe(200);
    expect(await (await call(body.url.slice(siteUrl.length))).text()).toBe("spoilt");
    expect((await api(key, "POST", `/databases/${databaseId}/restore`, { backupId: damaged })).status).toBe(
      409,
    );
    await api(key, "POST", `/databases/${databaseId}/backups`);
    const taken = await take(on, "database.backup");
    await upload(on, taken, "a dump");
    await finish(on, taken.job, taken.attempt);
    const id = taken.job.args.backupId;
    // After an hour, six hours, a day, a day.
    let hours = 0;
    for (const pause of [1, 6, 24, 24]) {
      const { job, attempt } = await take(on, "database.verify");
      await fail(on, job, attempt, "The disk is full: make room.");
      await run("UPDATE jobs SET finished_at = finished_at + ? WHERE id = ?", hours * 3_600_000, job.id);
      expect(await backup(key, id)).toMatchObject({
        status: "STORED",
        error: expect.stringContaining("disk is full"),
        verifiedAt: null,
      });
      const at = (ms: number) => ({ ...ctx(), now: () => new Date(Date.now() + ms) });
      await reconcileBackups(at((hours + pause) * 3_600_000 - 60_000));
      await reapJobs(ctx());
      expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
      hours += pause;
      await reconcileBackups(at(hours * 3_600_000 + 60_000));
      await reapJobs(ctx());
    }
    // It can be had all the while, and a host that has room proves it.
    expect((await api(key, "POST", `/backups/${id}/link`)).status).toBe(200);
    const { job, attempt } = await take(on, "database.verify");
    await finish(on, job, attempt, { damage: null });
    expect(await backup(key, id)).toMatchObject({ status: "VERIFIED", error: null });
  });

  it("whose host reports success without a complete upload, or fails, is FAILED and never good", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    for (const end of ["done", "failed"]) {
      const { body } = await api<Backup>(key, "POST", `/databases/${databaseId}/backups`);
      const taken = await take(on, "database.backup");
      await begin(on, taken);
      await putPart(on, taken, "half a du");
      if (end === "done") await finish(on, taken.job, taken.attempt);
      else await fail(on, taken.job, taken.attempt);
      expect(await backup(key, body.id)).toMatchObject({
        status: "FAILED",
        error: expect.any(String),
        sha256: null,
      });
      expect(await objectsOf(body.id)).toEqual([]);
      expect((await api(key, "POST", `/backups/${body.id}/link`)).status).toBe(409);
      expect((await api(key, "POST", `/databases/${databaseId}/restore`, { backupId: body.id })).status).toBe(
        409,
      );
    }
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
  });

  it("is written and read under the current lease of that very backup only", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const databaseId = await running(key, on);
    const other = await running(key, on);
    const foreign = await readyAgent();
    await api(key, "POST", `/databases/${databaseId}/backups`);
    await api(key, "POST", `/databases/${other}/backups`);
    // One at a time on a host: the other waits.
    const taken = await take(on, "database.backup");
    const upload1 = await begin(on, taken);
    expect(upload1.status).toBe(200);
    const { backupId } = taken.job.args;
    const at = (id: string) =>
      ({
        job: { ...taken.job, args: { ...taken.job.args, backupId: id } },
        attempt: 1,
      }) as Taken<"database.backup">;
    const otherId = (await list(key, other))[0]?.id ?? "";
    const refusals = [
      [await putPart({ ...on, token: { id: "", token: "hst_forged" } }, taken, "x"), 401],
      [await putPart(foreign, taken, "x"), 403],
      [await putPart(on, at(otherId), "x"), 404],
      [await putPart(on, at("unknown"), "x"), 404],
      [await putPart(on, { ...taken, attempt: taken.attempt + 1 }, "x"), 409],
      [await putPart(on, taken, "x", { [partHashHeader]: sha256("y") }), 400],
      [await putPart(on, taken, "x", {}, 0), 400],
      [await putPart(on, taken, "x", {}, 10_001), 400],
      [await putPart(on, taken, "x".repeat(partBytes + 1)), 413],
      [
        await complete(on, taken, {
          uploadId: "another",
          sizeBytes: 1,
          sha256: sha256("x"),
          etags: ["x"],
          fingerprint,
        }),
        409,
      ],
      [await complete(on, taken, {}), 400],
      [await complete(on, taken, { fingerprint: "x".repeat(32 * 1024 * 1024) }), 413],
      [await call(`/agent/backups/${backupId}/data`, { headers: from(on, taken) }), 404],
    ] as const;
    expect(refusals.map(([{ status }]) => status)).toEqual(refusals.map(([, status]) => status));
    for (const [response] of refusals) await response.body?.cancel();
    await upload(on, taken, "a dump");
    await finish(on, taken.job, taken.attempt);
    expect((await putPart(on, taken, "late")).status).toBe(409);
    const next = await on.next("job");
    expect(["database.backup", "database.verify"]).toContain(next.job.kind);
  });

  it("of an attempt that was cut off is begun anew, and what the late one still sends is refused", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const { body } = await api<Backup>(key, "POST", `/databases/${databaseId}/backups`);
    const first = await take(on, "database.backup");
    await begin(on, first);
    await putPart(on, first, "half");
    on.close();
    const back = await readyAgent(10, on.token);
    const second = await take(back, "database.backup");
    expect([second.attempt, second.job.args.attempt]).toEqual([first.attempt + 1, first.attempt + 1]);
    await upload(back, second, "whole");
    expect((await putPart(back, first, "half")).status).toBe(409);
    await finish(back, second.job, second.attempt);
    expect(await backup(key, body.id)).toMatchObject({ status: "STORED", sizeBytes: 5 });
    expect(await objectsOf(body.id)).toHaveLength(2);
  });

  it("is downloaded by a signed address for ten minutes, in ranges too, and by nothing else", async () => {
    const [key, stranger] = [await account(), await account()];
    const on = await readyAgent();
    const databaseId = await running(key, on, { name: "shop" });
    const id = await backedUp(key, on, databaseId, "0123456789");
    for (const [method, path] of [
      ["GET", `/backups/${id}`],
      ["POST", `/backups/${id}/link`],
    ] as const)
      expect((await api(stranger, method, path)).status).toBe(403);
    const { body } = await api<BackupLink>(key, "POST", `/backups/${id}/link`);
    const minutes = (Date.parse(body.expiresAt) - Date.now()) / 60_000;
    expect([minutes > 9, minutes <= 10]).toEqual([true, true]);
    const path = body.url.slice(siteUrl.length);
    const whole = await call(path);
    expect([whole.status, await whole.text()]).toEqual([200, "0123456789"]);
    expect(whole.headers.get("Content-Disposition")).toMatch(/^attachment; filename="shop-.*Z\.pgdump"$/);
    const ranges = [
      ["bytes=3-5", 206, "345"],
      ["bytes=8-", 206, "89"],
      ["bytes=-2", 206, "89"],
      ["bytes=5-100", 206, "56789"],
      ["bytes=10-", 416, '{"error":"range_not_satisfiable"}'],
      ["bytes=a-b", 200, "0123456789"],
    ] as const;
    for (const [Range, status, text] of ranges) {
      const part = await call(path, { headers: { Range } });
      expect([Range, part.status, await part.text()]).toEqual([Range, status, text]);
    }
    const { expires, by, signature } = Object.fromEntries(new URL(body.url).searchParams) as Record<
      string,
      string
    >;
    const other = await backedUp(key, on, databaseId, "another");
    for (const forged of [
      `/backups/${id}/download?expires=${Number(expires) + 1}&by=${by}&signature=${signature}`,
      `/backups/${id}/download?expires=${expires}&by=${by}&signature=${"A".repeat(43)}`,
      `/backups/${other}/download?expires=${expires}&by=${by}&signature=${signature}`,
    ])
      expect((await call(forged)).status).toBe(404);
    expect((await call(`/backups/${id}/download`)).status).toBe(400);
    const { requireSigned } = await import("../../worker/services/backups/link.ts");
    const later = { ...ctx(), now: () => new Date(Number(expires)) };
    const link = { expires: expires ?? "", by: by ?? "", signature: signature ?? "" };
    await requireSigned(ctx(), id, link);
    await expect(requireSigned(later, id, link)).rejects.toThrow("Not found");
  });
});

describe("a backup that waits for another's", () => {
  it("holds up nothing that its database is asked to do, but a restore that it belongs to", async () => {
    const [mine, theirs] = [await account(), await account()];
    const on = await readyAgent();
    const [own, other] = [await running(mine, on), await running(theirs, on)];
    await api(theirs, "POST", `/databases/${other}/backups`);
    await take(on, "database.backup");
    await api(mine, "POST", `/databases/${own}/backups`);
    for (const action of ["stop", "start"] as const) {
      expect((await api(mine, "PATCH", `/databases/${own}`, { action })).status).toBe(202);
      const { job, attempt } = await take(on, `database.${action}`);
      await finish(on, job, attempt, action === "start" ? { version: "17.2" } : {});
    }
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
    on.close();
  });

  it("waits for what went ahead of it, and its host is offered all else meanwhile", async () => {
    const [mine, theirs] = [await account(), await account()];
    const on = await readyAgent();
    const [own, other] = [await running(mine, on), await running(theirs, on)];
    await api(theirs, "POST", `/databases/${other}/backups`);
    const first = await take(on, "database.backup");
    await api(mine, "POST", `/databases/${own}/backups`);
    await api(mine, "PATCH", `/databases/${own}`, { action: "stop" });
    const { job, attempt } = await take(on, "database.stop");
    await fail(on, first.job, first.attempt);
    await api(theirs, "PATCH", `/databases/${other}`, { action: "restart" });
    await take(on, "database.restart");
    await finish(on, job, attempt);
    // What is stopped by then is to be so afterwards.
    const second = await take(on, "database.backup");
    expect([first, second].map((taken) => taken.job.args.serving)).toEqual([true, false]);
    on.close();
  });
});

it("what waits for a long backup of its own database does so for as long as that takes, and then some minutes", async () => {
  const key = await account();
  const on = await readyAgent();
  const databaseId = await running(key, on);
  const at = (minutes: number) => ({ ...ctx(), now: () => new Date(Date.now() + minutes * 60_000) });
  const wanted = async () =>
    (await run("SELECT wanted FROM databases WHERE id = ?", databaseId)).results[0]?.["wanted"];
  await api(key, "POST", `/databases/${databaseId}/backups`);
  const taken = await take(on, "database.backup");
  on.send(ready(0));
  for (const action of ["restart", "stop"])
    expect((await api(key, "PATCH", `/databases/${databaseId}`, { action })).status).toBe(202);
  await reapJobs(at(119));
  expect((await api<Database>(key, "GET", `/databases/${databaseId}`)).body.status).toBe("RUNNING");
  expect(await wanted()).toBe("STOPPED");
  await fail(on, taken.job, taken.attempt);
  await run("UPDATE jobs SET finished_at = ? WHERE id = ?", at(119).now().getTime(), taken.job.id);
  await reapJobs(at(121));
  expect(await wanted()).toBe("STOPPED");
  // No host took it although it was its turn.
  await reapJobs(at(130));
  expect(await wanted()).toBe("RUNNING");
  on.close();
});

it("that are asked for by what is no database's id are refused as such", async () => {
  const refused = await api(await account(), "GET", "/backups?databaseId=nothing");
  expect([refused.status, refused.body]).toMatchObject([400, { issues: [{ path: "databaseId" }] }]);
});

describe("planned backups", () => {
  const due = (id: string) => run("UPDATE databases SET next_backup_at = 1000 WHERE id = ?", id);

  it("begin once each, however many timers run, and are planned anew", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    await reconcileBackups(ctx());
    expect(await list(key, databaseId)).toEqual([]);
    const { body: planned } = await api<Database>(key, "GET", `/databases/${databaseId}`);
    expect(planned.backups).toMatchObject({
      schedule: "daily",
      hourUtc: 3,
      keep: 7,
      nextAt: expect.any(String),
    });
    await due(databaseId);
    await Promise.all(Array.from({ length: 6 }, () => reconcileBackups(ctx())));
    await take(on, "database.backup");
    expect(await list(key, databaseId)).toMatchObject([{ trigger: "schedule", status: "RUNNING" }]);
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
    const { body: next } = await api<Database>(key, "GET", `/databases/${databaseId}`);
    expect(Date.parse(next.backups.nextAt ?? "")).toBeGreaterThan(Date.now());
    // The next moment comes while that one still runs: not a second one.
    await due(databaseId);
    await reconcileBackups(ctx());
    expect(await list(key, databaseId)).toHaveLength(1);
  });

  it("follow the owner's wish, and end when there is none", async () => {
    const key = await account();
    const databaseId = await running(key, await readyAgent());
    const path = `/databases/${databaseId}`;
    const weekly = await api<Database>(key, "PATCH", path, {
      backups: { schedule: "weekly", hourUtc: 22, keep: 2 },
    });
    expect([weekly.status, weekly.body.backups]).toMatchObject([
      200,
      { schedule: "weekly", hourUtc: 22, keep: 2 },
    ]);
    expect(new Date(weekly.body.backups.nextAt ?? "").getUTCHours()).toBe(22);
    const byCron = await api<Database>(key, "PATCH", path, { backups: { schedule: "30 */6 * * *" } });
    expect(byCron.body.backups).toMatchObject({
      schedule: "30 */6 * * *",
      nextAt: expect.stringMatching(/T(?:00|06|12|18):30:00/) as string,
    });
    const none = await api<Database>(key, "PATCH", path, { backups: { schedule: null } });
    expect(none.body.backups).toEqual({ schedule: null, hourUtc: 22, keep: 2, nextAt: null, failing: null });
    await reconcileBackups(ctx());
    expect(await list(key, databaseId)).toEqual([]);
    for (const backups of [
      { keep: 0 },
      { hourUtc: 24 },
      { schedule: "hourly" },
      { schedule: "* * * * *" },
      { other: 1 },
    ])
      expect((await api(key, "PATCH", path, { backups })).status).toBe(400);
    expect((await api(await account(), "PATCH", path, { backups: { keep: 3 } })).status).toBe(403);
  });

  it("leave so many verified ones as are to be kept, with their files, and never take the only good one", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    await api(key, "PATCH", `/databases/${databaseId}`, { backups: { keep: 2, schedule: null } });
    const ids = [];
    for (const text of ["one", "two", "three"]) ids.push(await backedUp(key, on, databaseId, text));
    const bad = await backedUp(key, on, databaseId, "spoilt", "It is damaged.");
    await reconcileBackups(ctx());
    expect((await list(key, databaseId)).map(({ id }) => id)).toEqual([bad, ids[2], ids[1]]);
    expect(await objectsOf(ids[0] ?? "")).toEqual([]);
    expect(await objectsOf(ids[1] ?? "")).toHaveLength(2);
    // The others turn out to be bad: the last good one stays, whatever is to be kept.
    await api(key, "PATCH", `/databases/${databaseId}`, { backups: { keep: 1 } });
    await run("UPDATE backups SET status = 'FAILED', created_at = 0, finished_at = 0 WHERE id = ?", ids[2]);
    await reconcileBackups(ctx());
    expect((await list(key, databaseId)).map(({ id }) => id)).toEqual([bad, ids[1]]);
  });
});

describe("planned backups that fail", () => {
  afterAll(() => run("DELETE FROM mails"));
  const week = 7 * 86_400_000;
  const reason = 'The database could not be copied: ERROR: relation "items" does not exist';
  const mailsOf = async (databaseId: string) =>
    (await run("SELECT subject, text FROM mails WHERE id LIKE ? ORDER BY created_at, id", `%${databaseId}%`))
      .results as { subject: string; text: string }[];
  const shown = async (key: string, databaseId: string) =>
    (await api<Database>(key, "GET", `/databases/${databaseId}`)).body.backups.failing;
  async function failingOf(databaseId: string) {
    const { body } = await api<{ data: FailingBackups[] }>(
      await operator(),
      "GET",
      "/backups/failing?limit=100",
    );
    return body.data.find(({ id }) => id === databaseId);
  }
  async function planned(on: Connected, databaseId: string) {
    await run("UPDATE databases SET next_backup_at = 1000 WHERE id = ?", databaseId);
    await reconcileBackups(ctx());
    return take(on, "database.backup");
  }
  async function database() {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    await reconcileBackups(ctx());
    return { key, on, databaseId };
  }

  it("are mailed at the second in a row, with the reason and without data, once until a week has passed, and when they work again", async () => {
    const { key, on, databaseId } = await database();
    const failOnce = async (error = reason) => {
      const { job, attempt } = await planned(on, databaseId);
      await fail(on, job, attempt, error);
    };
    await failOnce();
    expect(await shown(key, databaseId)).toEqual({ since: expect.any(String), times: 1, reason });
    expect(await mailsOf(databaseId)).toEqual([]);
    await failOnce(`${reason} DETAIL: Failing row contains (1, secret).`);
    await failOnce();
    expect(await mailsOf(databaseId)).toEqual([
      {
        subject: expect.stringMatching(/^Backups of .* are failing$/),
        text: expect.stringContaining(reason),
      },
    ]);
    expect((await mailsOf(databaseId))[0]?.text).not.toContain("secret");
    await run(
      "UPDATE databases SET backups_failing_since = backups_failing_since - ? WHERE id = ?",
      week,
      databaseId,
    );
    await failOnce();
    expect(await mailsOf(databaseId)).toHaveLength(2);
    expect(await failingOf(databaseId)).toMatchObject({ times: 4, reason, hostId: on.hostId });
    await backedUp(key, on, databaseId);
    expect(await shown(key, databaseId)).toBeNull();
    expect(await failingOf(databaseId)).toBeUndefined();
    expect((await mailsOf(databaseId)).at(-1)?.subject).toMatch(/^Backups of .* work again$/);
    expect(await mailsOf(databaseId)).toHaveLength(3);
    on.close();
  });

  it("count also where the copy is damaged, or cannot be verified, and say nothing of rows then either, whatever the host says", async () => {
    const { key, on, databaseId } = await database();
    const stored = await planned(on, databaseId);
    await upload(on, stored, "a dump");
    await finish(on, stored.job, stored.attempt);
    const first = await take(on, "database.verify");
    await fail(
      on,
      first.job,
      first.attempt,
      "ERROR 1062 (23000): Duplicate entry 'secret' for key 'PRIMARY'",
    );
    const unverified = await shown(key, databaseId);
    expect(unverified).toMatchObject({ times: 1, reason: expect.stringMatching(/1062/) });
    const spoilt = await planned(on, databaseId);
    await upload(on, spoilt, "spoilt");
    await finish(on, spoilt.job, spoilt.attempt);
    const second = await take(on, "database.verify");
    await finish(on, second.job, second.attempt, {
      damage: 'The table items has 2 rows instead of 3: invalid input syntax: "secret"',
    });
    expect(await shown(key, databaseId)).toMatchObject({
      times: 2,
      reason: expect.stringContaining("2 rows"),
    });
    const mails = await mailsOf(databaseId);
    expect(mails).toHaveLength(1);
    expect(JSON.stringify([unverified, await failingOf(databaseId), mails])).not.toContain("secret");
    on.close();
  });

  it("do not count where the owner asked for them, or took them back", async () => {
    const { key, on, databaseId } = await database();
    await api(key, "POST", `/databases/${databaseId}/backups`);
    const asked = await take(on, "database.backup");
    await fail(on, asked.job, asked.attempt, reason);
    const deleted = await planned(on, databaseId);
    await api(key, "DELETE", `/backups/${deleted.job.args.backupId}`);
    await fail(on, deleted.job, deleted.attempt, "Cancelled.", true);
    expect(await shown(key, databaseId)).toBeNull();
    on.close();
  });

  it("are listed for operators only", async () => {
    expect((await api(await account(), "GET", "/backups/failing")).status).toBe(403);
  });
});

describe("a backup of a database that has shrunk to nothing", () => {
  const sized = (rows: number) => ({
    ...fingerprint,
    tables: [{ name: "items", rows: String(rows), checksum: "1" }],
  });
  const shown = async (key: string, databaseId: string) =>
    (await api<Database>(key, "GET", `/databases/${databaseId}`)).body.notice;
  const statuses = async (key: string, databaseId: string) =>
    (await list(key, databaseId)).map(({ rows }) => rows);

  async function shrunk() {
    const key = await account();
    const on = await readyAgent(30);
    const databaseId = await running(key, on);
    await api(key, "PATCH", `/databases/${databaseId}`, { backups: { keep: 2, schedule: null } });
    const good = await backedUp(key, on, databaseId, "a dump", null, sized(1000));
    for (let count = 0; count < 3; count++) await backedUp(key, on, databaseId, "a dump", null, sized(99));
    await reconcileBackups(ctx());
    return { key, on, databaseId, good };
  }

  it("pushes the last good one not out, and the record says so", async () => {
    const { key, on, databaseId, good } = await shrunk();
    expect(await statuses(key, databaseId)).toEqual([99, 99, 1000]);
    expect(await shown(key, databaseId)).toContain(good);
    // What is whole again takes its place.
    await backedUp(key, on, databaseId, "a dump", null, sized(100));
    expect(await shown(key, databaseId)).toBeNull();
    await backedUp(key, on, databaseId, "a dump", null, sized(900));
    await reconcileBackups(ctx());
    expect(await statuses(key, databaseId)).toEqual([900, 100]);
    on.close();
  });

  it.each(["says so", "deletes the larger one"])("is as good as any once its owner %s", async (how) => {
    const { key, on, databaseId, good } = await shrunk();
    if (how === "says so") {
      const { status } = await api(key, "PATCH", `/databases/${databaseId}`, {
        backups: { acceptSmaller: true },
      });
      expect(status).toBe(200);
    } else await api(key, "DELETE", `/backups/${good}`);
    expect(await shown(key, databaseId)).toBeNull();
    await reconcileBackups(ctx());
    expect(await statuses(key, databaseId)).toEqual([99, 99]);
    await backedUp(key, on, databaseId, "a dump", null, sized(98));
    expect(await shown(key, databaseId)).toBeNull();
    on.close();
  });
});

it("an address to download from opens nothing once the key that made it is revoked, or with another's name", async () => {
  const key = await account();
  const on = await readyAgent();
  const id = await backedUp(key, on, await running(key, on));
  const { body: link } = await api<BackupLink>(key, "POST", `/backups/${id}/link`);
  const path = link.url.replace(siteUrl, "");
  const open = async (at: string) => {
    const answer = await call(at);
    await answer.arrayBuffer();
    return answer.status;
  };
  expect(await open(path)).toBe(200);
  expect(await open(path.replace(/by=key_\w+/, "by=key_0000000000000000000000000000"))).toBe(404);
  await run(
    "UPDATE api_keys SET revoked_at = 1 WHERE account_id = (SELECT account_id FROM backups WHERE id = ?)",
    id,
  );
  expect(await open(path)).toBe(404);
  on.close();
});

describe("a backup that is to be verified again", () => {
  const verify = (key: string, id: string) =>
    api<Backup & { reason?: string }>(key, "POST", `/backups/${id}/verify`);

  it("is VERIFIED though it was FAILED, when it is whole by now; asked for twice it is verified once", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const id = await backedUp(key, on, databaseId, "a dump", "Its file is 3 bytes, but 6 were stored.");
    const [first, second] = [await verify(key, id), await verify(key, id)];
    expect([first.status, first.body.status, second.status]).toEqual([202, "STORED", 202]);
    const { job, attempt } = await take(on, "database.verify");
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
    await finish(on, job, attempt, { damage: null });
    const whole = await backup(key, id);
    expect(whole).toMatchObject({ status: "VERIFIED", error: null, verifiedAt: expect.any(String) });
    // It stays what it is while it is looked at once more, and says when it was good last.
    expect((await verify(key, id)).body.status).toBe("VERIFIED");
    const again = await take(on, "database.verify");
    await finish(on, again.job, again.attempt, { damage: "Its SHA-256 differs." });
    expect(await backup(key, id)).toMatchObject({ status: "FAILED", verifiedAt: whole.verifiedAt });
    on.close();
  });

  it("waits for its host while that is offline, and is shown to no other one", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const id = await backedUp(key, on, databaseId);
    on.close();
    await foundOffline(on.hostId);
    const stranger = await readyAgent();
    await run("UPDATE backups SET status = 'STORED' WHERE id = ?", id);
    await reconcileBackups(ctx());
    // The timer queues nothing that would only wait.
    expect((await jobsOf(id)).filter(({ status }) => status === "QUEUED")).toEqual([]);
    expect((await verify(key, id)).status).toBe(202);
    expect((await deployingSite(key, stranger)).job.kind).toBe("site.deploy");
    expect(stranger.waiting().filter(({ type }) => type === "job")).toEqual([]);
    stranger.close();
    const back = await readyAgent(10, on.token);
    const { job, attempt } = await take(back, "database.verify");
    await finish(back, job, attempt, { damage: null });
    expect(await backup(key, id)).toMatchObject({ status: "VERIFIED" });
    back.close();
  });

  it("is one whose file is there: not one that failed before it was stored, or runs", async () => {
    const [key, stranger] = [await account(), await account()];
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const { body } = await api<Backup>(key, "POST", `/databases/${databaseId}/backups`);
    expect([(await verify(key, body.id)).status, (await verify(stranger, body.id)).status]).toEqual([
      409, 403,
    ]);
    const { job, attempt } = await take(on, "database.backup");
    await fail(on, job, attempt);
    expect((await verify(key, body.id)).body.reason).toMatch(/has no file/);
    expect((await verify(key, "bak_unknown")).status).toBe(404);
    on.close();
  });
});

describe("a backup that is deleted", () => {
  const remove = (key: string, id: string) =>
    api<{ status: string; reason?: string }>(key, "DELETE", `/backups/${id}`);

  it("is not shown, linked, downloaded or restored any more, and its file goes; the last good one too", async () => {
    const [key, stranger] = [await account(), await account()];
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const id = await backedUp(key, on, databaseId);
    const { body: link } = await api<BackupLink>(key, "POST", `/backups/${id}/link`);
    expect((await remove(stranger, id)).status).toBe(403);
    const answers = await Promise.all([remove(key, id), remove(key, id)]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202, 404]));
    expect(answers.find(({ status }) => status === 202)?.body).toEqual({ id, status: "DELETING" });
    expect(await list(key, databaseId)).toEqual([]);
    expect((await api(key, "GET", `/backups/${id}`)).status).toBe(404);
    expect((await api(key, "POST", `/databases/${databaseId}/restore`, { backupId: id })).status).toBe(404);
    expect((await call(link.url.replace(siteUrl, ""))).status).toBe(404);
    await reconcileBackups(ctx());
    expect(await objectsOf(id)).toEqual([]);
    expect(await bindings.DB.prepare("SELECT id FROM backups WHERE id = ?").bind(id).first()).toBeNull();
  });

  it("stays while a restore reads it, whichever of the two was asked for first", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const id = await backedUp(key, on, databaseId);
    const [restored, removed] = await Promise.all([
      api(key, "POST", `/databases/${databaseId}/restore`, { backupId: id }),
      remove(key, id),
    ]);
    expect([
      [202, 409],
      [409, 202],
      [404, 202],
    ]).toContainEqual([restored.status, removed.status]);
    if (removed.status === 202) return;
    expect(removed.body.reason).toMatch(/being restored\. Wait/);
    const safety = await take(on, "database.backup");
    await fail(on, safety.job, safety.attempt);
    const { job, attempt } = await take(on, "database.restore");
    expect((await remove(key, id)).status).toBe(409);
    await fail(on, job, attempt);
    expect((await remove(key, id)).status).toBe(202);
  });

  it("while it waits is cancelled at once, and the next may begin", async () => {
    const key = await account();
    const on = await readyAgent();
    const [databaseId, other] = [await running(key, on), await running(key, on)];
    const { body: first } = await api<Backup>(key, "POST", `/databases/${databaseId}/backups`);
    await take(on, "database.backup");
    const { body: second } = await api<Backup>(key, "POST", `/databases/${other}/backups`);
    expect((await remove(key, second.id)).status).toBe(202);
    expect(await list(key, other)).toEqual([]);
    const { body: third, status } = await api<Backup>(key, "POST", `/databases/${other}/backups`);
    expect(status).toBe(202);
    expect((await list(key, other)).map(({ id }) => id)).toEqual([third.id]);
    expect(await backup(key, first.id)).toMatchObject({ status: "RUNNING" });
    await reconcileBackups(ctx());
    expect((await jobsOf(second.id)).map(({ status: ended }) => ended)).toEqual(["CANCELLED"]);
  });

  it.each(["cancelled", "done"])(
    "while its host makes it is cancelled there; nothing of it stays, also when the host was %s first",
    async (outcome) => {
      const key = await account();
      const on = await readyAgent();
      const databaseId = await running(key, on);
      const { body } = await api<Backup>(key, "POST", `/databases/${databaseId}/backups`);
      const taken = await take(on, "database.backup");
      await begin(on, taken);
      await putPart(on, taken, "half a du");
      if (outcome === "done") await upload(on, taken, "a dump");
      expect((await remove(key, body.id)).status).toBe(202);
      expect(await on.next("cancel")).toMatchObject({ jobId: taken.job.id, attempt: taken.attempt });
      expect(await list(key, databaseId)).toEqual([]);
      // The host still works on it: neither another one, nor its end before the host's.
      expect((await api(key, "POST", `/databases/${databaseId}/backups`)).status).toBe(409);
      await reconcileBackups(ctx());
      expect(await bindings.DB.prepare("SELECT id FROM backups WHERE id = ?").bind(body.id).first()).not.toBe(
        null,
      );
      if (outcome === "done") await finish(on, taken.job, taken.attempt);
      else await fail(on, taken.job, taken.attempt, "Cancelled.", true);
      expect((await putPart(on, taken, "late")).status).toBe(409);
      await reconcileBackups(ctx());
      expect(await objectsOf(body.id)).toEqual([]);
      expect(
        await bindings.DB.prepare("SELECT id FROM backups WHERE id = ?").bind(body.id).first(),
      ).toBeNull();
      expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
      expect((await api(key, "POST", `/databases/${databaseId}/backups`)).status).toBe(202);
    },
  );

  it("while it is verified ends the verification, and its file goes after that", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const { body } = await api<Backup>(key, "POST", `/databases/${databaseId}/backups`);
    const taken = await take(on, "database.backup");
    await upload(on, taken, "a dump");
    await finish(on, taken.job, taken.attempt);
    const verification = await take(on, "database.verify");
    expect((await remove(key, body.id)).status).toBe(202);
    expect(await on.next("cancel")).toMatchObject({ jobId: verification.job.id });
    await reconcileBackups(ctx());
    expect(await objectsOf(body.id)).toHaveLength(2);
    await fail(on, verification.job, verification.attempt, "Cancelled.", true);
    await reconcileBackups(ctx());
    expect(await objectsOf(body.id)).toEqual([]);
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
  });
});

describe("a restore", () => {
  it("backs up what is there, restores, and lets the old volume go once the record names the new one", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const id = await backedUp(key, on, databaseId);
    const accepted = await api(key, "POST", `/databases/${databaseId}/restore`, { backupId: id });
    expect([accepted.status, accepted.body]).toEqual([202, { id: databaseId, status: "RUNNING" }]);
    expect((await api(key, "POST", `/databases/${databaseId}/restore`, { backupId: id })).status).toBe(409);
    const safety = await take(on, "database.backup");
    await upload(on, safety, "before");
    await finish(on, safety.job, safety.attempt);
    const { job, attempt } = await take(on, "database.restore");
    expect(job.args).toMatchObject({ serving: true, backup: { backupId: id, sha256: sha256("a dump") } });
    expect(job.args.database.volume).toBeUndefined();
    await finish(on, job, attempt, { version: "17.2", damage: null, volume: job.id });
    const after = await take(on, "database.start");
    // Of the safety copy; it had to wait for the restore.
    await take(on, "database.verify");
    expect(after.job.args).toMatchObject({ database: { volume: job.id }, replacedVolumes: [null] });
    expect((await list(key, databaseId)).map(({ trigger, status }) => [trigger, status])).toEqual([
      ["before-restore", "STORED"],
      ["api", "VERIFIED"],
    ]);
    expect((await api<Database>(key, "GET", `/databases/${databaseId}`)).body).toMatchObject({
      status: "RUNNING",
      error: null,
    });
  });

  it.each(["STOPPED", "FAILED"] as const)(
    "into a %s database backs up what is there as well, and restores though that fails",
    async (status) => {
      const key = await account();
      const on = await readyAgent();
      const databaseId = await running(key, on);
      const id = await backedUp(key, on, databaseId);
      await run("UPDATE databases SET status = ?, wanted = 'STOPPED' WHERE id = ?", status, databaseId);
      const shown = async () => (await api<Database>(key, "GET", `/databases/${databaseId}`)).body.status;
      // Another account's backup, which may take hours, holds up neither.
      const other = await account();
      await api(other, "POST", `/databases/${await running(other, on)}/backups`);
      await take(on, "database.backup");
      await api(key, "POST", `/databases/${databaseId}/restore`, { backupId: id });
      const safety = await take(on, "database.backup");
      // It is started for the backup alone.
      expect(safety.job.args.serving).toBe(false);
      if (status === "STOPPED") {
        await upload(on, safety, "before");
        await finish(on, safety.job, safety.attempt);
      } else await fail(on, safety.job, safety.attempt, "The database server ended when it started.");
      expect(await shown()).toBe(status);
      const { job, attempt } = await take(on, "database.restore");
      expect(job.args.serving).toBe(false);
      await finish(on, job, attempt, { version: "17.2", damage: null, volume: job.id });
      expect(await shown()).toBe("RUNNING");
      expect(await list(key, databaseId)).toMatchObject([
        { trigger: "before-restore", status: status === "STOPPED" ? "STORED" : "FAILED" },
        { id },
      ]);
      on.close();
    },
  );

  it("that fails leaves the database as it is and says why; the backup is verified again, which alone finds it damaged", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const id = await backedUp(key, on, databaseId);
    const first = await askedToRestore(key, on, databaseId, id);
    await fail(on, first.job, first.attempt, "The disk is full: make room.");
    const shown = async () => (await api<Database>(key, "GET", `/databases/${databaseId}`)).body;
    expect(await shown()).toMatchObject({
      status: "RUNNING",
      error: expect.stringMatching(/not restored.*disk is full/),
    });
    expect((await backup(key, id)).status).toBe("VERIFIED");
    const second = await askedToRestore(key, on, databaseId, id);
    await finish(on, second.job, second.attempt, { damage: "Its SHA-256 differs." });
    expect(await shown()).toMatchObject({
      status: "RUNNING",
      error: expect.stringContaining("SHA-256 differs"),
    });
    // Another server may have refused what is whole.
    expect(await backup(key, id)).toMatchObject({ status: "STORED", error: "Its SHA-256 differs." });
    await reconcileBackups(ctx());
    const verification = await take(on, "database.verify");
    await finish(on, verification.job, verification.attempt, { damage: null });
    expect(await backup(key, id)).toMatchObject({ status: "VERIFIED", error: null });
  });

  it("whose host is silent when its time is over has not failed: whether it changed over, the host says when it is back", async () => {
    const { on, databaseId, job, attempt } = await restoring();
    const isOver = () => run("UPDATE jobs SET deadline_at = 1 WHERE id = ?", job.id);
    const statusOfJob = async () =>
      (await run("SELECT status FROM jobs WHERE id = ?", job.id)).results[0]?.["status"];
    await isOver();
    on.close();
    await foundOffline(on.hostId);
    await reapJobs(ctx());
    expect(await statusOfJob()).toBe("LEASED");

    // Just back, it is about to say so.
    const back = await greetedAgent({ finished: [{ jobId: job.id, attempt }] }, on.token);
    await reapJobs(ctx());
    expect(await statusOfJob()).toBe("LEASED");
    await finish(back, job, attempt, { version: "17.2", damage: null, volume: job.id });
    expect((await run("SELECT volume FROM databases WHERE id = ?", databaseId)).results).toEqual([
      { volume: job.id },
    ]);
    back.close();
  });

  it("lets go the volumes that the record knows as replaced, also of long ago; of a later restore it knows nothing", async () => {
    const { on, databaseId, job, attempt } = await restoring();
    await finish(on, job, attempt, { version: "17.2", damage: null, volume: job.id });
    const started = await take(on, "database.start");
    await finish(on, started.job, started.attempt, { version: "17.2" });
    await run("UPDATE jobs SET deadline_at = 1 WHERE database_id = ? AND status = 'DONE'", databaseId);
    await purgeOldJobs(ctx());
    const later = "job_1later00000000000000";
    await run(
      `INSERT INTO jobs (id, kind, status, host_id, lane, database_id, account_id, deadline_at, created_at)
       SELECT ?1, kind, 'DONE', host_id, lane, database_id, account_id, deadline_at, created_at FROM jobs WHERE id = ?2`,
      later,
      job.id,
    );
    const replaced = async () => {
      const [row] = await ctx()
        .db.select({ replacedVolumes })
        .from(databases)
        .where(sql`id = ${databaseId}`);
      return row?.replacedVolumes;
    };
    expect(await replaced()).toEqual([null]);
    await run("UPDATE databases SET volume = ? WHERE id = ?", later, databaseId);
    expect(await replaced()).toEqual([null, job.id]);
    await run("UPDATE databases SET volume = 'job_unknown' WHERE id = ?", databaseId);
    expect(await replaced()).toEqual([]);
    on.close();
  });

  it("that ends when its database has been suspended has changed its volume all the same", async () => {
    const { on, databaseId, job, attempt } = await restoring();
    await run("UPDATE databases SET status = 'SUSPENDED' WHERE id = ?", databaseId);
    await finish(on, job, attempt, { version: "17.2", damage: null, volume: job.id });
    expect((await run("SELECT status, volume FROM databases WHERE id = ?", databaseId)).results).toEqual([
      { status: "SUSPENDED", volume: job.id },
    ]);
    on.close();
  });

  it("that its host does not report, though it can be heard, ends some time after its deadline", async () => {
    const { key, on, databaseId, job } = await restoring();
    await run("UPDATE jobs SET deadline_at = 1 WHERE id = ?", job.id);
    await run("UPDATE hosts SET connected_at = 1 WHERE id = ?", on.hostId);
    await reapJobs(ctx());
    expect(await on.next("drop")).toMatchObject({ jobId: job.id });
    expect((await api<Database>(key, "GET", `/databases/${databaseId}`)).body.error).toMatch(/not restored/);
    on.close();
  });

  it("that is given up after too many interruptions may have changed over: the database is started on what its record names", async () => {
    const { key, on, databaseId, job } = await restoring();
    await run("UPDATE jobs SET attempt = ? WHERE id = ?", maxAttempts, job.id);
    on.close();
    const back = await readyAgent(10, on.token);
    const { job: start, attempt } = await take(back, "database.start");
    expect(start.args.database).toMatchObject({ databaseId });
    expect(start.args.database.volume).toBeUndefined();
    expect((await api<Database>(key, "GET", `/databases/${databaseId}`)).body.error).toMatch(/not restored/);
    await finish(back, start, attempt, { version: "17.2" });
    back.close();
  });

  it.each([
    ["STOPPED", "database.stop"],
    ["FAILED", "database.start"],
  ] as const)("that is given up leaves a %s database as its record says, by a %s", async (status, kind) => {
    const { key, on, databaseId, job } = await restoring();
    await run("UPDATE databases SET status = ? WHERE id = ?", status, databaseId);
    await run("UPDATE jobs SET attempt = ? WHERE id = ?", maxAttempts, job.id);
    on.close();
    const back = await readyAgent(10, on.token);
    const taken = await take(back, kind);
    await finish(back, taken.job, taken.attempt, kind === "database.start" ? { version: "17.2" } : {});
    const { body } = await api<Database>(key, "GET", `/databases/${databaseId}`);
    expect(body).toMatchObject(
      status === "STOPPED"
        ? { status, error: expect.stringMatching(/not restored/) }
        : { status: "RUNNING", error: null },
    );
    back.close();
  });

  it("that is given up stops no stopped database whose owner has it started next", async () => {
    const { key, on, databaseId, job } = await restoring();
    await run("UPDATE databases SET status = 'STOPPED' WHERE id = ?", databaseId);
    await run("UPDATE jobs SET attempt = ? WHERE id = ?", maxAttempts, job.id);
    await api(key, "PATCH", `/databases/${databaseId}`, { action: "start" });
    on.close();
    const back = await readyAgent(10, on.token);
    const { job: start, attempt } = await take(back, "database.start");
    await finish(back, start, attempt, { version: "17.2" });
    expect(back.waiting().filter(({ type }) => type === "job")).toEqual([]);
    expect((await api<Database>(key, "GET", `/databases/${databaseId}`)).body.status).toBe("RUNNING");
    back.close();
  });

  it("behind a stop is one into a stopped database, which stays stopped when it fails", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const id = await backedUp(key, on, databaseId);
    await api(key, "PATCH", `/databases/${databaseId}`, { action: "stop" });
    const stop = await take(on, "database.stop");
    await api(key, "POST", `/databases/${databaseId}/restore`, { backupId: id });
    await finish(on, stop.job, stop.attempt);
    const shown = async () => (await api<Database>(key, "GET", `/databases/${databaseId}`)).body;
    expect((await shown()).status).toBe("STOPPED");
    const safety = await take(on, "database.backup");
    await fail(on, safety.job, safety.attempt, "It does not run.");
    const restore = await take(on, "database.restore");
    expect(restore.job.args.serving).toBe(false);
    await fail(on, restore.job, restore.attempt, "The disk is full: make room.");
    await reconcileTerms(ctx());
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
    expect((await shown()).status).toBe("STOPPED");
    on.close();
  });

  it("takes own backups of the same engine only, into a database that can take them", async () => {
    const [key, stranger] = [await account(), await account()];
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const id = await backedUp(key, on, databaseId);
    const foreign = await running(stranger, on);
    const redis = await running(key, on, { type: "redis" });
    const unpaid = await api<DatabaseCreated>(key, "POST", "/databases", {
      name: "unpaid",
      type: "postgresql",
    });
    const into = async (as: string, database: string, backupId: string) =>
      (await api(as, "POST", `/databases/${database}/restore`, { backupId })).status;
    expect(await into(stranger, foreign, id)).toBe(403);
    expect(await into(key, foreign, id)).toBe(403);
    expect(await into(key, databaseId, "bak_unknown")).toBe(404);
    expect(await into(key, redis, id)).toBe(409);
    expect(await into(key, unpaid.body.databaseId, id)).toBe(402);
    expect((await api(key, "POST", `/databases/${unpaid.body.databaseId}/backups`)).status).toBe(402);
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
  });

  it("brings back a database whose host was lost, on another one", async () => {
    const key = await account();
    const lost = await readyAgent();
    const databaseId = await running(key, lost);
    const id = await backedUp(key, lost, databaseId);
    lost.close();
    await run("UPDATE hosts SET status = 'REMOVED' WHERE id = ?", lost.hostId);
    await run(
      "UPDATE databases SET host_id = NULL, version = NULL, status = 'FAILED' WHERE id = ?",
      databaseId,
    );
    const on = await readyAgent();
    expect((await api(key, "POST", `/databases/${databaseId}/restore`, { backupId: id })).status).toBe(202);
    const { job, attempt } = await take(on, "database.restore");
    expect(job.args).toMatchObject({ serving: false, backup: { backupId: id } });
    await finish(on, job, attempt, { version: "17.2", damage: null, volume: job.id });
    expect((await api<Database>(key, "GET", `/databases/${databaseId}`)).body).toMatchObject({
      status: "RUNNING",
      hostId: on.hostId,
    });
  });
});

describe("whether a restore is over", () => {
  const shown = async (key: string, databaseId: string) =>
    (await api<Database>(key, "GET", `/databases/${databaseId}`)).body;
  async function events(key: string, on: Connected, databaseId: string) {
    const reading = api<SiteEvents>(key, "GET", `/databases/${databaseId}/events`);
    const { requestId } = await on.next("ask");
    const stop = { at: "2026-01-02T03:04:05.000Z", kind: "stop", detail: "The server was stopped." };
    on.send({ type: "answer", requestId, answer: { kind: "events", events: [stop] }, last: true });
    return (await reading).body.data;
  }

  it("says the record, which names the backup until then, and an event afterwards", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    const id = await backedUp(key, on, databaseId);
    expect((await shown(key, databaseId)).restoring).toBeNull();
    const { job, attempt } = await askedToRestore(key, on, databaseId, id);
    expect((await shown(key, databaseId)).restoring).toEqual({ backupId: id, since: expect.any(String) });
    await finish(on, job, attempt, { version: "17.2", damage: null, volume: job.id });
    expect((await shown(key, databaseId)).restoring).toBeNull();
    expect(await events(key, on, databaseId)).toEqual([
      expect.objectContaining({ kind: "stop" }),
      { at: expect.any(String), kind: "restored", detail: expect.stringContaining(id) },
    ]);
    on.close();
  });

  it.each([
    ["its host reports", "The disk is full: make room."],
    ["the backup is damaged", "Its SHA-256 differs."],
  ])("says the event of one that failed, with the reason that %s", async (who, reason) => {
    const { key, on, databaseId, job, attempt } = await restoring();
    if (who === "its host reports") await fail(on, job, attempt, reason);
    else await finish(on, job, attempt, { damage: reason });
    expect((await shown(key, databaseId)).restoring).toBeNull();
    expect(await events(key, on, databaseId)).toContainEqual({
      at: expect.any(String),
      kind: "restore_failed",
      detail: expect.stringContaining(reason),
    });
    on.close();
  });
});

it("a restore whose result is not of the expected form has failed at once, and the host is told to bring the recorded data back", async () => {
  const errors = vi.spyOn(console, "error").mockReturnValue();
  onTestFinished(() => errors.mockRestore());
  const { key, on, databaseId, job, attempt } = await restoring();
  await finish(on, job, attempt, { version: "17.2", damage: null, volume: "another" });
  const start = await take(on, "database.start");
  expect(start.job.args.database.volume).toBeUndefined();
  expect((await api<Database>(key, "GET", `/databases/${databaseId}`)).body).toMatchObject({
    restoring: null,
    error: expect.stringContaining("not of the expected form"),
  });
  on.close();
});

describe("a backup whose host is removed", () => {
  it("has failed with the reason, and holds up no backup of the database that follows on another host", async () => {
    const key = await account();
    const lost = await readyAgent();
    const databaseId = await running(key, lost);
    const asked = await api<Backup>(key, "POST", `/databases/${databaseId}/backups`);
    await take(lost, "database.backup");
    lost.close();
    const force = `/hosts/${lost.hostId}?force=1&loseVolumes=1`;
    await vi.waitFor(async () => {
      expect((await api(await operator(), "DELETE", force)).status).toBe(200);
    }, 10_000);
    expect(await backup(key, asked.body.id)).toMatchObject({
      status: "FAILED",
      error: "Its host was removed.",
    });
    const on = await readyAgent();
    await api(key, "PATCH", `/databases/${databaseId}`, { action: "start" });
    const { job, attempt } = await take(on, "database.provision");
    await finish(on, job, attempt, { version: "17.2" });
    await backedUp(key, on, databaseId);
    on.close();
  });
});

describe("a database that is deleted", () => {
  it("is backed up once more; its backups stay for 30 days, can be restored elsewhere, and then go with their files", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    expect((await api(key, "DELETE", `/databases/${databaseId}`)).status).toBe(202);
    const last = await take(on, "database.backup");
    await upload(on, last, "the last");
    await finish(on, last.job, last.attempt);
    // The deletion does not wait for the proof.
    const waiting = [await on.next("job"), await on.next("job")];
    const removal = waiting.find(({ job }) => job.kind === "database.delete");
    const verification = waiting.find(({ job }) => job.kind === "database.verify");
    if (!removal || !verification) throw new Error("A job is missing");
    await finish(on, removal.job, removal.attempt);
    expect((await api(key, "GET", `/databases/${databaseId}`)).status).toBe(404);
    await finish(on, verification.job, verification.attempt, { damage: null });
    const [kept] = await list(key, databaseId);
    expect(kept).toMatchObject({ trigger: "final", status: "VERIFIED", databaseId });
    const days = (Date.parse(kept?.expiresAt ?? "") - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(30);
    expect((await api(key, "POST", `/backups/${kept?.id}/link`)).status).toBe(200);
    const other = await running(key, on);
    const { job, attempt } = await askedToRestore(key, on, other, kept?.id);
    expect(job.args.backup.databaseName).toBe(last.job.args.database.databaseName);
    const later = { ...ctx(), now: () => new Date(Date.now() + keptAfterDeletionMs) };
    // Not while a job reads it.
    await reconcileBackups(later);
    expect(await list(key, databaseId)).toHaveLength(1);
    await finish(on, job, attempt, { version: "17.2", damage: null, volume: job.id });
    await reconcileBackups(later);
    expect(await list(key, databaseId)).toEqual([]);
    expect(await objectsOf(kept?.id ?? "")).toEqual([]);
  });

  it("goes though its last backup fails, and without one where it never ran or a queued one is overtaken", async () => {
    const key = await account();
    const on = await readyAgent();
    const databaseId = await running(key, on);
    await api(key, "DELETE", `/databases/${databaseId}`);
    const last = await take(on, "database.backup");
    await fail(on, last.job, last.attempt, "The database does not start: try again.");
    const removal = await take(on, "database.delete");
    await finish(on, removal.job, removal.attempt);
    expect(await list(key, databaseId)).toMatchObject([{ trigger: "final", status: "FAILED" }]);
    const never = await api<DatabaseCreated>(key, "POST", "/databases", { name: "never", type: "redis" });
    await pay(never.body.invoiceToken);
    const provision = await take(on, "database.provision");
    await fail(on, provision.job, provision.attempt);
    await api(key, "DELETE", `/databases/${never.body.databaseId}`);
    const only = await take(on, "database.delete");
    await finish(on, only.job, only.attempt);
    expect(await list(key, never.body.databaseId)).toEqual([]);
  });
});
