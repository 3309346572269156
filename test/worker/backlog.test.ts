import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it } from "vitest";
import type { Id } from "../../protocol/ids.ts";
import { contextOf } from "../../worker/compose.ts";
import { runTasks } from "../../worker/cron.ts";
import type { Env } from "../../worker/env.ts";
import worker from "../../worker/index.ts";
import type { HostLink } from "../../worker/objects/host-link.ts";
import { leaseJob } from "../../worker/jobs/lease.ts";
import { getAccount } from "../../worker/services/accounts/get.ts";
import { listJobs } from "../../worker/services/jobs/list.ts";
import { getOverview } from "../../worker/services/system/overview.ts";
import { hostFor, sql, tick } from "./hosts-service.ts";
import { measuredDatabase } from "./measured-database.ts";
import { account, bindings, createSite, pay, readyAgent, runningSite, ready } from "./service.ts";
import { rows } from "./stripe-service.ts";

const minute = 60_000;
const starter = "pack_001k0000000000000000000001";
const pro = "pack_001k0000000000000000000003";
const upTo = (count: number) =>
  `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;

/** Sites as many tenants have them, made by one statement. */
const manySites = (
  prefix: string,
  count: number,
  { hostId = null as string | null, status = "RUNNING", packId = starter } = {},
) =>
  sql(
    `${upTo(count)} INSERT INTO sites (id, account_id, name, status, serving, deploy_type, port, pack_id, billing_term, slug,
       host_id, current_deployment_id, webhook_hash, paid_until, created_at, updated_at)
     SELECT ?1 || i, 'acc_' || (i % 50), ?1 || i, ?2, 1, 'github', 3000, ?3, 1, ?1 || i, ?4, 'dep_' || i, ?1 || i, ?5, 1, 1 FROM n`,
    prefix,
    status,
    packId,
    hostId,
    Date.now() + 20 * 86_400_000,
  );

/** What waits for these sites: so many jobs each, asked for a while ago. */
const manyJobs = (prefix: string, each: number, kind: string, { createdAt = 1 } = {}) =>
  sql(
    `${upTo(each)} INSERT INTO jobs (id, kind, status, host_id, lane, site_id, account_id, deadline_at, created_at)
     SELECT s.id || '_' || i, ?2, 'QUEUED', s.host_id, s.id, s.id, s.account_id, ?3, ?4 FROM n, sites s WHERE s.id LIKE ?1 || '%'`,
    prefix,
    kind,
    Date.now() + minute,
    createdAt,
  );

const { db, costs } = measuredDatabase(bindings.DB);
const measured = { ...bindings, DB: db };
const work: Promise<unknown>[] = [];
const later = (promise: Promise<unknown>) => void work.push(promise);

/** The rows read by what `act` does, and by what it leaves to be done. */
async function rowsRead(act: () => Promise<unknown> | void, of = /./): Promise<number> {
  costs.length = 0;
  await act();
  while (work.length > 0) await Promise.all(work.splice(0));
  return costs.filter((cost) => of.test(cost.sql)).reduce((sum, cost) => sum + cost.rowsRead, 0);
}
const lease = (id: string) => {
  const hostId = id as Id<"host">;
  return leaseJob(contextOf(measured, { type: "host", hostId }, later), hostId);
};
const minuteOf = () =>
  worker.scheduled({} as ScheduledController, measured, {
    waitUntil: later,
    passThroughOnException: () => undefined,
  } as unknown as ExecutionContext);

let host: Awaited<ReturnType<typeof hostFor>>;
let away: string;

beforeEach(async () => {
  await sql("UPDATE hosts SET status = 'REMOVED'");
  await sql("UPDATE jobs SET status = 'CANCELLED' WHERE status = 'QUEUED'");
  host = await hostFor(3);
  const gone = await hostFor(10_000);
  gone.close();
  away = gone.hostId;
  return () => host.close();
});

describe("thousands of jobs that wait for a host that is away", () => {
  beforeEach(async () => {
    await manySites("away", 200, { hostId: away });
    await manyJobs("away", 10, "site.restart");
    return async () => {
      await sql("DELETE FROM jobs WHERE site_id LIKE 'away%'");
      await sql("DELETE FROM sites WHERE id LIKE 'away%'");
    };
  });

  it("are not read through by another host that asks for work", async () => {
    host.send(ready(0));
    const key = await account();
    const created = await createSite(key);
    await sql("UPDATE sites SET host_id = ? WHERE id = ?", host.hostId, created.siteId);
    await pay(created.invoiceToken);
    expect(await rowsRead(() => lease(host.hostId))).toBeLessThan(200);
    expect(await rows("SELECT status FROM jobs WHERE site_id = ?", created.siteId)).toEqual([
      { status: "LEASED" },
    ]);
  });

  it("are not read through by that host, job by job, once it is back", async () => {
    for (let taken = 0; taken < 3; taken++)
      expect(await rowsRead(() => lease(away))).toBeLessThan(200 + taken * 50);
  });

  it("are not read through by each minute's timer", async () => {
    expect(await rowsRead(minuteOf, /"jobs"/)).toBeLessThan(500);
  });

  it("are all over in the minute in which their time is", async () => {
    await sql("UPDATE jobs SET deadline_at = 1 WHERE site_id LIKE 'away%'");
    await tick();
    expect(await rows("SELECT DISTINCT status FROM jobs WHERE site_id LIKE 'away%'")).toEqual([
      { status: "FAILED" },
    ]);
  });
});

describe("hundreds of new sites that no host has room for", () => {
  it.each([
    ["a moment ago", Date.now() + minute],
    ["a while ago", 1],
  ])("asked for %s, cost a host that asks for work a few rows each", async (_, createdAt) => {
    await sql("UPDATE hosts SET offline_since = NULL, memory_mb = 26000 WHERE id = ?", away);
    await manySites("here", 100, { hostId: host.hostId });
    await manySites("there", 100, { hostId: away });
    await manySites("new", 300, { status: "DEPLOYING", packId: pro });
    await manyJobs("new", 1, "site.deploy", { createdAt });
    expect(await rowsRead(() => lease(host.hostId))).toBeLessThan(300 * 30 + 200 * 10);
    for (const prefix of ["here", "there", "new"]) {
      await sql("DELETE FROM jobs WHERE site_id LIKE ? || '%'", prefix);
      await sql("DELETE FROM sites WHERE id LIKE ? || '%'", prefix);
    }
  });
});

it("what a host's link remembers of leases that nobody reported is gone after its next hello", async () => {
  const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(host.hostId));
  const remembered = () =>
    runInDurableObject(link, (_, { storage }) => [...storage.kv.list({ prefix: "log:" })].length);
  await runInDurableObject(link, (_, { storage }) => {
    for (let index = 0; index < 500; index++) storage.kv.put(`log:job_${index}:1`, "dep_1");
  });
  expect(await remembered()).toBe(500);
  (await readyAgent(0, host.token)).close();
  expect(await remembered()).toBe(0);
});

it("a storm of hints asks for work twice: what goes on, and once for all that came meanwhile", async () => {
  const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(host.hostId));
  await link.wake();
  const leases = await runInDurableObject(link, async (instance: HostLink) => {
    const held = instance as unknown as { env: Env };
    const counted = measuredDatabase(held.env.DB);
    held.env = { ...held.env, DB: counted.db };
    await Promise.all(Array.from({ length: 50 }, () => instance.wake()));
    return counted.costs.filter((cost) => cost.sql.includes('"attempt" = attempt + 1')).length;
  });
  expect(leases).toBeGreaterThan(0);
  expect(leases).toBeLessThanOrEqual(2);
});

it("sites whose term goes on for weeks are not read through by each minute's timer", async () => {
  await runningSite(await account(), await hostFor(100));
  await manySites("paid", 1000, { hostId: away });
  expect(await rowsRead(minuteOf, /paid_until <= \?/)).toBeLessThan(500);
  await sql("DELETE FROM sites WHERE id LIKE 'paid%'");
});

it("the jobs that are kept with their sites are read through once an hour, not each minute", async () => {
  await manySites("old", 200, { hostId: away });
  await manyJobs("old", 10, "site.deploy");
  await sql("UPDATE jobs SET status = 'DONE', deadline_at = 1 WHERE site_id LIKE 'old%'");
  const ctx = contextOf(measured, { type: "system" }, later);
  const readAt = (minuteOfHour: number) => {
    const now = new Date();
    now.setUTCMinutes(minuteOfHour);
    return rowsRead(() => void work.push(...runTasks({ ...ctx, now: () => now })), /delete from "jobs"/);
  };
  expect(await readAt(49)).toBe(0);
  expect(await readAt(50)).toBeGreaterThan(2000);
  await sql("DELETE FROM jobs WHERE site_id LIKE 'old%'");
  await sql("DELETE FROM sites WHERE id LIKE 'old%'");
});

it("what ended is listed without reading all jobs that ever did", async () => {
  await manySites("done", 200, { hostId: away });
  await manyJobs("done", 10, "site.restart");
  await sql("UPDATE jobs SET status = 'DONE' WHERE site_id LIKE 'done%'");
  const ctx = contextOf(measured, { type: "system" }, later);
  expect(await rowsRead(() => listJobs(ctx, { limit: 20, state: "ended" }))).toBeLessThan(500);
  await sql("DELETE FROM jobs WHERE site_id LIKE 'done%'");
  await sql("DELETE FROM sites WHERE id LIKE 'done%'");
});

describe("hundreds of databases with backups", () => {
  beforeEach(async () => {
    await sql(
      `${upTo(300)} INSERT INTO databases (id, account_id, name, type, status, image, pack_id, billing_term, host_id,
         database_name, admin_password_sealed, password_sealed, paid_until, created_at, updated_at)
       SELECT 'backed' || i, 'acc_' || i, 'backed', 'redis', 'RUNNING', 'redis', ?1, 1, ?2, 'd', '', '', ?3, 1, 1 FROM n`,
      starter,
      away,
      Date.now() + 20 * 86_400_000,
    );
    return async () => {
      await sql("DELETE FROM backups WHERE database_id LIKE 'backed%'");
      await sql("DELETE FROM databases WHERE id LIKE 'backed%'");
    };
  });
  const backupsOfEach = (status: string) =>
    sql(
      `${upTo(5)} INSERT INTO backups (id, database_id, account_id, status, "trigger", name, database_name, type, image, pack_id,
         created_at, finished_at)
       SELECT d.id || '_' || i, d.id, d.account_id, ?1, 'schedule', 'd', 'd', 'redis', 'redis', d.pack_id, ?2, ?2
       FROM n, databases d WHERE d.id LIKE 'backed%'`,
      status,
      Date.now() - 60 * minute,
    );

  it("are shown to operators without reading all backups for each", async () => {
    await backupsOfEach("VERIFIED");
    const ctx = contextOf(measured, { type: "system" }, later);
    expect(await rowsRead(() => getOverview(ctx))).toBeLessThan(300 * 5 * 10);
  });

  it("that fail are not looked at each minute for as long as the failures are shown", async () => {
    await backupsOfEach("FAILED");
    expect(await rowsRead(minuteOf, /backups/)).toBeLessThan(300 * 5 * 10);
    expect(costs.filter(({ sql: text }) => text.includes('"shrunk_from"')).length).toBeLessThan(10);
  });
});

describe("hundreds of renewals that are not paid yet", () => {
  beforeEach(async () => {
    await manySites("owing", 600, { hostId: away });
    await sql("UPDATE sites SET paid_until = ? WHERE id LIKE 'owing%'", Date.now() + 86_400_000);
    await sql(
      `INSERT INTO invoices (id, token, account_id, kind, status, amount_cents, currency, lines, resource_id, created_at, due_at)
       SELECT 'invoice_' || id, id, account_id, 'renewal', 'unpaid', 1, 'usd', '[]', id, 1, paid_until FROM sites WHERE id LIKE 'owing%'`,
    );
    return async () => {
      await sql("DELETE FROM invoices WHERE resource_id LIKE 'owing%'");
      await sql("DELETE FROM sites WHERE id LIKE 'owing%'");
    };
  });

  it("are not read through for each of their sites by each minute's timer", async () => {
    expect(await rowsRead(minuteOf, /kind = 'renewal'/)).toBeLessThan(600 * 10);
  });

  it("are not read through for a job that a host asks for", async () => {
    expect(await rowsRead(() => lease(host.hostId), /invoices/)).toBeLessThan(100);
  });

  it("are not read through for each page that an owner opens", async () => {
    await account();
    const [owner] = await rows<{ id: Id<"account"> }>("SELECT id FROM accounts ORDER BY id DESC LIMIT 1");
    if (!owner) throw new Error("No account");
    const actor = {
      type: "key",
      accountId: owner.id,
      role: "user",
      plan: "free",
      keyId: "key_none",
    } as const;
    expect(await rowsRead(() => getAccount(contextOf(measured, actor, later)))).toBeLessThan(100);
  });
});
