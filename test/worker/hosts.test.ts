import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Job } from "../../protocol/agent/jobs.ts";
import { closeCodes } from "../../protocol/agent/messages.ts";
import type { Host } from "../../protocol/api/hosts.ts";
import type { Site } from "../../protocol/api/sites.ts";
import { formatId } from "../../protocol/ids.ts";
import type { HostLink } from "../../worker/objects/host-link.ts";
import {
  clearAway,
  drain,
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
  agent,
  api,
  bindings,
  call,
  connect,
  createSite,
  deployResult,
  fail,
  finish,
  finishNext,
  hello,
  hostIn,
  jobOf,
  operator,
  operatorCookie,
  readyAgent,
  pay,
  runningSite,
  site,
  ready,
  uniqueName,
} from "./service.ts";

const hostsOf = (key: string, ids: string[]) =>
  Promise.all(ids.map(async (id) => (await site(key, id)).hostId));

const hostPage = async () =>
  (
    await call("/operator/hosts", { headers: { Accept: "text/html", Cookie: await operatorCookie() } })
  ).text();

beforeEach(clearAway);

describe("a new site", () => {
  it("goes to the host with the most room, then to the next, and no host is given more than it has", async () => {
    const key = await account();
    const [small, large] = [await hostFor(1), await hostFor(2)];
    const ids = await paidSites(key, 4);
    await Promise.all([small.next("job"), large.next("job")]);
    await large.next("job");
    const placed = await hostsOf(key, ids);
    expect(placed.map(String).toSorted()).toEqual(
      [small.hostId, large.hostId, large.hostId, null].map(String).toSorted(),
    );
    expect([small.waiting(), large.waiting()]).toEqual([[], []]);
    expect(await hostRecord(large.hostId)).toMatchObject({ freeMemoryMb: 0, siteCount: 2 });
    small.close();
    large.close();
  });

  it("that fits nowhere goes where another one leaves", async () => {
    const key = await account();
    const only = await hostFor(1);
    const ids = await paidSites(key, 2);
    await finishNext(only, deployResult);
    await tick();
    const placed = await hostsOf(key, ids);
    expect(new Set(placed)).toEqual(new Set([only.hostId, null]));
    const waits = ids[placed.indexOf(null)];
    await api(key, "DELETE", `/sites/${ids[placed.indexOf(only.hostId)]}`);
    const { job, attempt } = await only.next("job");
    await finish(only, job, attempt);
    expect((await only.next("job")).job.args).toMatchObject({ run: { siteId: waits } });
    only.close();
  });

  it("goes to a host of its region only", async () => {
    const key = await account();
    const [far, near] = [await hostFor(10, "us"), await hostFor(1, "eu")];
    const ids = await paidSites(key, 2, { region: "eu" });
    await near.next("job");
    expect(new Set(await hostsOf(key, ids))).toEqual(new Set([near.hostId, null]));
    expect(far.waiting()).toEqual([]);
    far.close();
    near.close();
  });

  it("goes to no host whose disk is nearly full, is not paid for where all are, and says so if it waited in vain", async () => {
    const key = await account();
    const [full, other] = [await hostFor(3), await hostFor(1)];
    const problem = "TCP port 80 is in use by another program.";
    const updateProblem = "Its agent was not updated: The new agent could not be fetched: 503.";
    const machineProblems = [
      "Its clock is 12 minutes behind the service's.",
      "Docker 20.10.24 on this host is old.",
    ];
    full.send({
      type: "condition",
      disk: { freeMb: 2000, neededMb: 2048 },
      ingressProblem: problem,
      updateProblem,
      machineProblems,
    });
    await expect
      .poll(async () => hostRecord(full.hostId))
      .toMatchObject({
        diskFreeMb: 2000,
        problems: [
          problem,
          expect.stringMatching(/^Its disk is nearly full: 2\.0 GB are free.* needs 2\.0 GB/),
          updateProblem,
          ...machineProblems,
        ],
      });
    expect(await hostPage()).toContain("Its disk is nearly full");
    const [first] = await paidSites(key, 1);
    await other.next("job");
    expect(await site(key, first ?? "")).toMatchObject({ hostId: other.hostId });
    other.send({ type: "condition", disk: { freeMb: 5000, neededMb: 6000 }, ingressProblem: null });
    await expect.poll(async () => (await hostRecord(other.hostId)).problems).toHaveLength(1);
    const unpaid = await createSite(key);
    expect((await pay(unpaid.invoiceToken)).status).toBe(409);
    // Two that were paid for before.
    await sql("UPDATE hosts SET disk_free_mb = 9000 WHERE id = ?", full.hostId);
    await sql("UPDATE hosts SET slots = 0, region = 'eu' WHERE status = 'ACTIVE'");
    full.send(ready(0));
    const waiting = await paidSites(key, 2);
    full.send({ type: "condition", disk: { freeMb: 2000, neededMb: 2048 }, ingressProblem: null });
    await expect.poll(async () => (await hostRecord(full.hostId)).problems).toHaveLength(1);
    await sql("UPDATE jobs SET deadline_at = 1 WHERE site_id = ?", waiting[0]);
    full.send(ready(1));
    await tick();
    expect((await site(key, waiting[0] ?? "")).latestDeployment?.error).toMatch(
      /^The disk of each host was nearly full for \d+ minutes\./,
    );
    expect(full.waiting().filter(({ type }) => type === "job")).toEqual([]);
    full.send({ type: "condition", disk: { freeMb: 2304, neededMb: 2048 }, ingressProblem: null });
    await expect.poll(async () => (await hostRecord(full.hostId)).problems).toEqual([]);
    await tick();
    await full.next("job");
    expect(await site(key, waiting[1] ?? "")).toMatchObject({ hostId: full.hostId });
    full.close();
    other.close();
  });

  it("that no host could take in time fails with what was missing", async () => {
    const key = await account();
    const only = await hostFor(1, "eu");
    await sql("UPDATE hosts SET offline_since = 1 WHERE id = ?", only.hostId);
    const ids = await paidSites(key, 2, { region: "eu" });
    await sql("UPDATE hosts SET offline_since = NULL, memory_mb = 512 WHERE id = ?", only.hostId);
    // Whose host was removed meanwhile.
    await sql("UPDATE sites SET region = 'mars' WHERE id = ?", ids[0]);
    for (const id of ids) await sql("UPDATE jobs SET deadline_at = 1 WHERE site_id = ?", id);
    await tick();
    const [far, full] = await Promise.all(ids.map((id) => site(key, id)));
    expect(far).toMatchObject({
      status: "FAILED",
      latestDeployment: { error: expect.stringContaining("region mars") },
    });
    expect(full?.latestDeployment?.error).toMatch(/256 MB .* the most free memory was 0 MB/);
    only.close();
  });

  it("does not wait for a busy host for ever, when another has room", async () => {
    const key = await account();
    const [best, other] = [await hostFor(5), await hostFor(1)];
    best.send(ready(0));
    // That is known once a later frame of the same socket has its answer, as this one of a job that nobody knows.
    await fail(best, { id: formatId("job", 1, new Uint8Array(10)) } as Job, 1);
    const [id = ""] = await paidSites(key, 1);
    await tick();
    expect(await hostsOf(key, [id])).toEqual([null]);
    await sql("UPDATE jobs SET created_at = created_at - 20000 WHERE site_id = ?", id);
    await tick();
    await other.next("job");
    expect(await hostsOf(key, [id])).toEqual([other.hostId]);
    best.close();
    other.close();
  });
});

describe("a site that failed", () => {
  it("and has no host any more is started by making the version it had once more, elsewhere", async () => {
    const key = await account();
    const old = await hostFor(1);
    const failed = await failedSite(key, old);
    await drain(old);
    expect((await site(key, failed)).hostId).toBe(null);
    const fresh = await hostFor(1);
    expect((await api(key, "PATCH", `/sites/${failed}`, { action: "start" })).body).toMatchObject({
      status: "DEPLOYING",
    });
    const { job, attempt } = await fresh.next("job");
    expect(job).toMatchObject({ kind: "site.deploy", args: { source: { commit: deployResult.commit } } });
    await finish(fresh, job, attempt, deployResult);
    expect(await site(key, failed)).toMatchObject({ status: "RUNNING", hostId: fresh.hostId });
    expect(fresh.waiting().filter(({ type }) => type === "job")).toEqual([]);
    old.close();
    fresh.close();
  });
});

/** Its agent has sent no ping in the 25 seconds since it connected. */
const fallSilent = (link: DurableObjectStub<HostLink>) =>
  runInDurableObject(link, (_, state) => {
    for (const socket of state.getWebSockets()) {
      const attachment = socket.deserializeAttachment() as { openedAt: number };
      socket.serializeAttachment({ ...attachment, openedAt: Date.now() - 25_000 });
    }
  });

describe("a host", () => {
  it("whose agent went away is shown so, with its sites, until it says hello again", async () => {
    const key = await account();
    const on = await hostFor(2);
    const { siteId } = await runningSite(key, on);
    expect(await hostRecord(on.hostId)).toMatchObject({ connected: true, offlineSince: null });
    on.close();
    await foundOffline(on.hostId);
    expect(await hostRecord(on.hostId)).toMatchObject({
      connected: false,
      offlineSince: expect.stringContaining("T"),
    });
    expect(await site(key, siteId)).toMatchObject({ status: "RUNNING", hostOffline: true });
    const again = await readyAgent(10, on.token);
    expect(await hostRecord(on.hostId)).toMatchObject({ connected: true, offlineSince: null });
    expect(await site(key, siteId)).toMatchObject({ hostOffline: false });
    again.close();
  });

  it("that replaced a part of its ingress says when, and an agent that knows of none takes nothing back", async () => {
    const on = await hostFor(1);
    expect(await hostRecord(on.hostId)).toMatchObject({ ingressReplacedAt: null });
    const at = "2026-03-04T05:06:07.000Z";
    on.send(ready(1, { ingressReplacedAt: at }));
    await vi.waitUntil(async () => (await hostRecord(on.hostId)).ingressReplacedAt === at);
    on.send(ready(1));
    const again = await readyAgent(10, on.token);
    expect(await hostRecord(on.hostId)).toMatchObject({ ingressReplacedAt: at });
    again.close();
  });

  it("that falls silent is found by the alarm, also where D1 is away at first, and nothing of it moves", async () => {
    const key = await account();
    const [silent, other] = [await hostFor(2), await hostFor(1)];
    const { siteId } = await runningSite(key, silent);
    const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(silent.hostId));
    await runDurableObjectAlarm(link);
    expect(await hostRecord(silent.hostId)).toMatchObject({ connected: true });
    await fallSilent(link);
    await sql("ALTER TABLE hosts RENAME TO hosts_away");
    await runDurableObjectAlarm(link);
    await sql("ALTER TABLE hosts_away RENAME TO hosts");
    await runDurableObjectAlarm(link);
    expect((await silent.closed).code).toBe(4004);
    const { connected, offlineSince } = await hostRecord(silent.hostId);
    expect(connected).toBe(false);
    expect(Date.parse(offlineSince ?? "")).toBeLessThan(Date.now() - 24_000);
    await tick();
    expect(await api<Site>(key, "GET", `/sites/${siteId}`)).toMatchObject({
      body: { hostId: silent.hostId, hostOffline: true, status: "RUNNING" },
    });
    expect(other.waiting()).toEqual([]);
    // New sites go elsewhere meanwhile.
    const [id = ""] = await paidSites(key, 1);
    await other.next("job");
    expect(await hostsOf(key, [id])).toEqual([other.hostId]);
    other.close();
  });

  it("takes a silent one for dead within 30 seconds of its last ping", async () => {
    const on = await hostFor(1);
    const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(on.hostId));
    const wait = await runInDurableObject(
      link,
      async (_, state) => ((await state.storage.getAlarm()) ?? 0) - Date.now(),
    );
    expect(wait).toBeGreaterThan(10_000);
    expect(wait).toBeLessThanOrEqual(30_000);
    on.close();
  });

  it("that falls silent is found also where the clock was set back an hour since it connected", async () => {
    const host = await hostIn("set-back");
    const socket = (await connect(host.token)).webSocket;
    const ponged = new Promise<void>((resolve) =>
      socket?.addEventListener("message", ({ data }) => data === "pong" && resolve()),
    );
    socket?.accept();
    socket?.send(JSON.stringify(hello()));
    await vi.waitUntil(async () => (await hostRecord(host.id)).connected);
    const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(host.id));
    await runInDurableObject(link, (_, state) => {
      for (const one of state.getWebSockets())
        one.serializeAttachment({
          ...(one.deserializeAttachment() as object),
          openedAt: Date.now() + 3_600_000,
        });
    });
    socket?.send("ping");
    await ponged;
    vi.useFakeTimers({ now: Date.now() + 26_000, toFake: ["Date"] });
    await runDurableObjectAlarm(link);
    vi.useRealTimers();
    expect(await hostRecord(host.id)).toMatchObject({ connected: false });
    socket?.close();
  });

  it("can be created again with its token, so that its agent connects as before and recognizes what it runs", async () => {
    const create = async (body: Record<string, unknown>) =>
      api<{ id: string; token: string; installCommand: string; reason?: string }>(
        await operator(),
        "POST",
        "/hosts",
        body,
      );
    const [forgotten, live] = [
      (await create({ name: uniqueName("forgotten") })).body,
      (await create({ name: uniqueName("live") })).body,
    ];
    const { token } = forgotten;
    // As after a restore to a moment before it was created.
    await sql("DELETE FROM hosts WHERE id = ?", forgotten.id);
    const again = await create({ name: uniqueName("again"), token });
    expect(again).toMatchObject({ status: 201, body: { token } });
    expect(again.body.installCommand).toContain(token);
    const on = await readyAgent(10, again.body);
    expect(await hostRecord(again.body.id)).toMatchObject({ connected: true });
    on.close();

    const { name } = await hostRecord(again.body.id);
    const refused = await create({ name: uniqueName("second"), token });
    expect([refused.status, refused.body.reason]).toEqual([
      409,
      `The host ${name} has this token. Its agent connects with it; to create another host with it, remove ${name} first.`,
    ]);
    expect((await create({ name: uniqueName("wrong"), token: "hst_short" })).status).toBe(400);

    await drain({ hostId: again.body.id });
    expect((await api(await operator(), "DELETE", `/hosts/${again.body.id}`)).status).toBe(200);
    const taken = await create({ name: (await hostRecord(live.id)).name, token });
    expect([taken.status, taken.body.reason]).toEqual([409, expect.stringContaining("Choose another name")]);
    const third = await create({ name, token });
    expect(third.status).toBe(201);
    (await readyAgent(10, third.body)).close();
    const { results } = await sql("SELECT arguments FROM activity WHERE resource_id = ?", third.body.id);
    expect(results).toEqual([{ arguments: JSON.stringify({ name, token: "…" }) }]);
  });
});

describe("a host that is drained", () => {
  const change = async (id: string, action: "drain" | "activate") =>
    (await api<Host>(await operator(), "PATCH", `/hosts/${id}`, { action })).body;
  const remove = async (id: string, query = "") => api(await operator(), "DELETE", `/hosts/${id}${query}`);
  /** As if the time for which the old host serves on were over. */
  const leaveNow = () => sql("UPDATE sites SET leave_at = 1 WHERE leave_at IS NOT NULL");

  it("gives its sites away one by one, each healthy elsewhere before it leaves, and then can be removed", async () => {
    const key = await account();
    const old = await hostFor(5);
    const ids = [(await runningSite(key, old)).siteId, (await runningSite(key, old)).siteId];
    const fresh = await hostFor(2);
    expect((await remove(old.hostId)).status).toBe(409);
    expect(await change(old.hostId, "drain")).toMatchObject({ status: "DRAINING", siteCount: 2 });
    for (const [index, siteId] of ids.entries()) {
      const { job, attempt } = await fresh.next("job");
      expect(job).toMatchObject({
        kind: "site.deploy",
        args: { run: { siteId }, source: { commit: deployResult.commit } },
      });
      await tick();
      expect([old.waiting(), fresh.waiting()]).toEqual([[], []]);
      expect(await site(key, siteId)).toMatchObject({ hostId: old.hostId, status: "DEPLOYING" });
      expect((await remove(old.hostId)).status).toBe(409);
      await finish(fresh, job, attempt, deployResult);
      expect(await site(key, siteId)).toMatchObject({ hostId: fresh.hostId, status: "RUNNING" });
      expect(await hostRecord(old.hostId)).toMatchObject({ siteCount: 1 - index });
    }
    await tick();
    expect(old.waiting()).toEqual([]);
    await leaveNow();
    await tick();
    for (const _ of ids) {
      const { job, attempt } = await jobOf(old, "site.evict");
      expect((await remove(old.hostId)).status).toBe(409);
      await finish(old, job, attempt);
    }
    for (const id of ids) expect(await site(key, id)).toMatchObject({ status: "RUNNING" });
    expect(await remove(old.hostId)).toMatchObject({ status: 200, body: { removed: true } });
    expect((await old.closed).code).toBe(4003);
    expect((await remove(old.hostId)).status).toBe(404);
    await expect(readyAgent(1, old.token)).rejects.toThrow("401");
    fresh.close();
  });

  it("takes no new site, until it is activated again", async () => {
    const key = await account();
    const only = await hostFor(2);
    await change(only.hostId, "drain");
    const [id = ""] = await paidSites(key, 1);
    await tick();
    expect(await hostsOf(key, [id])).toEqual([null]);
    await change(only.hostId, "activate");
    await only.next("job");
    expect(await hostsOf(key, [id])).toEqual([only.hostId]);
    only.close();
  });

  it("keeps a site that fails elsewhere, cleans up there, and does not try again at once", async () => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old);
    const fresh = await hostFor(2);
    await change(old.hostId, "drain");
    const { job, attempt } = await fresh.next("job");
    await fail(fresh, job, attempt);
    expect(await site(key, siteId)).toMatchObject({ hostId: old.hostId, status: "RUNNING" });
    await tick();
    const evict = await fresh.next("job");
    expect(evict.job).toMatchObject({ kind: "site.evict", args: { siteId } });
    await finish(fresh, evict.job, evict.attempt);
    await tick();
    expect([old.waiting(), fresh.waiting()]).toEqual([[], []]);
    old.close();
    fresh.close();
  });

  it("gives a stopped site away stopped, and what its owner asked for meanwhile follows it", async () => {
    const key = await account();
    const old = await hostFor(2);
    const stopped = await runningSite(key, old);
    await api(key, "PATCH", `/sites/${stopped.siteId}`, { action: "stop" });
    const stop = await old.next("job");
    await finish(old, stop.job, stop.attempt);
    const fresh = await hostFor(2);
    await change(old.hostId, "drain");
    const move = await fresh.next("job");
    await api(key, "PATCH", `/sites/${stopped.siteId}`, { action: "deploy" });
    await api(key, "PATCH", `/sites/${stopped.siteId}`, { action: "stop" });
    await finish(fresh, move.job, move.attempt, deployResult);
    const again = await fresh.next("job");
    expect(again.job).toMatchObject({ kind: "site.stop", args: { siteId: stopped.siteId } });
    await finish(fresh, again.job, again.attempt);
    expect(await site(key, stopped.siteId)).toMatchObject({ hostId: fresh.hostId, status: "STOPPED" });
    expect(old.waiting()).toEqual([]);
    old.close();
    fresh.close();
  });

  it("lets go of a suspended site, of which nothing runs", async () => {
    const key = await account();
    const old = await hostFor(1);
    const { siteId } = await runningSite(key, old);
    await sql("UPDATE sites SET status = 'SUSPENDED', serving = 1 WHERE id = ?", siteId);
    await change(old.hostId, "drain");
    expect((await site(key, siteId)).hostId).toBe(old.hostId);
    await sql("UPDATE sites SET serving = 0 WHERE id = ?", siteId);
    await tick();
    expect(await site(key, siteId)).toMatchObject({ status: "SUSPENDED", hostId: null });
    await tick();
    const evict = await old.next("job");
    expect(evict.job).toMatchObject({ kind: "site.evict", args: { siteId } });
    await finish(old, evict.job, evict.attempt);
    expect((await site(key, siteId)).hostId).toBe(null);
    expect((await remove(old.hostId)).status).toBe(200);
  });

  it("gives nothing away while it is silent", async () => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old);
    const fresh = await hostFor(2);
    old.close();
    await foundOffline(old.hostId);
    await change(old.hostId, "drain");
    await tick();
    expect(fresh.waiting()).toEqual([]);
    expect(await site(key, siteId)).toMatchObject({ hostId: old.hostId, status: "RUNNING" });
    fresh.close();
  });

  it("has a site deleted in the middle of its move removed from both hosts", async () => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old);
    const fresh = await hostFor(2);
    await change(old.hostId, "drain");
    const move = await fresh.next("job");
    await api(key, "DELETE", `/sites/${siteId}`);
    await fresh.next("cancel");
    // The swap had happened already.
    await finish(fresh, move.job, move.attempt, deployResult);
    const deletion = await jobOf(fresh, "site.delete");
    await finish(fresh, deletion.job, deletion.attempt);
    expect(await site(key, siteId)).toMatchObject({ status: "DELETING" });
    await tick();
    // Whichever of the two was asked for first: both are, before the record goes.
    for (let round = 0; round < 4 && (await api(key, "GET", `/sites/${siteId}`)).status === 200; round++) {
      for (const on of [old, fresh]) {
        if (on.waiting().every(({ type }) => type !== "job")) continue;
        const { job, attempt } = await jobOf(on, on === old ? "site.evict" : "site.delete");
        await finish(on, job, attempt);
      }
      await tick();
    }
    expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
    old.close();
    fresh.close();
  });

  it("and dead is removed by force only, and its sites are deployed elsewhere", async () => {
    const key = await account();
    const dead = await hostFor(3);
    const [runs, stops] = [await runningSite(key, dead), await runningSite(key, dead)];
    await api(key, "PATCH", `/sites/${stops.siteId}`, { action: "stop" });
    const stop = await dead.next("job");
    await finish(dead, stop.job, stop.attempt);
    expect((await remove(dead.hostId, "?force=1")).status).toBe(409);
    const other = await hostFor(2);
    dead.close();
    await foundOffline(dead.hostId);
    expect((await remove(dead.hostId)).status).toBe(409);
    expect((await remove(dead.hostId, "?force=1")).status).toBe(200);
    const { job, attempt } = await other.next("job");
    expect(job.args).toMatchObject({
      run: { siteId: runs.siteId },
      source: { commit: deployResult.commit },
    });
    await finish(other, job, attempt, deployResult);
    expect(await site(key, runs.siteId)).toMatchObject({ hostId: other.hostId, status: "RUNNING" });
    expect(await site(key, stops.siteId)).toMatchObject({ hostId: null, status: "STOPPED" });
    other.close();
  });

  it("whose token was stolen is removed while whoever has it is connected, and the token is worth nothing then", async () => {
    const key = await account();
    const thief = await hostFor(3);
    const { siteId } = await runningSite(key, thief);
    const other = await hostFor(2);
    const refused = await api<{ reason: string }>(
      await operator(),
      "DELETE",
      `/hosts/${thief.hostId}?force=1&connected=0`,
    );
    expect([refused.status, refused.body.reason]).toEqual([409, expect.stringContaining("connected=1")]);
    expect((await remove(thief.hostId, "?connected=1")).status).toBe(200);
    expect(await thief.closed).toEqual({ code: closeCodes.hostRemoved });
    const again = await call("/agent/connect", {
      headers: { Upgrade: "websocket", Authorization: `Bearer ${thief.token.token}` },
    });
    expect(again.status).toBe(401);
    const { job, attempt } = await other.next("job");
    expect(job.args).toMatchObject({ run: { siteId } });
    await finish(other, job, attempt, deployResult);
    expect(await site(key, siteId)).toMatchObject({ hostId: other.hostId, status: "RUNNING" });
    other.close();
  });

  it("is disconnected within a minute also if whoever removed it was interrupted, and only then", async () => {
    const [removed, other] = [await hostFor(1), await hostFor(1)];
    await sql("UPDATE hosts SET status = 'REMOVED' WHERE id = ?", removed.hostId);
    await tick();
    expect(await removed.closed).toEqual({ code: closeCodes.hostRemoved });
    await foundOffline(removed.hostId);
    expect(await hostRecord(other.hostId)).toMatchObject({ connected: true });
    other.close();
  });

  it("and was removed between an agent's connection and its hello welcomes nobody", async () => {
    const late = await agent();
    await sql("UPDATE hosts SET status = 'REMOVED' WHERE id = ?", late.hostId);
    late.send(hello());
    expect(await late.closed).toEqual({ code: closeCodes.hostRemoved });
    expect(late.waiting()).toEqual([]);
  });

  it("keeps a site beside the database that is linked to it, and says so", async () => {
    const [key, host] = [await account(), await hostFor(4)];
    const { siteId } = await runningSite(key, host);
    const data = { name: uniqueName("data"), type: "redis" };
    const { body } = await api<{ databaseId: string; invoiceToken: string }>(key, "POST", "/databases", data);
    await pay(body.invoiceToken);
    await finishNext(host, { version: "7.2" });
    await api(key, "POST", `/databases/${body.databaseId}/links`, { siteId });
    expect(await drain(host)).toMatchObject({
      siteCount: 1,
      linkedSiteCount: 1,
      notice: expect.stringMatching(/^1 database cannot move .*, and 1 site stays beside a linked database/),
    });
    expect(await hostPage()).toContain("All that can move has moved");
    host.close();
  });

  it("or has never been there can be removed at once, and only then", async () => {
    const create = async () =>
      (
        await api<{ id: string; token: string }>(await operator(), "POST", "/hosts", {
          name: uniqueName("lost"),
        })
      ).body;
    expect((await remove((await create()).id)).status).toBe(200);
    const host = await create();
    const on = await readyAgent(10, host);
    const refused = await remove(host.id);
    expect([refused.status, refused.body["reason"]]).toEqual([
      409,
      expect.stringContaining("Drain it first"),
    ]);
    on.close();
  });

  it("can be named by operators only", async () => {
    const [key, host] = [await account(), await hostFor(1)];
    expect((await api(key, "PATCH", `/hosts/${host.hostId}`, { action: "drain" })).status).toBe(403);
    expect((await api(key, "DELETE", `/hosts/${host.hostId}`)).status).toBe(403);
    expect((await remove("host_unknown")).status).toBe(404);
    host.close();
  });
});
