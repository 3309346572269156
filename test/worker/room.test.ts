import { beforeEach, describe, expect, it } from "vitest";
import type { Command } from "../../protocol/api/commands.ts";
import type { Page } from "../../protocol/api/common.ts";
import type { Database, DatabaseCreated } from "../../protocol/api/databases.ts";
import type { Deployment } from "../../protocol/api/deployments.ts";
import {
  clearAway,
  failedSite,
  foundOffline,
  hostFor,
  hostRecord,
  paidSites,
  sql,
  tick,
} from "./hosts-service.ts";
import {
  account,
  api,
  deployResult,
  fail,
  finish,
  finishNext,
  greetedAgent,
  hostIn,
  operator,
  pay,
  runningSite,
  site,
  siteInput,
  uniqueName,
  ready,
} from "./service.ts";

const act = (key: string, id: string, action: string) => api(key, "PATCH", `/sites/${id}`, { action });

/** Why the newest deployment of a site is not begun. */
async function waitsFor(key: string, siteId: string): Promise<string | null | undefined> {
  const { body } = await api<{ data: Deployment[] }>(key, "GET", `/sites/${siteId}/deployments`);
  return body.data[0]?.waitsFor;
}

async function commandScene() {
  const [key, host] = [await account(), await hostFor(1)];
  return { key, host, siteId: (await runningSite(key, host)).siteId };
}

beforeEach(clearAway);

describe("what no host has room for", () => {
  type Refused = { invoiceId: string; invoiceToken: string; reason: string; issues: unknown };
  const pack = async (kind: string, memoryMb: number) => {
    const input = { kind, name: uniqueName("Pack"), amountCents: 9000, memoryMb, cpuMilli: 100, diskGb: 1 };
    return (await api<{ id: string }>(await operator(), "POST", "/packs", input)).body.id;
  };
  const kinds = [
    ["site", siteInput()],
    ["database", { type: "redis" }],
  ] as const;

  it.each(kinds)(
    "is no %s to order, even where all hosts are empty, drain or are away",
    async (kind, input) => {
      const key = await account();
      const [fits, tooLarge] = [await pack(kind, 1024), await pack(kind, 1025)];
      const order = (packId: string, more: object = {}) =>
        api<Refused>(key, "POST", `/${kind}s`, { ...input, name: uniqueName("room"), packId, ...more });
      expect((await order(tooLarge)).status).toBe(201);
      const [here, there] = [await hostFor(4, "here"), await hostFor(3, "there")];
      await runningSite(key, here);
      await sql("UPDATE hosts SET status = 'DRAINING' WHERE id = ?", here.hostId);
      const { status, body } = await order(tooLarge);
      expect([status, body.issues]).toEqual([
        400,
        [
          {
            path: "packId",
            message: expect.stringMatching(/no host has 1025 MB.*smaller pack.*larger host/),
          },
        ],
      ]);
      expect((await order(fits)).status).toBe(201);
      expect((await order(fits, { region: "there" })).body.issues).toMatchObject([
        { path: "packId", message: expect.stringContaining("no host in region there has 1024 MB") },
      ]);
      // What a host has that has never connected is not known.
      await hostIn("there");
      expect((await order(tooLarge, { region: "there" })).status).toBe(201);
      here.close();
      there.close();
    },
  );

  it.each(kinds)("takes no money for a %s until it has, or none is known", async (kind, input) => {
    const key = await account();
    const packId = await pack(kind, 512);
    const order = async (more: object = {}) => {
      const named = { ...input, name: uniqueName("room"), packId, ...more };
      return (await api<Refused>(key, "POST", `/${kind}s`, named)).body;
    };
    const host = await hostFor(3, "here");
    const { siteId } = await runningSite(key, host);
    const other = await runningSite(key, host);
    const [one, elsewhere] = [await order(), await order({ region: "here" })];
    for (const { invoiceToken, invoiceId } of [one, elsewhere]) {
      const refused = await pay(invoiceToken);
      expect([refused.status, (await refused.json<Refused>()).reason]).toEqual([
        409,
        expect.stringMatching(/^No host.* has room for the 512 MB of this .*Nothing was charged.*operator/),
      ]);
      expect((await api(key, "GET", `/invoices/${invoiceId}`)).body).toMatchObject({ status: "unpaid" });
    }
    await sql("UPDATE sites SET status = 'FAILED', serving = 0, reserved = 0 WHERE id = ?", siteId);
    expect((await pay(one.invoiceToken)).status).toBe(200);
    await host.next("job");
    expect((await pay(elsewhere.invoiceToken)).status).toBe(409);
    // As before where no host is known: it waits for one.
    await clearAway();
    expect((await pay(elsewhere.invoiceToken)).status).toBe(200);
    expect(other.siteId).not.toBe(siteId);
    host.close();
  });

  it.each(kinds)(
    "takes no money for a %s that is linked to what is on a host without room for it",
    async (kind, input) => {
      const key = await account();
      const packId = await pack(kind, 512);
      const full = await hostFor(3, "full");
      const { siteId } = await runningSite(key, full);
      const database = (
        await api<{ databaseId: string; invoiceToken: string }>(key, "POST", "/databases", {
          name: uniqueName("data"),
          type: "redis",
        })
      ).body;
      await pay(database.invoiceToken);
      await finishNext(full, { version: "7.2" });
      const empty = await hostFor(30, "empty");
      const made = (
        await api<Refused & { siteId: string; databaseId: string }>(key, "POST", `/${kind}s`, {
          ...input,
          name: uniqueName("room"),
          packId,
        })
      ).body;
      const [ofSite, ofDatabase] =
        kind === "site" ? [made.siteId, database.databaseId] : [siteId, made.databaseId];
      expect((await api(key, "POST", `/databases/${ofDatabase}/links`, { siteId: ofSite })).status).toBe(201);
      const reason = async () => (await (await pay(made.invoiceToken)).json<Refused>()).reason;
      expect(await reason()).toMatch(
        new RegExp(`^This ${kind} is linked to .* no room for 512 MB .*Nothing was charged`),
      );
      await sql("UPDATE packs SET memory_mb = 1 WHERE id = ?", packId);
      expect((await pay(made.invoiceToken)).status).toBe(200);
      full.close();
      empty.close();
    },
  );
});

describe("a deployment that waits says for what", () => {
  it("a host that is up with room, one that takes no work, what is under way, or its own host; and nothing once it has begun", async () => {
    const key = await account();
    const [siteId = ""] = await paidSites(key, 1);
    expect(await waitsFor(key, siteId)).toMatch(/No host has taken it yet/);
    const host = await hostFor(1);
    const { job, attempt } = await host.next("job");
    expect(await waitsFor(key, siteId)).toBeNull();
    await act(key, siteId, "deploy");
    expect(await waitsFor(key, siteId)).toMatch(
      /host takes no work for now: its Docker engine does not answer/,
    );
    await sql("UPDATE hosts SET slots = 1 WHERE id = ?", host.hostId);
    expect(await waitsFor(key, siteId)).toMatch(/other work/);
    await finish(host, job, attempt, deployResult);
    await finishNext(host, deployResult);
    host.close();
    await foundOffline(host.hostId);
    await act(key, siteId, "deploy");
    expect(await waitsFor(key, siteId)).toMatch(/host is not connected/);
  });
});

describe("what its host works on while it is silent", () => {
  const silent = /^Its host has been silent since \d{4}-\d\d-\d\dT[\d:]+Z/;

  it("is a deployment that says so, and nothing more once the host is back", async () => {
    const key = await account();
    const [siteId = ""] = await paidSites(key, 1);
    const host = await hostFor(1);
    const { job, attempt } = await host.next("job");
    host.close();
    await foundOffline(host.hostId);
    expect(await waitsFor(key, siteId)).toMatch(silent);
    const back = await greetedAgent({ running: [{ jobId: job.id, attempt }] }, host.token);
    expect(await waitsFor(key, siteId)).toBeNull();
    back.close();
  });

  it("is a command that says so, and one that waits for the host or for its turn", async () => {
    const { siteId, key, host } = await commandScene();
    const path = `/sites/${siteId}/commands`;
    const run = async () => (await api<Command>(key, "POST", path, { command: "true" })).body;
    const shown = async (id: string) => (await api<Command>(key, "GET", `/commands/${id}`)).body.waitsFor;
    const begun = await run();
    expect(begun.waitsFor).toMatch(/takes no work for now/);
    await sql("UPDATE hosts SET slots = 1 WHERE id = ?", host.hostId);
    expect(await shown(begun.id)).toMatch(/other work/);
    host.send(ready(10, { freeCommands: 1 }));
    const { job, attempt } = await host.next("job");
    expect(await shown(begun.id)).toBeNull();
    const waiting = await run();
    expect(await shown(waiting.id)).toMatch(/other work/);
    host.close();
    await foundOffline(host.hostId);
    expect([await shown(begun.id), await shown(waiting.id)]).toEqual([
      expect.stringMatching(silent),
      expect.stringMatching(/host is not connected/),
    ]);
    const { body } = await api<Page<Command>>(key, "GET", path);
    expect(body.data.map(({ waitsFor: why }) => why)).toEqual([
      expect.stringMatching(/host is not connected/),
      expect.stringMatching(silent),
    ]);
    const back = await greetedAgent({ running: [{ jobId: job.id, attempt }] }, host.token);
    expect(await shown(begun.id)).toBeNull();
    expect((await api<Command>(key, "POST", `/commands/${waiting.id}/cancel`)).body.waitsFor).toBeNull();
    back.close();
  });

  it("or is to work on is a database whose record says so, or that no host has taken it, or that its host takes no work", async () => {
    const key = await account();
    const input = { name: uniqueName("data"), type: "redis", billingTerm: 1 };
    const { body } = await api<DatabaseCreated>(key, "POST", "/databases", input);
    const shown = async () =>
      (await api<Database>(key, "GET", `/databases/${body.databaseId}`)).body.waitsFor;
    expect(await shown()).toBeNull();
    await pay(body.invoiceToken);
    expect(await shown()).toMatch(/No host has taken it yet/);
    const host = await hostFor(1);
    const { job, attempt } = await host.next("job");
    expect(await shown()).toBeNull();
    await finish(host, job, attempt, { version: "7.2" });
    host.close();
    await foundOffline(host.hostId);
    expect(await shown()).toBeNull();
    await api(key, "PATCH", `/databases/${body.databaseId}`, { action: "restart" });
    expect(await shown()).toMatch(silent);
    await sql("UPDATE hosts SET offline_since = NULL WHERE id = ?", host.hostId);
    expect(await shown()).toMatch(/takes no work for now/);
  });
});

describe("a site that failed", () => {
  const volumes = [{ name: "data", mountPath: "/data" }];

  it("or whose first deployment failed holds no room: others have it", async () => {
    const key = await account();
    const only = await hostFor(1);
    await failedSite(key, only);
    expect(await hostRecord(only.hostId)).toMatchObject({ freeMemoryMb: 256, siteCount: 1 });
    const [never = "", next = ""] = await paidSites(key, 2);
    const first = await only.next("job");
    await fail(only, first.job, first.attempt);
    await finishNext(only, deployResult);
    const statuses = await Promise.all([never, next].map(async (id) => (await site(key, id)).status));
    expect(statuses.toSorted()).toEqual(["FAILED", "RUNNING"]);
    expect(await hostRecord(only.hostId)).toMatchObject({ freeMemoryMb: 0, siteCount: 3 });
    only.close();
  });

  it("has its room back from the request to start it on, and loses it again when that fails", async () => {
    const key = await account();
    const only = await hostFor(1);
    const failed = await failedSite(key, only);
    only.send(ready(0));
    await act(key, failed, "start");
    expect(await hostRecord(only.hostId)).toMatchObject({ freeMemoryMb: 0 });
    only.send(ready(10));
    const start = await only.next("job");
    expect(start.job).toMatchObject({ kind: "site.start", args: { run: { siteId: failed } } });
    await tick();
    expect(await hostRecord(only.hostId)).toMatchObject({ freeMemoryMb: 0 });
    await fail(only, start.job, start.attempt);
    expect(await hostRecord(only.hostId)).toMatchObject({ freeMemoryMb: 256 });
    only.close();
  });

  it.each(["start", "deploy"])(
    "and whose room others have runs on another host after a %s, and leaves nothing behind",
    async (action) => {
      const key = await account();
      const old = await hostFor(1);
      const failed = await failedSite(key, old);
      const { siteId: successor } = await runningSite(key, old);
      const fresh = await hostFor(1);
      expect((await act(key, failed, action)).body).toMatchObject({ status: "DEPLOYING" });
      const { job, attempt } = await fresh.next("job");
      expect(job.kind).toBe("site.deploy");
      await finish(fresh, job, attempt, deployResult);
      expect(await site(key, failed)).toMatchObject({ status: "RUNNING", hostId: fresh.hostId });
      expect(await site(key, successor)).toMatchObject({ status: "RUNNING", hostId: old.hostId });
      await tick();
      const evict = await old.next("job");
      expect(evict.job).toMatchObject({ kind: "site.evict", args: { siteId: failed } });
      old.close();
      fresh.close();
    },
  );

  it("returns to the host it left when that is the first with room, and nothing of it is removed there", async () => {
    const key = await account();
    const only = await hostFor(1);
    const failed = await failedSite(key, only);
    const { siteId: successor } = await runningSite(key, only);
    await act(key, failed, "deploy");
    expect((await site(key, failed)).hostId).toBe(null);
    await api(key, "DELETE", `/sites/${successor}`);
    const gone = await only.next("job");
    await finish(only, gone.job, gone.attempt);
    const { job, attempt } = await only.next("job");
    expect(job).toMatchObject({ kind: "site.deploy", args: { run: { siteId: failed } } });
    await finish(only, job, attempt, deployResult);
    await tick();
    expect(await site(key, failed)).toMatchObject({ status: "RUNNING", hostId: only.hostId });
    expect(only.waiting()).toEqual([]);
    only.close();
  });

  it("with volumes waits for room where its data is, and no other host takes it", async () => {
    const key = await account();
    const old = await hostFor(1);
    const failed = await failedSite(key, old, { volumes });
    const { siteId: successor } = await runningSite(key, old);
    const other = await hostFor(5);
    await act(key, failed, "deploy");
    await tick();
    expect([old.waiting(), other.waiting()]).toEqual([[], []]);
    expect((await site(key, failed)).hostId).toBe(old.hostId);
    expect(await waitsFor(key, failed)).toMatch(/no longer has enough free memory.* cancel it/i);
    await api(key, "DELETE", `/sites/${successor}`);
    const gone = await old.next("job");
    await finish(old, gone.job, gone.attempt);
    await finishNext(old, deployResult);
    expect(await site(key, failed)).toMatchObject({ status: "RUNNING", hostId: old.hostId });
    expect(await hostRecord(old.hostId)).toMatchObject({ freeMemoryMb: 0 });
    old.close();
    other.close();
  });

  it("with volumes says what its host lacks when it has waited in vain", async () => {
    const key = await account();
    const old = await hostFor(1);
    const failed = await failedSite(key, old, { volumes });
    await runningSite(key, old);
    await act(key, failed, "deploy");
    await sql("UPDATE jobs SET deadline_at = 1 WHERE status = 'QUEUED' AND site_id = ?", failed);
    await tick();
    expect(await site(key, failed)).toMatchObject({
      status: "FAILED",
      latestDeployment: {
        error: expect.stringMatching(/host did not have the required 256 MB .* it has 0 MB/),
      },
    });
    old.close();
  });

  it("is rolled back on its own host, where the image is, and where that has no room made anew on another", async () => {
    const key = await account();
    const old = await hostFor(1);
    const failed = await failedSite(key, old);
    await act(key, failed, "deploy");
    await finishNext(old, deployResult);
    const deploymentId = (await site(key, failed)).currentDeployment?.id;
    old.send({ type: "crashed", siteId: failed, deploymentId, error: "It kept exiting." });
    await old.next("crashAck");
    const back = async () => expect((await api(key, "POST", `/sites/${failed}/rollback`)).status).toBe(202);
    await back();
    const there = await old.next("job");
    expect(there.job.args).toMatchObject({ source: { type: "kept" } });
    await fail(old, there.job, there.attempt);
    await runningSite(key, old);
    const other = await hostFor(5);
    await back();
    const { job, attempt } = await other.next("job");
    expect(job.args).toMatchObject({ source: { otherwise: { commit: deployResult.commit } } });
    await finish(other, job, attempt, deployResult);
    expect(await site(key, failed)).toMatchObject({ status: "RUNNING", hostId: other.hostId });
    old.close();
    other.close();
  });
});
