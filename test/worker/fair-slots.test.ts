import { beforeEach, describe, expect, it } from "vitest";
import type { Id } from "../../protocol/ids.ts";
import { contextOf } from "../../worker/compose.ts";
import { leaseJob } from "../../worker/jobs/lease.ts";
import { clearAway, hostFor, sql, tick } from "./hosts-service.ts";
import { measuredDatabase } from "./measured-database.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  finishNext,
  greetedAgent,
  pay,
  uniqueName,
  ready,
} from "./service.ts";
import { rows } from "./stripe-service.ts";

const minute = 60_000;
const hour = 60 * minute;
let greedy: string;
let honest: string;
let host: Awaited<ReturnType<typeof hostFor>>;

beforeEach(async () => {
  await clearAway();
  [greedy, honest] = [await account(), await account()];
  host = await hostFor(40);
  host.send(ready(0));
  return () => host.close();
});

/** Sites of this account that wait to be deployed, in the order in which they were paid. */
async function waitingSites(key: string, count: number): Promise<string[]> {
  const ids = [];
  for (let index = 0; index < count; index++) {
    const { siteId, invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    ids.push(siteId);
  }
  return ids;
}

/** The same of sites that are on the host already. */
async function waitingHere(key: string, count: number): Promise<string[]> {
  const ids = await waitingSites(key, count);
  await sql(`UPDATE sites SET host_id = ? WHERE id IN ('${ids.join("','")}')`, host.hostId);
  await sql(`UPDATE jobs SET host_id = ? WHERE site_id IN ('${ids.join("','")}')`, host.hostId);
  return ids;
}

const room = { jobs: true, lastJob: false, commands: true, lastCommand: false, short: true };
const ctx = (env = bindings) =>
  contextOf(env, { type: "host", hostId: host.hostId as Id<"host"> }, () => undefined);
/** What the host is given next: the site or database it is for. */
async function take(lastJob = false, lastCommand = false): Promise<string | null> {
  const offer = await leaseJob(ctx(), host.hostId as Id<"host">, { ...room, lastJob, lastCommand });
  if (!offer) return null;
  const [job] = await rows<{ lane: string; site: string | null; database: string | null }>(
    "SELECT lane, site_id AS site, database_id AS database FROM jobs WHERE id = ?",
    offer.job.id,
  );
  return job?.site ?? job?.database ?? null;
}
const end = (id: string | null) =>
  sql(
    "UPDATE jobs SET status = 'DONE', finished_at = ? WHERE status = 'LEASED' AND (site_id = ?2 OR database_id = ?2)",
    Date.now(),
    id,
  );

describe.each([
  ["that no host carries yet", waitingSites],
  ["of the host's own", waitingHere],
])("the two slots of a host, of sites %s", (_, waiting) => {
  it("are not both one account's while another waits", async () => {
    const many = await waiting(greedy, 6);
    const [one] = await waiting(honest, 1);
    expect(await take()).toBe(many[0]);
    expect(await take()).toBe(one);
  });

  it("go to whoever waits as soon as one of an account that holds both is free", async () => {
    const many = await waiting(greedy, 6);
    expect([await take(), await take()]).toEqual(many.slice(0, 2));
    const [one] = await waiting(honest, 1);
    await end(many[0] ?? null);
    expect(await take()).toBe(one);
  });

  it("are both an account's for whom nobody else waits, in the order in which it asked", async () => {
    const many = await waiting(greedy, 3);
    expect([await take(), await take(), await take()]).toEqual(many);
  });
});

describe.each([
  ["that no host carries yet", waitingSites],
  ["of the host's own", waitingHere],
])("the last slot of a host with several, of sites %s,", (_, waiting) => {
  beforeEach(async () => {
    await sql("UPDATE hosts SET slots = 3 WHERE id = ?", host.hostId);
  });

  it("stays free for another account, however much waits of one that has a slot", async () => {
    const many = await waiting(greedy, 4);
    expect([await take(), await take(), await take(true)]).toEqual([many[0], many[1], null]);
    const [one] = await waiting(honest, 1);
    expect(await take(true)).toBe(one);
  });

  it("is an account's whose only slot it is", async () => {
    const [one, next] = await waiting(greedy, 2);
    expect(await take(true)).toBe(one);
    expect(await take(true)).toBeNull();
    await end(one ?? null);
    expect(await take(true)).toBe(next);
  });
});

it("the last slot's rule concerns builds, not the backups and short jobs of an account that builds", async () => {
  await sql("UPDATE hosts SET slots = 2 WHERE id = ?", host.hostId);
  const [built, building] = await waitingHere(greedy, 2);
  expect(await take()).toBe(built);
  await end(built ?? null);
  await sql("UPDATE sites SET status = 'RUNNING', wanted = 'RUNNING' WHERE id = ?", built);
  expect(await take()).toBe(building);
  const { status } = await api(greedy, "PATCH", `/sites/${built}`, { action: "stop" });
  expect(status).toBe(202);
  expect(await take(true)).toBe(built);
});

it("the only slot of a host goes from account to account, however much one of them asked for before", async () => {
  const many = await waitingHere(greedy, 4);
  const few = await waitingHere(honest, 2);
  const third = await waitingHere(await account(), 1);
  const served = [];
  for (let count = 0; count < 7; count++) {
    const id = await take();
    served.push(id);
    await end(id);
  }
  expect(served).toEqual([many[0], few[0], third[0], many[1], few[1], many[2], many[3]]);
});

it("commands of one account do not keep the others' waiting", async () => {
  const [many, few] = [await waitingHere(greedy, 3), await waitingHere(honest, 1)];
  for (const id of [...many, ...few]) await end(await take().then(() => id));
  await sql("UPDATE sites SET status = 'RUNNING' WHERE host_id = ?", host.hostId);
  await sql(
    `UPDATE sites SET current_deployment_id = (SELECT id FROM deployments WHERE site_id = sites.id) WHERE host_id = ?`,
    host.hostId,
  );
  const run = async (key: string, id: string) =>
    expect((await api(key, "POST", `/sites/${id}/commands`, { command: "sleep 3600" })).status).toBe(202);
  for (const id of many) for (let count = 0; count < 4; count++) await run(greedy, id);
  expect([await take(), await take()].every((id) => many.includes(id ?? ""))).toBe(true);
  // The last free slot stays free for another account.
  expect(await take(false, true)).toBeNull();
  await run(honest, few[0] ?? "");
  expect(await take(false, true)).toBe(few[0]);
  for (const id of many) await end(id);
  expect(many).toContain(await take(false, true));
});

it("backups and verifications, of which a host makes one at a time, are made by turns", async () => {
  const database = async (key: string) => {
    const input = { name: uniqueName("data"), type: "redis" };
    const { body } = await api<{ databaseId: string; invoiceToken: string }>(
      key,
      "POST",
      "/databases",
      input,
    );
    await pay(body.invoiceToken);
    expect(await take()).toBe(body.databaseId);
    await end(body.databaseId);
    await sql("UPDATE databases SET status = 'RUNNING', version = '7' WHERE id = ?", body.databaseId);
    return body.databaseId;
  };
  const backUp = async (key: string, id: string) =>
    expect((await api(key, "POST", `/databases/${id}/backups`)).status).toBe(202);
  const [one, another] = [await database(honest), await database(honest)];
  const many = [await database(greedy), await database(greedy), await database(greedy)];
  for (const id of many) await backUp(greedy, id);
  expect([await take(), await take()]).toEqual([many[0], null]);
  await backUp(honest, one);
  await end(many[0] ?? null);
  expect([await take(), await take()]).toEqual([one, null]);
  await backUp(honest, another);
  const age = (minutes: number) =>
    sql("UPDATE jobs SET leased_at = leased_at - ? WHERE status = 'LEASED'", minutes * minute);
  await age(14);
  expect(await take()).toBeNull();
  // One that takes longer holds up its own account's only.
  await age(2);
  for (const id of many.slice(1)) {
    expect(await take()).toBe(id);
    expect(await take()).toBeNull();
    await end(id);
  }
  expect(await take()).toBeNull();
  await end(one);
  expect(await take()).toBe(another);
});

it("a webhook does not overtake what others wait for", async () => {
  const agent = await greetedAgent({ slots: 2 });
  await sql("UPDATE hosts SET status = 'REMOVED' WHERE id <> ?", agent.hostId);
  agent.send(ready(1));
  const [first] = await waitingSites(greedy, 1);
  await finishNext(agent, deployResult);
  agent.send(ready(0));
  const [other] = await waitingSites(honest, 1);
  await sql("UPDATE sites SET host_id = ? WHERE id = ?", agent.hostId, other);
  await sql("UPDATE jobs SET host_id = ? WHERE site_id = ?", agent.hostId, other);
  await api(greedy, "PATCH", `/sites/${first}`, { action: "deploy" });
  agent.send(ready(1));
  const next = (await agent.next("job")).job;
  expect(next).toMatchObject({ kind: "site.deploy", args: { run: { siteId: other } } });
  agent.close();
});

describe("what has waited for an hour", () => {
  const anHourLater = () =>
    sql(
      "UPDATE jobs SET deadline_at = ?, created_at = ? WHERE status = 'QUEUED'",
      Date.now() - 1,
      Date.now() - hour,
    );
  const statusOf = async (id: string | undefined) =>
    (await rows<{ status: string }>("SELECT status FROM jobs WHERE site_id = ?", id)).map(
      ({ status }) => status,
    );

  it.each([
    ["on its own host", waitingHere],
    ["for any host with room", waitingSites],
  ])("%s, while others' work holds the slots, goes on waiting", async (_, waiting) => {
    const many = await waitingHere(greedy, 2);
    expect([await take(), await take()]).toEqual(many);
    const [one] = await waiting(honest, 1);
    await anHourLater();
    await tick();
    expect(await statusOf(one)).toEqual(["QUEUED"]);
    for (const id of many) await end(id);
    await tick();
    expect(await statusOf(one)).toEqual(["FAILED"]);
  });

  it("behind the account's own work only, or for a day, has failed", async () => {
    const [first, second] = await waitingHere(honest, 2);
    expect(await take()).toBe(first);
    await anHourLater();
    await tick();
    expect(await statusOf(second)).toEqual(["FAILED"]);
    const [third] = await waitingHere(greedy, 1);
    await anHourLater();
    await sql("UPDATE jobs SET created_at = ? WHERE status = 'QUEUED'", Date.now() - 25 * hour);
    await tick();
    expect(await statusOf(third)).toEqual(["FAILED"]);
  });
});

it("a long queue of one account costs no more rows than a short one, once another's work is to be found", async () => {
  const [busy] = await waitingHere(greedy, 1);
  expect(await take()).toBe(busy);
  await sql(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
     INSERT INTO jobs (id, kind, status, host_id, lane, site_id, account_id, deadline_at, created_at)
     SELECT 'job_many' || i, 'site.deploy', 'QUEUED', s.host_id, s.id, s.id, s.account_id, ?, 1 FROM n, sites s WHERE s.id = ?`,
    Date.now() + hour,
    busy,
  );
  const [one] = await waitingHere(honest, 1);
  const { db, costs } = measuredDatabase(bindings.DB);
  const offer = await leaseJob(ctx({ ...bindings, DB: db }), host.hostId as Id<"host">, room);
  expect(offer?.job).toMatchObject({ args: { run: { siteId: one } } });
  expect(costs.reduce((sum, { rowsRead }) => sum + rowsRead, 0)).toBeLessThan(2000);
  await sql("DELETE FROM jobs WHERE id LIKE 'job_many%'");
});
