import {
  createExecutionContext,
  runDurableObjectAlarm,
  runInDurableObject,
  waitOnExecutionContext,
} from "cloudflare:test";
import { beforeEach, describe, expect, it } from "vitest";
import type { Host } from "../../protocol/api/hosts.ts";
import type { Site } from "../../protocol/api/sites.ts";
import worker from "../../worker/index.ts";
import {
  account,
  api,
  bindings,
  createSite,
  finish,
  operator,
  pay,
  readyAgent,
  runningSite,
  site,
  uniqueName,
} from "./service.ts";

/** What the cron does each minute. */
async function tick(): Promise<void> {
  const execution = createExecutionContext();
  worker.scheduled({} as ScheduledController, bindings, execution);
  await waitOnExecutionContext(execution);
}

const sql = (text: string, ...values: unknown[]) =>
  bindings.DB.prepare(text)
    .bind(...values)
    .run();

/** An agent of a new host with room for `sites` of the smallest pack. */
async function hostFor(sites: number, region?: string) {
  const { body } = await api<{ id: string; token: string }>(await operator(), "POST", "/hosts", {
    name: uniqueName("room"),
    ...(region && { region }),
  });
  return readyAgent(10, body, { cpuCount: 2, memoryMb: 512 + sites * 256, diskFreeMb: 4321 });
}

async function hostRecord(id: string): Promise<Host> {
  const { body } = await api<{ data: Host[] }>(await operator(), "GET", "/hosts");
  const found = body.data.find((host) => host.id === id);
  if (!found) throw new Error(`no host ${id}`);
  return found;
}

/** Asks until it is so: what an object hears of a socket's end comes a moment later. */
async function until<T>(ask: () => Promise<T>, wanted: (value: T) => boolean): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const value = await ask();
    if (wanted(value) || attempt > 100) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function paidSites(key: string, count: number, overrides: Record<string, unknown> = {}) {
  const made = [];
  for (let index = 0; index < count; index++) made.push(await createSite(key, overrides));
  await Promise.all(made.map(({ invoiceToken }) => pay(invoiceToken)));
  return made.map(({ siteId }) => siteId);
}

const hostsOf = (key: string, ids: string[]) =>
  Promise.all(ids.map(async (id) => (await site(key, id)).hostId));

// Hosts and work of earlier tests are out of the way.
beforeEach(async () => {
  await sql("UPDATE hosts SET status = 'REMOVED'");
  await sql("UPDATE jobs SET status = 'CANCELLED' WHERE status IN ('QUEUED', 'LEASED')");
  await sql("UPDATE sites SET status = 'FAILED' WHERE status IN ('DEPLOYING', 'DELETING')");
});

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
    expect(await hostRecord(large.hostId)).toMatchObject({ freeMemoryMb: 0, siteCount: 2, diskFreeMb: 4321 });
    small.close();
    large.close();
  });

  it("that fits nowhere goes where another one leaves", async () => {
    const key = await account();
    const only = await hostFor(1);
    const { siteId } = await runningSite(key, only);
    const [waits = ""] = await paidSites(key, 1);
    await tick();
    expect(await hostsOf(key, [waits])).toEqual([null]);
    await api(key, "DELETE", `/sites/${siteId}`);
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

  it("that no host could take in time fails with what was missing", async () => {
    const key = await account();
    const only = await hostFor(0, "eu");
    const ids = [
      ...(await paidSites(key, 1, { region: "mars" })),
      ...(await paidSites(key, 1, { region: "eu" })),
    ];
    for (const id of ids) await sql("UPDATE jobs SET deadline_at = 1 WHERE site_id = ?", id);
    await tick();
    const [far, full] = await Promise.all(ids.map((id) => site(key, id)));
    expect(far).toMatchObject({
      status: "FAILED",
      latestDeployment: { error: expect.stringContaining("region mars") },
    });
    expect(full?.latestDeployment?.error).toMatch(/256 MB .* the most free has 0 MB/);
    only.close();
  });

  it("does not wait for a busy host for ever, when another has room", async () => {
    const key = await account();
    const [best, other] = [await hostFor(5), await hostFor(1)];
    best.send({ type: "ready", free: 0 });
    // Only once that is known: the answer to a frame of the same socket comes after it.
    await new Promise((resolve) => setTimeout(resolve, 50));
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

describe("a host", () => {
  const offline = (id: string) =>
    until(
      () => hostRecord(id),
      ({ connected }) => !connected,
    );

  it("whose agent went away is shown so, with its sites, until it says hello again", async () => {
    const key = await account();
    const on = await hostFor(2);
    const { siteId } = await runningSite(key, on);
    expect(await hostRecord(on.hostId)).toMatchObject({ connected: true, offlineSince: null });
    on.close();
    expect(await offline(on.hostId)).toMatchObject({
      connected: false,
      offlineSince: expect.stringContaining("T"),
    });
    expect(await site(key, siteId)).toMatchObject({ status: "RUNNING", hostOffline: true });
    const again = await readyAgent(10, on.token);
    expect(await hostRecord(on.hostId)).toMatchObject({ connected: true, offlineSince: null });
    expect(await site(key, siteId)).toMatchObject({ hostOffline: false });
    again.close();
  });

  it("that falls silent is found by the alarm, and nothing of it moves", async () => {
    const key = await account();
    const [silent, other] = [await hostFor(2), await hostFor(1)];
    const { siteId } = await runningSite(key, silent);
    const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(silent.hostId));
    await runDurableObjectAlarm(link);
    expect(await hostRecord(silent.hostId)).toMatchObject({ connected: true });
    await runInDurableObject(link, (_, state) => {
      for (const socket of state.getWebSockets()) {
        const attachment = socket.deserializeAttachment() as { openedAt: number };
        socket.serializeAttachment({ ...attachment, openedAt: Date.now() - 25_000 });
      }
    });
    // Its hello came before the silence.
    await sql("UPDATE hosts SET connected_at = connected_at - 26000 WHERE id = ?", silent.hostId);
    await runDurableObjectAlarm(link);
    expect((await silent.closed).code).toBe(4004);
    expect(await hostRecord(silent.hostId)).toMatchObject({ connected: false });
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
});
