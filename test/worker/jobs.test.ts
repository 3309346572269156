import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Env } from "../../worker/env.ts";
import { contextOf } from "../../worker/compose.ts";
import { purgeEachHour } from "../../worker/jobs/purge-old.ts";
import type { HostLink } from "../../worker/objects/host-link.ts";
import { tick } from "./hosts-service.ts";
import {
  account,
  agent,
  api,
  bindings,
  call,
  createSite,
  deployingSite,
  deployResult,
  fail,
  finish,
  greetedAgent,
  hello,
  operator,
  pay,
  readyAgent,
  runningSite,
  site,
  uniqueName,
  ready,
  runningDatabase,
} from "./service.ts";

const expireJobs = (siteId: string) =>
  bindings.DB.prepare(
    "UPDATE jobs SET leased_at = leased_at - deadline_at + 1, deadline_at = 1 WHERE site_id = ?",
  )
    .bind(siteId)
    .run();

// A job that nobody placed would be taken by the next test's agent.
beforeEach(async () => {
  await bindings.DB.prepare(
    "UPDATE jobs SET status = 'CANCELLED' WHERE status IN ('QUEUED', 'LEASED')",
  ).run();
  await bindings.DB.prepare(
    "UPDATE sites SET status = 'FAILED' WHERE status IN ('DEPLOYING', 'DELETING')",
  ).run();
});

describe("a host's link", () => {
  it("refuses a token that enrols no host", async () => {
    for (const token of ["", "hst_nonsense", `hst_0${"a".repeat(43)}`]) {
      const response = await call("/agent/connect", {
        headers: { Upgrade: "websocket", Authorization: `Bearer ${token}` },
      });
      expect(response.status).toBe(401);
    }
  });

  it("is not guessed: an address has so many wrong tokens a minute, and hosts at others go on", async () => {
    const connect = async (token: string, address: string) =>
      (
        await call("/agent/connect", {
          headers: { Authorization: `Bearer ${token}`, "CF-Connecting-IP": address },
        })
      ).status;
    const wrong = `hst_0${"a".repeat(43)}`;
    await Promise.all(Array.from({ length: 600 }, () => connect(wrong, "203.0.113.150")));
    expect(await connect(wrong, "203.0.113.150")).toBe(429);
    const { body } = await api<{ token: string }>(await operator(), "POST", "/hosts", {
      name: uniqueName("host"),
    });
    // It is let in, and asks for no WebSocket.
    expect(await connect(body.token, "203.0.113.151")).toBe(426);
  });

  it("stores the enrolment token only as a hash", async () => {
    const { body } = await api<{ id: string; token: string }>(await operator(), "POST", "/hosts", {
      name: "hashed",
    });
    const { results } = await bindings.DB.prepare("SELECT * FROM hosts").all();
    expect(JSON.stringify(results)).not.toContain(body.token);
  });

  it("lets only operators create hosts", async () => {
    expect((await api(await account(), "POST", "/hosts", { name: "mine" })).status).toBe(403);
    expect((await api(await account(), "GET", "/hosts")).status).toBe(403);
  });

  it("has an agent connect twenty times in ten seconds at most: what was under way stays so, and it may come back after", async () => {
    const key = await account();
    const first = await readyAgent();
    const { siteId, job, attempt } = await deployingSite(key, first);
    const connect = () =>
      call("/agent/connect", {
        headers: { Upgrade: "websocket", Authorization: `Bearer ${first.token.token}` },
      });
    const answers = [];
    for (let count = 0; count < 100; count++) answers.push(await connect());
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(81);
    expect(refused[0]?.headers.get("Retry-After")).toMatch(/^([1-9]|10)$/);
    expect(await refused[0]?.json()).toEqual({ error: "rate_limited" });
    expect((await first.closed).code).toBe(4001);
    vi.useFakeTimers({ now: Date.now() + 10_000, toFake: ["Date"] });
    const again = await greetedAgent({ running: [{ jobId: job.id, attempt }] }, first.token);
    await finish(again, job, attempt, deployResult);
    expect((await site(key, siteId)).status).toBe("RUNNING");
    vi.useRealTimers();
    again.close();
  });

  it("keeps one socket per host: the newest wins, and the older one is told so", async () => {
    const first = await readyAgent();
    const second = await readyAgent(10, first.token);
    expect((await first.closed).code).toBe(4001);
    const key = await account();
    const { invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    await second.next("job");
    second.close();
  });

  it("that is closed for a newer one while it offers work leaves the work to that", async () => {
    const { invoiceToken, siteId } = await createSite(await account());
    await pay(invoiceToken);
    const become = (status: string) =>
      bindings.DB.prepare("UPDATE jobs SET status = ? WHERE site_id = ?").bind(status, siteId).run();
    await become("DONE");
    const older = await readyAgent();
    const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(older.hostId));
    // Behind what its being ready set off.
    await link.wake();
    await become("QUEUED");
    await runInDurableObject(link, async (instance: HostLink) => {
      const held = instance as unknown as { env: Env };
      const { env } = held;
      const batch: D1Database["batch"] = async (statements) => {
        held.env = env;
        const answers = await env.DB.batch(statements);
        const headers = { Upgrade: "websocket", "X-Berth-Host": older.hostId };
        (await instance.fetch(new Request("https://berth/", { headers }))).webSocket?.accept();
        return answers as never;
      };
      held.env = { ...env, DB: { prepare: (sql: string) => env.DB.prepare(sql), batch } as D1Database };
      await instance.wake();
    });
    const newer = await readyAgent(10, older.token);
    expect((await newer.next("job")).job.args).toMatchObject({ run: { siteId } });
    newer.close();
  });

  it("says what is revised before and amid a hello after the welcome", async () => {
    const connected = await agent();
    const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(connected.hostId));
    const lease = { jobId: `job_0${"0".repeat(26)}` as const, attempt: 1 } as Parameters<
      HostLink["revise"]
    >[0];
    await link.revise(lease, "cancel");
    await runInDurableObject(link, (instance: HostLink) => {
      const held = instance as unknown as { env: Env };
      const { env } = held;
      // Asked once the jobs of the hello were read.
      const fetch = async (request: Request) => {
        held.env = env;
        await instance.revise({ ...lease, attempt: 2 }, "drop");
        return env.ASSETS.fetch(request);
      };
      held.env = { ...env, ASSETS: { fetch } as unknown as Fetcher };
    });
    connected.send(hello());
    await expect
      .poll(() => connected.waiting().map(({ type }) => type))
      .toEqual(["welcome", "cancel", "drop"]);
    connected.close();
  });

  it("closes on anything that is not the protocol", async () => {
    for (const frame of [{ type: "nonsense" }, ready(1), { ...hello(), protocol: 2 }]) {
      const connected = await agent();
      connected.send(frame);
      expect((await connected.closed).code).toBe(4002);
    }
  });

  it("gives an agent no more jobs than it has room for", async () => {
    const key = await account();
    const one = await readyAgent(1);
    const [first, second] = [await createSite(key), await createSite(key)];
    await pay(first.invoiceToken);
    await pay(second.invoiceToken);
    const { job, attempt } = await one.next("job");
    expect(one.waiting()).toEqual([]);
    await finish(one, job, attempt, deployResult);
    expect(one.waiting()).toEqual([]);
    one.send(ready(1));
    expect((await one.next("job")).job.id).not.toBe(job.id);
    one.close();
  });

  it("gives an agent a stop though others' builds take all its room, and no more of those than it has room for", async () => {
    const [key, one] = [await account(), await readyAgent()];
    const stopped = [await runningSite(key, one), await runningSite(key, one)];
    one.send(ready(0, { freeShort: 1 }));
    const { invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    for (const { siteId } of stopped) await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
    const { job } = await one.next("job");
    expect(job).toMatchObject({ kind: "site.stop", args: { siteId: stopped[0]?.siteId } });
    expect(one.waiting()).toEqual([]);
    one.send(ready(0, { freeShort: 1 }));
    expect((await one.next("job")).job).toMatchObject({ args: { siteId: stopped[1]?.siteId } });
    one.send(ready(1, { freeShort: 0 }));
    expect((await one.next("job")).job.kind).toBe("site.deploy");
    one.close();
  });

  it("gives an agent as many jobs as it has room for, also when more becomes free while one is on its way", async () => {
    const key = await account();
    const one = await readyAgent(0);
    const [first, second] = [await createSite(key), await createSite(key)];
    await pay(first.invoiceToken);
    await pay(second.invoiceToken);
    one.send(ready(1));
    one.send(ready(2));
    await one.next("job");
    await vi.waitFor(() => expect(one.waiting()).toEqual([expect.objectContaining({ type: "job" })]), 10_000);
    one.close();
  });
});

describe("a job", () => {
  it("paid for while no host is there waits for the first that connects", async () => {
    await bindings.DB.prepare("UPDATE hosts SET status = 'DRAINING'").run();
    const key = await account();
    const { siteId, invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    expect(await site(key, siteId)).toMatchObject({ status: "DEPLOYING", hostId: null });
    const late = await readyAgent();
    const { job } = await late.next("job");
    expect(job.args).toMatchObject({ run: { siteId } });
    expect((await site(key, siteId)).hostId).toBe(late.hostId);
    late.close();
  });

  it("lost with its agent is offered anew, with a higher attempt, to the one that comes back", async () => {
    const key = await account();
    const before = await readyAgent();
    const { siteId, invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    const lost = await before.next("job");
    before.close();
    const after = await readyAgent(10, before.token);
    const again = await after.next("job");
    // Everything is as it was, but for the moment at which it was read anew.
    const unread = ({ args }: { args: unknown }) =>
      JSON.stringify(args, (name, value: unknown) => (name === "readAtMs" ? undefined : value));
    expect([again.job.id, again.job.kind, unread(again.job)]).toEqual([
      lost.job.id,
      lost.job.kind,
      unread(lost.job),
    ]);
    expect(again.attempt).toBe(lost.attempt + 1);
    after.send({ type: "done", jobId: lost.job.id, attempt: lost.attempt, result: deployResult });
    await after.next("ack");
    expect((await site(key, siteId)).status).toBe("DEPLOYING");
    await finish(after, again.job, again.attempt, deployResult);
    expect((await site(key, siteId)).status).toBe("RUNNING");
    after.close();
  });

  it("still worked on after a reconnect stays the agent's own", async () => {
    const key = await account();
    const before = await readyAgent();
    const { siteId, job, attempt } = await deployingSite(key, before);
    before.close();
    const after = await greetedAgent({ running: [{ jobId: job.id, attempt }] }, before.token);
    after.send(ready(1));
    await finish(after, job, attempt, deployResult);
    expect(after.waiting()).toEqual([]);
    expect((await site(key, siteId)).status).toBe("RUNNING");
    after.close();
  });

  it("tells a host that lost what serves: what is to run is restarted, what is stopped is stopped, once", async () => {
    const key = await account();
    const other = await readyAgent();
    const elsewhere = await runningSite(key, other);
    const before = await readyAgent();
    const running = await runningSite(key, before);
    const stopped = await runningSite(key, before);
    await api(key, "PATCH", `/sites/${stopped.siteId}`, { action: "stop" });
    const stop = await before.next("job");
    await finish(before, stop.job, stop.attempt);
    const lostSites = [running, stopped, elsewhere].map(({ siteId }) => siteId);
    let token = before.token;
    for (const time of ["first", "again"]) {
      const after = await greetedAgent({ lostSites }, token);
      if (time === "again") {
        after.send(ready(10));
        const jobs = [await after.next("job"), await after.next("job")];
        expect(jobs.map(({ job }) => [job.kind, "run" in job.args ? job.args.run.siteId : job.args])).toEqual(
          [
            ["site.restart", running.siteId],
            ["site.stop", expect.objectContaining({ siteId: stopped.siteId })],
          ],
        );
        for (const { job, attempt } of jobs) await finish(after, job, attempt);
      }
      expect(after.waiting()).toEqual([]);
      token = after.token;
      after.close();
    }
    expect([await site(key, running.siteId), await site(key, stopped.siteId)]).toMatchObject([
      { status: "RUNNING" },
      { status: "STOPPED" },
    ]);
    expect(other.waiting()).toEqual([]);
    for (const one of [before, other]) one.close();
  });

  it("that is no longer the agent's own is dropped at its hello", async () => {
    const connected = await agent();
    const jobId = `job_0${"0".repeat(26)}`;
    connected.send(hello({ running: [{ jobId, attempt: 1 }] }));
    expect(await connected.next("drop")).toEqual({ type: "drop", jobId, attempt: 1 });
    connected.close();
  });

  it("reported done twice is recorded once and acknowledged twice", async () => {
    const key = await account();
    const on = await readyAgent();
    const { siteId, job, attempt } = await deployingSite(key, on);
    await finish(on, job, attempt, deployResult);
    await finish(on, job, attempt, { ...deployResult, commit: "c".repeat(40) });
    expect((await site(key, siteId)).currentDeployment?.commit).toBe(deployResult.commit);
    on.close();
  });

  it("of another host cannot be reported", async () => {
    const key = await account();
    const owner = await readyAgent();
    const { siteId, job, attempt } = await deployingSite(key, owner);
    const thief = await readyAgent();
    await finish(thief, job, attempt, deployResult);
    expect((await site(key, siteId)).status).toBe("DEPLOYING");
    owner.close();
    thief.close();
  });

  it("that outlives its deadline ends FAILED with a reason, and the agent is told to stop", async () => {
    const key = await account();
    const on = await readyAgent();
    const { siteId, job, attempt } = await deployingSite(key, on, { startTimeoutSeconds: 540 });
    await expireJobs(siteId);
    await tick();
    expect(await site(key, siteId)).toMatchObject({
      status: "FAILED",
      // Nine of them are the site's own.
      latestDeployment: { status: "FAILED", error: expect.stringContaining("45 minutes") },
    });
    expect(await on.next("drop")).toMatchObject({ jobId: job.id, attempt });
    await finish(on, job, attempt, deployResult);
    expect((await site(key, siteId)).status).toBe("FAILED");
    on.close();
  });

  it("that no host takes ends FAILED with a reason", async () => {
    const key = await account();
    const { siteId, invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    await expireJobs(siteId);
    await tick();
    expect(await site(key, siteId)).toMatchObject({
      status: "FAILED",
      latestDeployment: { error: expect.stringContaining("No host") },
    });
  });

  it("that takes its host down again and again is given up", async () => {
    const key = await account();
    let on = await readyAgent();
    const { siteId, invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    for (let attempt = 1; attempt <= 5; attempt++) {
      expect((await on.next("job")).attempt).toBe(attempt);
      on.close();
      on = await readyAgent(10, on.token);
    }
    expect(await site(key, siteId)).toMatchObject({
      status: "FAILED",
      latestDeployment: { error: expect.stringContaining("interrupted") },
    });
    on.close();
  });

  it("that restarts is one, however often it is asked for before its turn", async () => {
    const key = await account();
    const host = await readyAgent();
    const { siteId } = await runningSite(key, host);
    const { databaseId } = await runningDatabase(key, host);
    host.send(ready(0));
    for (const path of [`/sites/${siteId}`, `/databases/${databaseId}`])
      for (let count = 0; count < 3; count++)
        expect((await api(key, "PATCH", path, { action: "restart" })).status).toBe(202);
    host.send(ready(10));
    const restarted = [await host.next("job"), await host.next("job")];
    for (const { job, attempt } of restarted) await finish(host, job, attempt, { version: "17.2" });
    expect(restarted.map(({ job }) => job.kind)).toEqual(["site.restart", "database.restart"]);
    expect(host.waiting()).toEqual([]);
    host.close();
  });

  it("missing for a site that waits for one is made by the reaper", async () => {
    const key = await account();
    const on = await readyAgent();
    const { siteId } = await runningSite(key, on);
    await bindings.DB.prepare("UPDATE sites SET status = 'DELETING' WHERE id = ?").bind(siteId).run();
    await tick();
    const { job, attempt } = await on.next("job");
    expect(job.kind).toBe("site.delete");
    await fail(on, job, attempt, "The engine is busy: it is tried again.");
    await tick();
    const again = await on.next("job");
    await finish(on, again.job, again.attempt);
    expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
    on.close();
  });

  it("that ended long ago is forgotten, and that of a deployment with its site", async () => {
    const key = await account();
    const on = await readyAgent();
    const { siteId } = await runningSite(key, on);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    const { job, attempt } = await on.next("job");
    await finish(on, job, attempt);
    const kinds = async () => {
      const { results } = await bindings.DB.prepare("SELECT kind FROM jobs WHERE site_id = ? ORDER BY seq")
        .bind(siteId)
        .all<{ kind: string }>();
      return results.map(({ kind }) => kind);
    };
    const purgeAt = (minute: number) => {
      const now = new Date();
      now.setUTCMinutes(minute);
      return purgeEachHour({ ...contextOf(bindings, { type: "system" }, () => undefined), now: () => now });
    };
    await purgeAt(50);
    expect(await kinds()).toEqual(["site.deploy", "site.restart"]);
    await expireJobs(siteId);
    await purgeAt(49);
    expect(await kinds()).toEqual(["site.deploy", "site.restart"]);
    await purgeAt(50);
    expect(await kinds()).toEqual(["site.deploy"]);
    await api(key, "DELETE", `/sites/${siteId}`);
    const deletion = await on.next("job");
    await finish(on, deletion.job, deletion.attempt);
    await expireJobs(siteId);
    await purgeAt(50);
    expect(await kinds()).toEqual([]);
    on.close();
  });
});

describe("a deployment's log", () => {
  const line = (text: string) => ({ at: "2026-01-01T00:00:00.000Z", stream: "stdout", text });

  it("keeps each line once, in order, over repeats and attempts, and ends with the outcome", async () => {
    const key = await account();
    const before = await readyAgent();
    const { siteId, invoiceToken } = await createSite(key);
    await pay(invoiceToken);
    const first = await before.next("job");
    const deploymentId = (await site(key, siteId)).latestDeployment?.id;
    const log = (on: typeof before, attempt: number, firstSeq: number, ...texts: string[]) =>
      on.send({ type: "log", jobId: first.job.id, attempt, deploymentId, firstSeq, lines: texts.map(line) });
    log(before, 1, 1, "one", "two");
    expect(await before.next("logAck")).toMatchObject({ lastSeq: 2 });
    log(before, 1, 2, "two", "three");
    expect(await before.next("logAck")).toMatchObject({ lastSeq: 3 });
    before.close();
    const after = await readyAgent(10, before.token);
    const again = await after.next("job");
    log(after, 2, 1, "one again");
    await after.next("logAck");
    const following = await call(`/api/v1/deployments/${deploymentId}/logs?follow=1`, {
      headers: { Authorization: `Bearer ${key}`, "Last-Event-ID": "2" },
    });
    expect(following.headers.get("Content-Type")).toBe("text/event-stream");
    await finish(after, again.job, again.attempt, deployResult);
    const events = await following.text();
    expect([...events.matchAll(/"text":"([^"]*)"/g)].map(([, text]) => text)).toEqual([
      "three",
      expect.stringContaining("attempt 2"),
      "one again",
      "Deployment is live.",
    ]);
    expect(events).toContain("event: end");
    const { body } = await api<{ data: { seq: number; text: string }[] }>(
      key,
      "GET",
      `/deployments/${deploymentId}/logs`,
    );
    expect(body.data.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
    after.close();
  });

  it("takes lines only for the lease it belongs to", async () => {
    const key = await account();
    const on = await readyAgent();
    const { siteId, job, attempt } = await deployingSite(key, on);
    const deploymentId = (await site(key, siteId)).latestDeployment?.id;
    const stranger = await readyAgent();
    stranger.send({
      type: "log",
      jobId: job.id,
      attempt,
      deploymentId,
      firstSeq: 1,
      lines: [line("forged")],
    });
    await stranger.next("logAck");
    const { body } = await api<{ data: unknown[] }>(key, "GET", `/deployments/${deploymentId}/logs`);
    expect(body.data).toEqual([]);
    on.close();
    stranger.close();
  });

  it("is only its owner's to read", async () => {
    const key = await account();
    const on = await readyAgent();
    const { siteId } = await runningSite(key, on);
    const deploymentId = (await site(key, siteId)).latestDeployment?.id;
    expect((await api(await account(), "GET", `/deployments/${deploymentId}/logs`)).status).toBe(403);
    expect((await api(await account(), "GET", `/deployments/${deploymentId}`)).status).toBe(403);
    on.close();
  });
});
