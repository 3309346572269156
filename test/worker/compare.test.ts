import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Answer } from "../../protocol/agent/running.ts";
import type { Database, DatabaseCreated } from "../../protocol/api/databases.ts";
import type { SetAsideList } from "../../protocol/api/hosts.ts";
import { formatId } from "../../protocol/ids.ts";
import { clearAway, hostRecord, sql, tick } from "./hosts-service.ts";
import {
  account,
  agent,
  api,
  createSite,
  fail,
  finish,
  hello,
  jobOf,
  operator,
  pay,
  runningSite,
  site,
  ready,
  runningDatabase,
  uniqueName,
} from "./service.ts";

type Host = Awaited<ReturnType<typeof comparing>>;

/** An agent that says what it has, and the time by the control plane's clock. */
async function comparing(token?: { id: string; token: string }) {
  const connected = await agent(token);
  connected.send(hello());
  const { now } = await connected.next("welcome");
  connected.send(ready(10));
  return { ...connected, now };
}

let key: string;
let host: Host;
beforeAll(async () => void (key = await account()));
beforeEach(async () => {
  await clearAway();
  host = await comparing();
});

type Held = { sites?: object[]; databases?: object[]; asOf?: string };
const nothing = { serving: [], unrouted: [], memoryMb: 0 };
/** A job that comes behind it is there when this has been answered. */
async function say({ sites = [], databases = [], asOf = new Date().toISOString() }: Held, on = host) {
  on.send({ type: "inventory", asOf, after: null, upTo: null, sites, databases });
  // Worked on in turn.
  const siteId = formatId("site", 1, new Uint8Array(10));
  on.send({
    type: "crashed",
    siteId,
    deploymentId: formatId("deployment", 1, new Uint8Array(10)),
    error: "No.",
  });
  await on.next("crashAck");
}
const current = async (siteId: string) => (await site(key, siteId)).currentDeployment?.id;

const newDatabase = async (): Promise<string> => (await runningDatabase(key, host)).databaseId;
const database = async (id: string) => (await api<Database>(key, "GET", `/databases/${id}`)).body;
const held = { running: true, out: false, volumes: [null], memoryMb: 256 };

describe("what a host has is compared with the record", () => {
  it("and nothing is done where both are the same", async () => {
    const { siteId: id } = await runningSite(key, host);
    const databaseId = await newDatabase();
    const serving = [await current(id)];
    await say({ sites: [{ ...nothing, id, serving }], databases: [{ ...held, id: databaseId }] });
    expect(host.waiting()).toEqual([]);
  });

  it("a site of which nothing is there is started; where that cannot be, it is FAILED and says what to do", async () => {
    const { siteId: id } = await runningSite(key, host);
    await say({});
    const { job, attempt } = await jobOf(host, "site.start");
    const error = "The image of this version is no longer on the host: deploy the site again.";
    await fail(host, job, attempt, error);
    expect(await site(key, id)).toMatchObject({
      status: "FAILED",
      latestDeployment: { error: `Not started: ${error}` },
    });
    await say({});
    expect(host.waiting()).toEqual([]);
  });

  it("a version that no record knows serves until the record's is up, which is tried once", async () => {
    const { siteId: id } = await runningSite(key, host);
    const sites = [{ ...nothing, id, serving: [formatId("deployment", 2, new Uint8Array(10))] }];
    await say({ sites });
    const { job, attempt } = await host.next("job");
    expect([job.kind, "deploymentId" in job.args && job.args.deploymentId]).toEqual([
      "site.restart",
      await current(id),
    ]);
    await fail(host, job, attempt);
    expect((await site(key, id)).status).toBe("RUNNING");
    await say({ sites });
    expect(host.waiting()).toEqual([]);
  });

  it("what runs of a stopped site is stopped", async () => {
    const { siteId: id } = await runningSite(key, host);
    const serving = [await current(id)];
    await api(key, "PATCH", `/sites/${id}`, { action: "stop" });
    const stop = await host.next("job");
    await finish(host, stop.job, stop.attempt);
    await say({ sites: [{ ...nothing, id, serving }] });
    const first = await jobOf(host, "site.stop");
    await fail(host, first.job, first.attempt, "The engine does not answer.");
    const shown = async () => {
      const { status, latestDeployment } = await site(key, id);
      return [status, latestDeployment?.error];
    };
    expect(await shown()).toEqual(["STOPPED", "Not stopped: The engine does not answer."]);
    await say({ sites: [{ ...nothing, id, serving }] });
    const second = await jobOf(host, "site.stop");
    await finish(host, second.job, second.attempt);
    expect(await shown()).toEqual(["STOPPED", null]);
  });

  it("rules and names that it did not take are told again, until it does", async () => {
    const { siteId: id } = await runningSite(key, host);
    const serving = { ...nothing, id, serving: [await current(id)] };
    const ingress = { allow: ["192.0.2.0/24"] };
    host.close();
    expect((await api(key, "PATCH", `/sites/${id}`, { settings: { ingress } })).status).toBe(200);
    await sql("UPDATE jobs SET deadline_at = 1 WHERE site_id = ? AND kind = 'site.route'", id);
    await tick();
    host = await comparing(host.token);
    await say({ sites: [serving] });
    const again = await host.next("job");
    expect(again.job).toMatchObject({ kind: "site.route", args: { siteId: id, ingress } });
    await fail(host, again.job, again.attempt, "The disk is full");
    await say({ sites: [serving] });
    const { job, attempt } = await jobOf(host, "site.route");
    await finish(host, job, attempt);
    await say({ sites: [serving] });
    expect(host.waiting()).toEqual([]);
  });

  it("what runs beside what serves goes", async () => {
    const { siteId: id } = await runningSite(key, host);
    const unrouted = [{ containerId: "half", deploymentId: null }];
    await say({ sites: [{ id, serving: [await current(id)], unrouted, memoryMb: 512 }] });
    const retire = [{ siteId: id, containerIds: ["half"] }];
    expect(await host.next("verdicts")).toEqual({ type: "verdicts", setAside: [], retire });
  });

  it("a database whose container is gone is started; one whose data is gone is FAILED, and a restore may begin", async () => {
    const [gone, lost] = [await newDatabase(), await newDatabase()];
    await say({ databases: [{ ...held, id: gone, running: false }] });
    const { job, attempt } = await host.next("job");
    expect(job).toMatchObject({ kind: "database.start", args: { database: { databaseId: gone } } });
    await finish(host, job, attempt, { version: "17.2" });
    expect(await database(lost)).toMatchObject({
      status: "FAILED",
      error: expect.stringMatching(/data is no longer on its host\. Restore a backup/) as string,
    });
    expect((await database(gone)).status).toBe("RUNNING");
  });

  it("a database that came up after the deadline of its provisioning is RUNNING once its host has said that it runs", async () => {
    const input = { name: uniqueName("data"), type: "postgresql" };
    const created = await api<DatabaseCreated>(key, "POST", "/databases", input);
    await pay(created.body.invoiceToken);
    const id = created.body.databaseId;
    const provision = await jobOf(host, "database.provision");
    await sql("UPDATE jobs SET deadline_at = 1 WHERE id = ?", provision.job.id);
    await tick();
    expect(await database(id)).toMatchObject({ status: "FAILED", version: null });
    await finish(host, provision.job, provision.attempt, { version: "17.2" });
    await say({ databases: [{ ...held, id }] });
    const { job, attempt } = await jobOf(host, "database.start");
    await finish(host, job, attempt, { version: "17.2" });
    expect(await database(id)).toMatchObject({ status: "RUNNING", version: "17.2", error: null });
  });

  it("what runs of a stopped database is stopped, and is not started when that fails", async () => {
    const id = await newDatabase();
    await api(key, "PATCH", `/databases/${id}`, { action: "stop" });
    const stop = await host.next("job");
    await finish(host, stop.job, stop.attempt);
    await say({ databases: [{ ...held, id }] });
    const { job, attempt } = await host.next("job");
    expect(job.kind).toBe("database.stop");
    await fail(host, job, attempt);
    await tick();
    await say({ databases: [{ ...held, id }] });
    expect((await host.next("job")).job.kind).toBe("database.stop");
  });

  it("a database that was restored into since goes on with the data that is there", async () => {
    const id = await newDatabase();
    const volume = formatId("job", 5, new Uint8Array(10));
    await say({ databases: [{ ...held, id, volumes: [volume] }] });
    const { job } = await host.next("job");
    expect(job).toMatchObject({ kind: "database.start", args: { database: { databaseId: id, volume } } });
  });

  it("a database whose host was removed by force gets its data back from the host that is created again with the token", async () => {
    const id = await newDatabase();
    const admin = await operator();
    const removal = `/hosts/${host.hostId}?connected=1&loseVolumes=1`;
    expect((await api(admin, "DELETE", removal)).status).toBe(200);
    expect(await database(id)).toMatchObject({ status: "FAILED", hostId: null, version: null });
    const other = await comparing();
    await say({ databases: [{ ...held, id }] }, other);
    expect(other.waiting()).toEqual([]);
    expect(await database(id)).toMatchObject({ status: "FAILED", hostId: null });
    const again = { name: "again", token: host.token.token };
    const created = await api<{ id: string }>(admin, "POST", "/hosts", again);
    const back = await comparing({ id: created.body.id, token: host.token.token });
    await say({ databases: [{ ...held, id }] }, back);
    const { job, attempt } = await back.next("job");
    expect(job).toMatchObject({
      kind: "database.start",
      args: { database: { databaseId: id } },
    });
    await finish(back, job, attempt, { version: "17.2" });
    expect(await database(id)).toMatchObject({
      status: "RUNNING",
      hostId: back.hostId,
      version: "17.2",
      error: null,
    });
  });

  it("what no record knows is set aside, counts for its memory until then, and is an operator's to remove", async () => {
    const id = formatId("site", 7, new Uint8Array(10));
    const databaseId = formatId("database", 7, new Uint8Array(10));
    const { freeMemoryMb } = await hostRecord(host.hostId);
    const running = {
      sites: [{ ...nothing, id, serving: [formatId("deployment", 7, new Uint8Array(10))], memoryMb: 300 }],
      databases: [{ ...held, id: databaseId }],
    };
    await say(running);
    expect(await host.next("verdicts")).toEqual({ type: "verdicts", setAside: [id, databaseId], retire: [] });
    expect((await hostRecord(host.hostId)).freeMemoryMb).toBe(freeMemoryMb! - 556);
    await say({
      sites: [{ ...nothing, id }],
      databases: [{ ...held, id: databaseId, running: false, memoryMb: 0 }],
    });
    expect(host.waiting()).toEqual([]);
    expect((await hostRecord(host.hostId)).freeMemoryMb).toBe(freeMemoryMb);

    const named = (await runningSite(key, host)).siteId;
    const kept = {
      id,
      accountId: null,
      setAsideAt: null,
      running: false,
      containerCount: 1,
      imageCount: 1,
      volumes: [],
    };
    const path = `/hosts/${host.hostId}/set-aside`;
    const admin = await operator();
    const answer = async (kind: string, with_: object) => {
      const { requestId, question } = await host.next("ask");
      expect(question.kind).toBe(kind);
      host.send({ type: "answer", requestId, answer: { kind, ...with_ }, last: true });
      return question;
    };
    const listing = api<SetAsideList>(admin, "GET", path);
    await answer("held", { ids: [id, named] });
    expect(await answer("kept", { kept: [kept] })).toMatchObject({ ids: [id] });
    expect((await listing).body).toEqual({ data: [kept] });

    expect((await api(admin, "DELETE", `${path}/${named}`)).status).toBe(409);
    expect((await api(key, "DELETE", `${path}/${id}`)).status).toBe(403);
    const removing = api(admin, "DELETE", `${path}/${id}`);
    await answer("held", { ids: [id, named] });
    expect(await answer("removeKept", {})).toMatchObject({ id });
    expect((await removing).status).toBe(200);
  });

  it("a volume of a database that runs on another one is kept until an operator removes it, unless the record knows of it", async () => {
    const id = await newDatabase();
    const [later, restoring] = [5, 6].map((number) => formatId("job", number, new Uint8Array(10)));
    await sql(
      `INSERT INTO jobs (id, kind, status, host_id, lane, database_id, account_id, deadline_at, created_at)
       SELECT ?1, 'database.restore', 'LEASED', host_id, 'other', database_id, account_id, deadline_at, created_at FROM jobs WHERE database_id = ?2 LIMIT 1`,
      restoring!,
      id,
    );
    const volumes = [null, later, restoring];
    await say({ databases: [{ ...held, id, volumes }] });
    expect(host.waiting()).toEqual([]);
    const kept = {
      id,
      accountId: null,
      setAsideAt: null,
      running: false,
      containerCount: 0,
      imageCount: 0,
      volumes: [{ name: `berth-${id}-data-${later}`, sizeMb: 3 }],
    };
    const path = `/hosts/${host.hostId}/set-aside`;
    const admin = await operator();
    const answer = async (with_: object) => {
      const { requestId, question } = await host.next("ask");
      host.send({ type: "answer", requestId, answer: with_ as Answer, last: true });
      return question;
    };
    const holds = { kind: "held", ids: [id], databases: [{ id, volumes }] };
    const listing = api<SetAsideList>(admin, "GET", path);
    await answer(holds);
    expect(await answer({ kind: "kept", kept: [kept] })).toEqual({
      kind: "keptVolumes",
      databases: [{ id, volumes: [later] }],
    });
    expect((await listing).body).toEqual({ data: [kept] });

    const removing = api(admin, "DELETE", `${path}/${id}`);
    await answer(holds);
    expect(await answer({ kind: "removeKept" })).toEqual({
      kind: "removeKeptVolumes",
      database: { id, volumes: [later] },
    });
    expect((await removing).status).toBe(200);
    const again = api(admin, "DELETE", `${path}/${id}`);
    await answer({ kind: "held", ids: [id] });
    expect((await again).status).toBe(409);
  });

  it("a site that is unpaid in the record does not serve", async () => {
    const { siteId: id } = await createSite(key);
    await say({
      sites: [{ ...nothing, id, serving: [formatId("deployment", 3, new Uint8Array(10))], memoryMb: 256 }],
    });
    expect(await host.next("verdicts")).toMatchObject({ setAside: [id] });
  });

  it("a database that is unpaid in the record becomes that host's which was given it, and nobody else's who knows its id", async () => {
    const id = await newDatabase();
    await sql(
      "UPDATE databases SET status = 'PENDING', host_id = NULL, version = NULL, updated_at = 1 WHERE id = ?",
      id,
    );
    await sql("DELETE FROM jobs WHERE database_id = ?", id);
    const other = await comparing();
    await say({ databases: [{ ...held, id }] }, other);
    expect(await other.next("verdicts")).toMatchObject({ setAside: [id] });
    expect((await database(id)).hostId).toBe(null);
    await say({ databases: [{ ...held, id }] });
    expect(await host.next("verdicts")).toMatchObject({ setAside: [id] });
    expect((await database(id)).hostId).toBe(host.hostId);
  });
});

describe("an inventory changes nothing of", () => {
  it("what was changed or worked on since, or waits", async () => {
    const asOf = new Date(Date.now() - 1000).toISOString();
    const { siteId } = await runningSite(key, host);
    await say({ asOf });
    expect(host.waiting()).toEqual([]);
    // Deleted since: no record knows it any more.
    await api(key, "DELETE", `/sites/${siteId}`);
    await say({});
    const { job, attempt } = await jobOf(host, "site.delete");
    const before = new Date().toISOString();
    await finish(host, job, attempt);
    await say({
      asOf: before,
      sites: [{ ...nothing, id: siteId, serving: [formatId("deployment", 3, new Uint8Array(10))] }],
    });
    expect(host.waiting()).toEqual([]);
  });

  it("what another host has, whose word counts once it has given it", async () => {
    const { siteId: id } = await runningSite(key, host);
    const other = await comparing();
    const sites = [{ ...nothing, id, serving: [await current(id)], memoryMb: 256 }];
    await say({ sites }, other);
    expect(other.waiting()).toEqual([]);
    await say({ sites });
    await say({ sites }, other);
    expect(await other.next("verdicts")).toMatchObject({ setAside: [id] });
    // A record that was put back has forgotten when it last did.
    await sql("UPDATE hosts SET compared_at = 1 WHERE id = ?", host.hostId);
    await say({ sites }, other);
    expect(other.waiting()).toEqual([]);
  });

  it("ids that are in another part of it", async () => {
    const { siteId: id } = await runningSite(key, host);
    host.send({
      type: "inventory",
      asOf: new Date().toISOString(),
      after: id,
      upTo: null,
      sites: [],
      databases: [],
    });
    await say({ sites: [{ ...nothing, id, serving: [await current(id)] }] });
    expect(host.waiting()).toEqual([]);
  });
});
