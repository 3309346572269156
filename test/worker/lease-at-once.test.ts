import { beforeEach, describe, expect, it, vi } from "vitest";
import { contextOf } from "../../worker/compose.ts";
import { triggerWebhook } from "../../worker/services/webhooks/trigger.ts";
import { crashingDatabase } from "./crashing-database.ts";
import { sql, tick } from "./hosts-service.ts";
import {
  account,
  api,
  bindings,
  deployResult,
  finish,
  greetedAgent,
  runningSite,
  site,
  ready,
} from "./service.ts";
import { rows } from "./stripe-service.ts";

let key: string;
let host: Awaited<ReturnType<typeof greetedAgent>>;
let siteId: string;

beforeEach(async () => {
  await sql("UPDATE hosts SET status = 'REMOVED'");
  key = await account();
  host = await greetedAgent({ slots: 1 });
  host.send(ready(1));
  ({ siteId } = await runningSite(key, host));
  return () => host.close();
});

const deploy = () => api<{ id: string }>(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
const statuses = async () =>
  (
    await rows<{ status: string }>("SELECT status FROM deployments WHERE site_id = ? ORDER BY number", siteId)
  ).map(({ status }) => status);
const webhookSegment = async () => {
  const { body } = await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`);
  return body.url.split("/").at(-1) ?? "";
};

const anything = { event: null, refs: null, defaultBranch: null };

describe("a deployment that its site's host has a slot for", () => {
  it("is leased in the round trip that queues it, and sent without having been asked for", async () => {
    host.send(ready(0));
    await deploy();
    const { job, attempt } = await host.next("job");
    expect(job).toMatchObject({ kind: "site.deploy", args: { run: { siteId } } });
    expect(await statuses()).toEqual(["LIVE", "BUILDING"]);
    await finish(host, job, attempt, deployResult);
    expect(await statuses()).toEqual(["SUPERSEDED", "LIVE"]);
    expect((await site(key, siteId)).status).toBe("RUNNING");
  });

  it("is one round trip to D1, from the webhook to the host", async () => {
    const database = crashingDatabase(bindings.DB, { roundTrip: 1, when: "before" });
    const segment = await webhookSegment();
    const deferred: Promise<unknown>[] = [];
    const ctx = contextOf({ ...bindings, DB: database }, { type: "link" }, (work) => deferred.push(work));
    await triggerWebhook(ctx, segment, anything);
    await Promise.all(deferred);
    expect((await host.next("job")).job.kind).toBe("site.deploy");
  });

  it.each([
    ["every slot is taken", async () => sql("UPDATE hosts SET slots = 0")],
    [
      "the last of several slots is free and the account has another",
      async () => {
        await sql("UPDATE hosts SET slots = 2");
        await sql(
          `INSERT INTO jobs (id, kind, status, host_id, lane, site_id, account_id, deadline_at, created_at, leased_at)
           SELECT 'job_other', 'site.deploy', 'LEASED', host_id, 'other', id, account_id, ?, 1, 1 FROM sites WHERE id = ?`,
          Date.now() + 60_000,
          siteId,
        );
      },
    ],
    ["the host is not heard", async () => sql("UPDATE hosts SET offline_since = 1")],
    ["its agent is one that only asks", async () => sql("UPDATE hosts SET slots = NULL")],
    [
      "the site's room is gone, and its data keep it there",
      async () => {
        await sql("UPDATE hosts SET memory_mb = 1");
        await sql("UPDATE sites SET reserved = 0");
        await sql("INSERT INTO site_volumes (site_id, name, created_at) VALUES (?, 'data', 1)", siteId);
      },
    ],
  ])("waits where %s", async (_, change) => {
    host.send(ready(0));
    await change();
    await deploy();
    expect((await statuses()).at(-1)).toBe("QUEUED");
  });

  it("waits where the agent is to be replaced, for the next one", async () => {
    host.send(ready(0, { slots: 0 }));
    await vi.waitUntil(
      async () =>
        (await rows<{ slots: number }>("SELECT slots FROM hosts WHERE id = ?", host.token.id))[0]?.slots ===
        0,
    );
    await deploy();
    expect(await statuses()).toEqual(["LIVE", "QUEUED"]);
    expect(host.waiting().filter(({ type }) => type === "job")).toEqual([]);
    const next = await greetedAgent({ slots: 1 }, host.token);
    next.send(ready(1));
    expect((await next.next("job")).attempt).toBe(1);
    next.close();
  });

  it("waits while the host's engine does not answer, and comes when it does again", async () => {
    host.send(ready(0, { slots: 0 }));
    const slots = async () =>
      (await rows<{ slots: number }>("SELECT slots FROM hosts WHERE id = ?", host.token.id))[0]?.slots;
    await vi.waitUntil(async () => (await slots()) === 0);
    await deploy();
    expect(await statuses()).toEqual(["LIVE", "QUEUED"]);
    host.send(ready(1, { slots: 1 }));
    expect((await host.next("job")).attempt).toBe(1);
    await vi.waitUntil(async () => (await slots()) === 1);
  });

  it("waits behind what is under way on the site, and comes when that has ended", async () => {
    await sql("UPDATE hosts SET slots = 9");
    await deploy();
    const first = await host.next("job");
    await deploy();
    expect(await statuses()).toEqual(["LIVE", "BUILDING", "QUEUED"]);
    await finish(host, first.job, first.attempt, deployResult);
    host.send(ready(1));
    const second = await host.next("job");
    expect(second.job.id).not.toBe(first.job.id);
    expect(await statuses()).toEqual(["SUPERSEDED", "LIVE", "BUILDING"]);
  });
});

describe("a deployment that was leased by somebody who ended before the host was told", () => {
  beforeEach(async () => {
    const cutOff = crashingDatabase(bindings.DB, { roundTrip: 0, when: "after" });
    const segment = await webhookSegment();
    const ctx = contextOf({ ...bindings, DB: cutOff }, { type: "link" }, () => undefined);
    await expect(triggerWebhook(ctx, segment, anything)).rejects.toThrow("After");
    expect(await statuses()).toEqual(["LIVE", "BUILDING"]);
    expect(host.waiting().filter(({ type }) => type === "job")).toEqual([]);
  });
  const aWhileAfter = () => sql("UPDATE jobs SET leased_at = 1 WHERE status = 'LEASED'");

  it("is offered anew by the minute's timer, once", async () => {
    await tick();
    expect(host.waiting()).toEqual([]);
    await aWhileAfter();
    await tick();
    const { job, attempt } = await host.next("job");
    expect(attempt).toBe(2);
    await aWhileAfter();
    await tick();
    expect(host.waiting()).toEqual([]);
    await finish(host, job, attempt, deployResult);
    expect(await statuses()).toEqual(["SUPERSEDED", "LIVE"]);
  });

  it("is offered when its agent connects again", async () => {
    const again = await greetedAgent({ slots: 1 }, host.token);
    expect((await again.next("job")).attempt).toBe(2);
    again.close();
  });

  it("is cancelled when it was to be", async () => {
    const [{ id } = { id: "" }] = await rows<{ id: string }>(
      "SELECT id FROM deployments WHERE status = 'BUILDING' AND site_id = ?",
      siteId,
    );
    await api(key, "POST", `/deployments/${id}/cancel`);
    await aWhileAfter();
    await tick();
    expect(await statuses()).toEqual(["LIVE", "CANCELLED"]);
    expect(host.waiting().filter(({ type }) => type === "job")).toEqual([]);
  });
});
