import { describe, expect, it, vi } from "vitest";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import type { Job } from "../../protocol/api/console.ts";
import type { Deployment } from "../../protocol/api/deployments.ts";
import type { Database, DatabaseCreated } from "../../protocol/api/databases.ts";
import type { Site } from "../../protocol/api/sites.ts";
import { contextOf } from "../../worker/compose.ts";
import { databases, jobs } from "../../worker/db/schema.ts";
import { reapJobs } from "../../worker/jobs/reap.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  fail,
  finish,
  hostIn,
  operator,
  runningSite,
  pay,
  ready,
  readyAgent,
  uniqueName,
  type Agent,
  runningDatabase,
} from "./service.ts";

const ctx = () => contextOf(bindings, { type: "system" }, () => undefined);

async function createDatabase(key: string, overrides: object = {}): Promise<DatabaseCreated> {
  const input = { name: uniqueName("data"), type: "postgresql", billingTerm: 1, ...overrides };
  const { status, body } = await api<DatabaseCreated>(key, "POST", "/databases", input);
  expect(status).toBe(201);
  return body;
}

const read = async (key: string, id: string) => (await api<Database>(key, "GET", `/databases/${id}`)).body;
const act = (key: string, id: string, action: string) =>
  api<{ status: string; error?: string; reason?: string; invoiceToken?: string }>(
    key,
    "PATCH",
    `/databases/${id}`,
    { action },
  );

/** Takes the next job, which must be of this kind. */
async function take(on: Agent, kind: string) {
  const { job, attempt } = await on.next("job");
  expect(job.kind).toBe(kind);
  const spec = "database" in job.args ? job.args.database : undefined;
  return { job, attempt, spec: spec as DatabaseSpec };
}

describe("a database", () => {
  it("is created PENDING with an unpaid invoice, and nothing is provisioned before it is paid", async () => {
    const key = await account();
    const on = await readyAgent();
    const { databaseId, invoiceToken } = await createDatabase(key, { name: "shop-data" });
    expect(await read(key, databaseId)).toMatchObject({
      name: "shop-data",
      type: "postgresql",
      status: "PENDING",
      version: null,
      host: "shop-data.internal",
      port: 5432,
      links: [],
      paidUntil: null,
    });
    const refused = await act(key, databaseId, "start");
    expect([refused.status, refused.body.invoiceToken]).toEqual([402, invoiceToken]);
    expect((await api(key, "GET", `/databases/${databaseId}/credentials`)).status).toBe(402);
    await pay(invoiceToken);
    expect(await read(key, databaseId)).toMatchObject({ status: "PROVISIONING" });
    const { job, attempt, spec } = await take(on, "database.provision");
    expect(spec).toMatchObject({ type: "postgresql", image: "postgres:17", hostname: "shop-data.internal" });
    await finish(on, job, attempt, { version: "17.2" });
    expect(await read(key, databaseId)).toMatchObject({ status: "RUNNING", version: "17.2", error: null });
    // Paying again, or the reaper, makes no second job.
    await pay(invoiceToken);
    await reapJobs(ctx());
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
  });

  it.each([
    ["mysql", "mariadb:11.4", /^mysql:\/\/.+@data\.internal:3306\/data_/],
    ["redis", "redis:7.2", /^redis:\/\/.+@data\.internal:6379\/0$/],
    ["postgresql", "postgres:17", /^postgresql:\/\/.+@data\.internal:5432\/data_/],
  ])("of type %s runs %s and reveals its address on request only", async (type, image, address) => {
    const key = await account();
    const on = await readyAgent();
    const { databaseId, spec } = await runningDatabase(key, on, { name: "data", type });
    expect(spec.image).toBe(image);
    const { body, headers } = await api<{ username: string; password: string; connectionString: string }>(
      key,
      "GET",
      `/databases/${databaseId}/credentials`,
    );
    expect(headers.get("Cache-Control")).toBe("no-store");
    expect(body.connectionString).toMatch(address);
    expect(body.connectionString).toContain(body.password);
    expect(spec.logins).toEqual([{ username: body.username, password: body.password }]);
    expect(spec.adminPassword).not.toBe(body.password);
    for (const path of [`/databases/${databaseId}`, "/databases"]) {
      const shown = JSON.stringify((await api(key, "GET", path)).body);
      expect(shown).toContain(databaseId);
      expect(shown).not.toContain(body.password);
    }
    const stored = JSON.stringify(await ctx().db.select().from(databases));
    expect(stored).not.toContain(body.password);
    expect(stored).not.toContain(spec.adminPassword);
  });

  it("is refused with a wrong type, a wrong pack, a site's pack or a name that is taken, and leaves no invoice", async () => {
    const key = await account();
    const { databaseId } = await createDatabase(key, { name: "taken" });
    const wrong = [
      [{ name: "other", type: "oracle" }, 400],
      [{ name: "other", type: "redis", packId: "pack_unknown" }, 400],
      [{ name: "other", type: "redis", packId: "pack_001k0000000000000000000001" }, 400],
      [{ name: "Not A Name", type: "redis" }, 400],
      [{ name: "taken", type: "redis" }, 409],
    ] as const;
    for (const [body, status] of wrong)
      expect([body, (await api(key, "POST", "/databases", body)).status]).toEqual([body, status]);
    const both = await Promise.all(
      [1, 2].map(() => api(key, "POST", "/databases", { name: "race", type: "redis" })),
    );
    expect(both.map(({ status }) => status)).toEqual(expect.arrayContaining([201, 409]));
    const { body } = await api<{ data: { resource: { id: string } }[] }>(key, "GET", "/invoices");
    expect(body.data).toHaveLength(2);
    // Names are one's own: another account has the same.
    await createDatabase(await account(), { name: "taken" });
    expect((await api(await account(), "GET", `/databases/${databaseId}`)).status).toBe(403);
  });

  it("stops, starts and restarts; the status follows when the host reports the effect", async () => {
    const key = await account();
    const on = await readyAgent();
    const { databaseId } = await runningDatabase(key, on);
    expect((await act(key, databaseId, "start")).status).toBe(409);
    expect((await act(key, databaseId, "stop")).body).toMatchObject({ status: "RUNNING" });
    expect((await act(key, databaseId, "stop")).status).toBe(409);
    const stop = await take(on, "database.stop");
    await finish(on, stop.job, stop.attempt);
    expect(await read(key, databaseId)).toMatchObject({ status: "STOPPED" });
    expect((await act(key, databaseId, "restart")).status).toBe(409);
    await act(key, databaseId, "start");
    const start = await take(on, "database.start");
    await finish(on, start.job, start.attempt, { version: "17.3" });
    expect(await read(key, databaseId)).toMatchObject({ status: "RUNNING", version: "17.3" });
    await act(key, databaseId, "restart");
    const restart = await take(on, "database.restart");
    await fail(on, restart.job, restart.attempt, "It did not answer: try again.");
    expect(await read(key, databaseId)).toMatchObject({
      status: "FAILED",
      error: "It did not answer: try again.",
    });
    // It has data: a start is no provisioning.
    await act(key, databaseId, "start");
    const again = await take(on, "database.start");
    await finish(on, again.job, again.attempt, { version: "17.3" });
    expect(await read(key, databaseId)).toMatchObject({ status: "RUNNING", error: null });
  });

  it("that could not be provisioned says why, and is provisioned anew when it is started", async () => {
    const key = await account();
    const on = await readyAgent();
    const { databaseId, invoiceToken } = await createDatabase(key);
    await pay(invoiceToken);
    const first = await take(on, "database.provision");
    await fail(on, first.job, first.attempt, "This host has too little disk: try again later.");
    expect(await read(key, databaseId)).toMatchObject({
      status: "FAILED",
      error: "This host has too little disk: try again later.",
      version: null,
    });
    expect((await act(key, databaseId, "start")).body).toMatchObject({ status: "PROVISIONING" });
    const second = await take(on, "database.provision");
    await finish(on, second.job, second.attempt, { version: "17.2" });
    expect(await read(key, databaseId)).toMatchObject({ status: "RUNNING", error: null });
  });

  it("is deleted: unpaid at once, otherwise once its host has removed it; its name and invoice are free", async () => {
    const key = await account();
    const on = await readyAgent();
    const unpaid = await createDatabase(key, { name: "unpaid" });
    expect((await api(key, "DELETE", `/databases/${unpaid.databaseId}`)).status).toBe(202);
    expect((await api(key, "GET", `/databases/${unpaid.databaseId}`)).status).toBe(404);
    expect((await pay(unpaid.invoiceToken)).status).toBe(409);
    const { databaseId } = await runningDatabase(key, on, { name: "unpaid" });
    expect((await api(key, "DELETE", `/databases/${databaseId}`)).body).toEqual({
      id: databaseId,
      status: "DELETING",
    });
    expect((await act(key, databaseId, "start")).status).toBe(409);
    const last = await take(on, "database.backup");
    await fail(on, last.job, last.attempt);
    const removal = await take(on, "database.delete");
    await fail(on, removal.job, removal.attempt);
    // The reaper asks again.
    await reapJobs(ctx());
    const again = await take(on, "database.delete");
    await finish(on, again.job, again.attempt);
    expect((await api(key, "GET", `/databases/${databaseId}`)).status).toBe(404);
  });

  it("waits for a host with room, takes its memory into account, and says after an hour what was missing", async () => {
    const key = await account();
    await hostIn("nowhere");
    const { databaseId, invoiceToken } = await createDatabase(key, { region: "nowhere" });
    await pay(invoiceToken);
    const waiting = (await ctx().db.select().from(jobs)).filter((job) => job.databaseId === databaseId);
    expect(waiting).toMatchObject([{ kind: "database.provision", status: "QUEUED", hostId: null }]);
    await bindings.DB.prepare("UPDATE jobs SET deadline_at = 0 WHERE id = ?").bind(waiting[0]?.id).run();
    await reapJobs(ctx());
    expect(await read(key, databaseId)).toMatchObject({
      status: "FAILED",
      error: expect.stringMatching(/in region nowhere.*start it again/),
      region: "nowhere",
    });
  });
});

describe("a host", () => {
  it("that carries a database is not removed; removed by force when it is dead, the database says that its data is lost", async () => {
    const key = await account();
    const on = await readyAgent();
    const { databaseId } = await runningDatabase(key, on);
    const operatorKey = await operator();
    await api(operatorKey, "PATCH", `/hosts/${on.hostId}`, { action: "drain" });
    const refused = await api<{ reason: string }>(operatorKey, "DELETE", `/hosts/${on.hostId}`);
    expect([refused.status, refused.body.reason]).toEqual([409, expect.stringContaining("databases")]);
    await api(key, "POST", `/databases/${databaseId}/rotate`);
    on.close();
    const warned = await api<{ reason: string }>(operatorKey, "DELETE", `/hosts/${on.hostId}?force=1`);
    expect([warned.status, warned.body.reason]).toEqual([409, expect.stringContaining("1 database ")]);
    await vi.waitUntil(
      async () =>
        (await api(operatorKey, "DELETE", `/hosts/${on.hostId}?force=1&loseVolumes=1`)).status === 200,
      10_000,
    );
    expect(await read(key, databaseId)).toMatchObject({
      status: "FAILED",
      error: expect.stringContaining("together with the data"),
      version: null,
      hostId: null,
      rotating: false,
    });
    const other = await readyAgent();
    expect((await act(key, databaseId, "start")).body).toMatchObject({ status: "PROVISIONING" });
    await take(other, "database.provision");
  });

  it("is given no more databases than its memory holds", async () => {
    const key = await account();
    const host = await hostIn("small");
    const first = await createDatabase(key, { region: "small", packId: "pack_001k0000000000000000000013" });
    const second = await createDatabase(key, { region: "small", packId: "pack_001k0000000000000000000013" });
    const facts = { cpuCount: 2, memoryMb: 6000 };
    const on = await readyAgent(10, host, facts);
    // Its owner began to pay while there was room.
    const begins = { method: "POST", headers: { Accept: "text/html" }, redirect: "manual" } as const;
    expect((await call(`/invoice/${second.invoiceToken}/pay`, begins)).status).toBe(303);
    await pay(first.invoiceToken);
    const { job, attempt } = await take(on, "database.provision");
    await pay(second.invoiceToken);
    await finish(on, job, attempt, { version: "17.2" });
    await reapJobs(ctx());
    expect(await read(key, second.databaseId)).toMatchObject({ status: "PROVISIONING", hostId: null });
    await api(key, "DELETE", `/databases/${first.databaseId}`);
    const last = await take(on, "database.backup");
    await fail(on, last.job, last.attempt, "Not in this test.");
    const removal = await take(on, "database.delete");
    await finish(on, removal.job, removal.attempt);
    await take(on, "database.provision");
  });
});

describe("a link", () => {
  it("gives the site the address as a secret of its own, for run time only", async () => {
    const key = await account();
    const on = await readyAgent();
    const { siteId } = await runningSite(key, on);
    const { databaseId, spec } = await runningDatabase(key, on);
    const linked = await api(key, "POST", `/databases/${databaseId}/links`, { siteId });
    expect([linked.status, linked.body]).toEqual([
      201,
      { databaseId, siteId, variable: "DATABASE_URL", restartRequired: true },
    ]);
    const link = { siteId, variable: "DATABASE_URL" };
    expect((await read(key, databaseId)).links).toEqual([{ ...link, inService: false }]);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    const { job, attempt } = await take(on, "site.restart");
    const [login] = spec.logins;
    expect((job.args as { run: { env: object[] } }).run.env).toContainEqual({
      key: "DATABASE_URL",
      value: expect.stringContaining(`${login?.username}:${login?.password}@`),
      scope: "runtime",
      secret: true,
    });
    await finish(on, job, attempt);
    expect((await read(key, databaseId)).links).toEqual([{ ...link, inService: true }]);
    const setToo = await api(key, "PATCH", `/sites/${siteId}`, {
      envVariables: [{ key: "DATABASE_URL", value: "postgres://elsewhere" }],
    });
    expect([setToo.status, setToo.body["reason"]]).toEqual([409, expect.stringContaining("Remove the link")]);
    const removed = await api(key, "DELETE", `/databases/${databaseId}/links?siteId=${siteId}`);
    expect(removed.body).toEqual({ id: databaseId, unlinked: [siteId] });
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    const after = await take(on, "site.restart");
    expect(JSON.stringify(after.job)).not.toContain("DATABASE_URL");
    await finish(on, after.job, after.attempt);
  });

  it("is refused for another account's site, a variable that is taken, and a site on another host", async () => {
    const [key, other] = [await account(), await account()];
    const on = await readyAgent();
    const { siteId } = await runningSite(key, on);
    const { databaseId } = await runningDatabase(key, on);
    const link = (body: object) =>
      api<{ reason: string }>(key, "POST", `/databases/${databaseId}/links`, body);
    const { siteId: foreign } = await createSite(other);
    expect((await link({ siteId: foreign })).status).toBe(403);
    expect((await link({ siteId: "unknown" })).status).toBe(404);
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "DATABASE_URL", value: "mine" }] });
    expect((await link({ siteId })).status).toBe(409);
    expect((await link({ siteId, variable: "MAIN_URL" })).status).toBe(201);
    expect((await link({ siteId, variable: "OTHER_URL" })).status).toBe(409);
    await bindings.DB.prepare("UPDATE databases SET host_id = 'host_elsewhere' WHERE id = ?")
      .bind(databaseId)
      .run();
    const { siteId: second } = await runningSite(key, on);
    const apart = await link({ siteId: second });
    expect([apart.status, apart.body.reason]).toEqual([409, expect.stringContaining("different hosts")]);
  });

  it("goes with its site", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const { databaseId } = await createDatabase(key);
    await api(key, "POST", `/databases/${databaseId}/links`, { siteId });
    expect((await read(key, databaseId)).links).toHaveLength(1);
    await api(key, "DELETE", `/sites/${siteId}`);
    expect((await read(key, databaseId)).links).toEqual([]);
  });

  it("made before anything is placed puts the database on its site's host", async () => {
    const key = await account();
    const near = await readyAgent();
    const { siteId } = await runningSite(key, near);
    const roomier = await readyAgent();
    const { databaseId, invoiceToken } = await createDatabase(key);
    await api(key, "POST", `/databases/${databaseId}/links`, { siteId });
    await pay(invoiceToken);
    await take(near, "database.provision");
    expect(roomier.waiting().filter(({ type }) => type === "job")).toEqual([]);
    const site = (await api<Site>(key, "GET", `/sites/${siteId}`)).body;
    expect((await read(key, databaseId)).hostId).toBe(site.hostId);
  });
});

describe("a deployment of a site whose database is being created", () => {
  const run = (statement: string, ...values: string[]) =>
    bindings.DB.prepare(statement)
      .bind(...values)
      .run();
  const tenMinutesAgo = (siteId: string) =>
    run("UPDATE jobs SET created_at = created_at - 600000 WHERE site_id = ?", siteId);
  async function bothPaid() {
    const key = await account();
    const on = await readyAgent();
    const [{ siteId, invoiceToken }, database] = [await createSite(key), await createDatabase(key)];
    await api(key, "POST", `/databases/${database.databaseId}/links`, { siteId });
    await pay(database.invoiceToken);
    await pay(invoiceToken);
    const provision = await take(on, "database.provision");
    // Both have been offered what they may take by now.
    on.send(ready(10));
    const operatorKey = await operator();
    const why = async () => {
      const { body } = await api<{ data: Deployment[] }>(key, "GET", `/sites/${siteId}/deployments`);
      const listed = await api<{ data: Job[] }>(operatorKey, "GET", "/jobs?limit=100");
      const job = listed.body.data.find((one) => one.siteId === siteId);
      return [body.data[0]?.waitsFor, job?.waitsFor?.code];
    };
    await vi.waitFor(async () =>
      expect(await why()).toEqual([expect.stringContaining("database that the site uses"), "database"]),
    );
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
    return { on, siteId, provision, why };
  }

  it("waits for it", async () => {
    const { on, provision } = await bothPaid();
    await finish(on, provision.job, provision.attempt, { version: "17.2" });
    await take(on, "site.deploy");
  });

  it("does not wait for one that failed", async () => {
    const { on, provision } = await bothPaid();
    await fail(on, provision.job, provision.attempt);
    await take(on, "site.deploy");
  });

  it("waits for ten minutes at most", async () => {
    const { on, siteId } = await bothPaid();
    await tenMinutesAgo(siteId);
    on.send(ready(10));
    await take(on, "site.deploy");
  });

  it("names a missing or silent host before the database, after ten minutes no database, and then a host that takes no jobs", async () => {
    const { on, siteId, why } = await bothPaid();
    await run("UPDATE sites SET region = 'elsewhere' WHERE id = ?", siteId);
    expect(await why()).toEqual([expect.stringContaining("No host has taken it yet"), "no_host"]);
    await run("UPDATE sites SET region = NULL WHERE id = ?", siteId);
    await run("UPDATE hosts SET offline_since = 1 WHERE id = ?", on.hostId);
    await run("UPDATE jobs SET host_id = ? WHERE site_id = ?", on.hostId, siteId);
    expect(await why()).toEqual([expect.stringContaining("host is not connected"), "host"]);
    await run("UPDATE hosts SET offline_since = NULL WHERE id = ?", on.hostId);
    expect(await why()).toEqual([expect.stringContaining("database that the site uses"), "database"]);
    await tenMinutesAgo(siteId);
    expect(await why()).toEqual([expect.stringContaining("Docker engine does not answer"), "closed"]);
    await run("UPDATE hosts SET slots = 1 WHERE id = ?", on.hostId);
    expect(await why()).toEqual([expect.stringContaining("other work"), "slot"]);
  });
});

describe("a rotation", () => {
  it("keeps the old login until every linked site runs with the new one, then takes it away", async () => {
    const key = await account();
    const on = await readyAgent();
    const { siteId } = await runningSite(key, on);
    const { databaseId, spec } = await runningDatabase(key, on);
    const [old] = spec.logins;
    await api(key, "POST", `/databases/${databaseId}/links`, { siteId });
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    const first = await take(on, "site.restart");
    await finish(on, first.job, first.attempt);

    expect((await api(key, "POST", `/databases/${databaseId}/rotate`)).status).toBe(202);
    expect((await api(key, "POST", `/databases/${databaseId}/rotate`)).status).toBe(409);
    const shown = async () =>
      (await api<{ username: string; password: string }>(key, "GET", `/databases/${databaseId}/credentials`))
        .body;
    // The server does not know the next one yet.
    expect(await shown()).toMatchObject({ ...old });
    const both = await take(on, "database.rotate");
    expect(both.spec.logins).toEqual([old, expect.anything()]);
    const next = both.spec.logins[1];
    await finish(on, both.job, both.attempt);
    expect(await shown()).toMatchObject({ ...next });
    expect(await read(key, databaseId)).toMatchObject({ rotating: true, username: next?.username });

    const restart = await take(on, "site.restart");
    expect(JSON.stringify(restart.job)).toContain(next?.password);
    expect(JSON.stringify(restart.job)).not.toContain(old?.password);
    // Until the site runs with it, a start of the database lets both in.
    await finish(on, restart.job, restart.attempt);
    const last = await take(on, "database.rotate");
    expect(last.spec.logins).toEqual([next]);
    await finish(on, last.job, last.attempt);
    expect(await read(key, databaseId)).toMatchObject({ rotating: false, status: "RUNNING" });
  });

  it("that fails leaves the password as it was, and can be asked for again", async () => {
    const key = await account();
    const on = await readyAgent();
    const { databaseId, spec } = await runningDatabase(key, on);
    await api(key, "POST", `/databases/${databaseId}/rotate`);
    const job = await take(on, "database.rotate");
    await fail(on, job.job, job.attempt, "It did not answer: try again.");
    expect(await read(key, databaseId)).toMatchObject({
      status: "RUNNING",
      rotating: false,
      error: "It did not answer: try again.",
      username: spec.logins[0]?.username,
    });
    expect((await api(key, "POST", `/databases/${databaseId}/rotate`)).status).toBe(202);
    await take(on, "database.rotate");
  });
});

describe("a database that is larger than its pack", () => {
  it("says what it holds and what to do, by what its own host measured, until it is mended or has a larger pack", async () => {
    const key = await account();
    const on = await readyAgent();
    const { databaseId, spec } = await runningDatabase(key, on, { type: "mysql" });
    const { diskGb = 0 } = spec.limits;
    expect(diskGb).toBeGreaterThan(0);
    const notice = async () => (await read(key, databaseId)).notice;
    const measured = (usedMb: number, by: Agent = on) =>
      by.send({ type: "diskUse", databases: [{ databaseId, usedMb }] });
    expect(await notice()).toBeNull();
    measured(diskGb * 1024);
    measured(diskGb * 1024 + 0.5);
    await vi.waitUntil(notice, 10_000);
    const holds = `The database uses ${diskGb}.0 GB, and its pack has ${diskGb} GB`;
    expect(await notice()).toMatch(new RegExp(`^${holds}: choose a larger pack, or .*OPTIMIZE TABLE`));
    const other = await readyAgent();
    measured(1, other);
    // It is still backed up, and started again.
    expect((await api(key, "POST", `/databases/${databaseId}/backups`)).status).toBe(202);
    const { job, attempt } = await take(on, "database.backup");
    await finish(on, job, attempt);
    await act(key, databaseId, "restart");
    const restart = await take(on, "database.restart");
    await finish(on, restart.job, restart.attempt, { version: "17.2" });
    expect(await notice()).not.toBeNull();
    measured(1);
    await vi.waitUntil(async () => (await notice()) === null, 10_000);
    other.close();
  });
});

describe("a database's crash loop", () => {
  const error = "The database's server exited 5 times within a minute. Its last lines: no data";
  const at = "2026-01-01T00:00:00.000Z";
  const report = (on: Agent, databaseId: string, text = error) =>
    on.send({ type: "databaseCrashed", databaseId, at, error: text });
  async function crash(on: Agent, databaseId: string, text = error): Promise<void> {
    report(on, databaseId, text);
    expect(await on.next("databaseCrashAck")).toMatchObject({ databaseId, at });
  }

  it.each(["start", "restart"])(
    "makes it FAILED with the reason, once; %s brings it back and the reason goes",
    async (action) => {
      const key = await account();
      const on = await readyAgent();
      const { databaseId } = await runningDatabase(key, on);
      const { siteId } = await runningSite(key, on);
      await api(key, "POST", `/databases/${databaseId}/links`, { siteId });
      const other = await readyAgent(0);
      await crash(other, databaseId);
      expect((await read(key, databaseId)).status).toBe("RUNNING");
      await crash(on, databaseId);
      await crash(on, databaseId, "Said again");
      expect(await read(key, databaseId)).toMatchObject({ status: "FAILED", error });
      expect((await api<Site>(key, "GET", `/sites/${siteId}`)).body.status).toBe("RUNNING");
      expect((await act(key, databaseId, action)).status).toBe(202);
      const { job, attempt } = await take(on, `database.${action}`);
      await finish(on, job, attempt, { version: "17.2" });
      expect(await read(key, databaseId)).toMatchObject({ status: "RUNNING", error: null });
      expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
      other.close();
    },
  );

  it("is not what a stopped or a deleted database is said to be", async () => {
    const key = await account();
    const on = await readyAgent();
    const { databaseId } = await runningDatabase(key, on);
    await act(key, databaseId, "stop");
    const stop = await take(on, "database.stop");
    await finish(on, stop.job, stop.attempt);
    await crash(on, databaseId);
    expect(await read(key, databaseId)).toMatchObject({ status: "STOPPED", error: null });
    await crash(on, ctx().newId("database"));
  });

  it("waits for the outcome of work that starts or stops it, and not for a backup", async () => {
    const key = await account();
    const on = await readyAgent();
    const { databaseId } = await runningDatabase(key, on);
    await act(key, databaseId, "restart");
    const restart = await take(on, "database.restart");
    report(on, databaseId);
    // Frames are answered in order where they are alike: that of another database shows that the first had its turn.
    await crash(on, ctx().newId("database"));
    expect((await read(key, databaseId)).status).toBe("RUNNING");
    await finish(on, restart.job, restart.attempt, { version: "17.2" });
    expect(on.waiting().filter(({ type }) => type === "databaseCrashAck")).toEqual([]);
    await api(key, "POST", `/databases/${databaseId}/backups`);
    await take(on, "database.backup");
    await crash(on, databaseId);
    expect(await read(key, databaseId)).toMatchObject({ status: "FAILED", error });
  });

  it("of one that was never provisioned leaves nothing to restart", async () => {
    const key = await account();
    const on = await readyAgent();
    const { databaseId, invoiceToken } = await createDatabase(key);
    await pay(invoiceToken);
    const { job, attempt } = await take(on, "database.provision");
    await fail(on, job, attempt);
    expect((await act(key, databaseId, "restart")).status).toBe(409);
  });
});
