import { beforeEach, describe, expect, it } from "vitest";
import type { Command } from "../../protocol/api/commands.ts";
import type { Page } from "../../protocol/api/common.ts";
import type { LogLine } from "../../protocol/api/deployments.ts";
import type { Schedule } from "../../protocol/api/schedules.ts";
import { drain, tick } from "./hosts-service.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  deployResult,
  fail,
  finish,
  finishNext,
  greetedAgent,
  operator,
  readyAgent,
  run as execute,
  runningSite,
  site,
  type Agent,
  ready as room,
} from "./service.ts";

const run = (key: string, siteId: string, body: object = { command: "echo hello" }) =>
  api<Command & { reason: string }>(key, "POST", `/sites/${siteId}/commands`, body);
const command = async (key: string, id: string) => (await api<Command>(key, "GET", `/commands/${id}`)).body;
const cancel = (key: string, id: string) => api<Command>(key, "POST", `/commands/${id}/cancel`);
const listed = async (key: string, siteId: string, search = "") =>
  (await api<Page<Command>>(key, "GET", `/sites/${siteId}/commands${search}`)).body;

/** Work of earlier tests would be taken by the next test's agent. */
beforeEach(async () => {
  await execute("UPDATE jobs SET status = 'CANCELLED' WHERE status IN ('QUEUED', 'LEASED')");
  await execute("UPDATE sites SET status = 'FAILED' WHERE status IN ('DEPLOYING', 'DELETING')");
  await execute("DELETE FROM schedules");
});

/** A running site, and its agent with room for so many commands. */
async function scene(freeCommands = 10) {
  const [key, host] = [await account(), await readyAgent()];
  const { siteId } = await runningSite(key, host);
  const ready = (free = 10, commands = freeCommands) => host.send(room(free, { freeCommands: commands }));
  ready();
  return { key, host, siteId, ready };
}

/** The next command the agent is given. */
async function given(host: Agent) {
  const { job, attempt, timeoutMs } = await host.next("job");
  if (job.kind !== "site.command") throw new Error(`Was given ${job.kind}`);
  return { job, attempt, args: job.args, timeoutMs };
}
const succeed = (host: Agent, { job, attempt }: Awaited<ReturnType<typeof given>>, exitCode = 0) =>
  finish(host, job, attempt, {
    exitCode,
    error: exitCode === 0 ? null : `exited with ${exitCode}: its log says what happened.`,
  });

describe("a command", () => {
  it("runs in the deployment in service with the newest environment, and says how it ended", async () => {
    const { key, host, siteId } = await scene();
    const envVariables = [{ key: "COLOUR", value: "blue" }];
    expect((await api(key, "PATCH", `/sites/${siteId}`, { envVariables })).status).toBe(200);
    const { status, body, headers } = await run(key, siteId, {
      command: "npm run migrate",
      timeoutSeconds: 90,
    });
    expect([status, headers.get("Location")]).toEqual([202, `/api/v1/commands/${body.id}`]);
    expect(body).toMatchObject({
      siteId,
      command: "npm run migrate",
      timeoutSeconds: 90,
      trigger: "api",
      scheduleId: null,
    });
    const taken = await given(host);
    const currentDeployment = (await site(key, siteId)).latestDeployment?.id;
    expect(taken.args).toMatchObject({
      commandId: body.id,
      command: "npm run migrate",
      timeoutSeconds: 90,
      deploymentId: currentDeployment,
    });
    expect(taken.args.run.env).toMatchObject([{ key: "COLOUR", value: "blue" }]);
    expect(taken.timeoutMs).toBeGreaterThan(90_000);
    expect(await command(key, body.id)).toMatchObject({
      status: "RUNNING",
      deploymentId: currentDeployment,
      exitCode: null,
    });
    await succeed(host, taken);
    expect(await command(key, body.id)).toMatchObject({ status: "SUCCEEDED", exitCode: 0, error: null });
    const failing = await run(key, siteId, { command: "false" });
    await succeed(host, await given(host), 3);
    const failed = await command(key, failing.body.id);
    expect(failed).toMatchObject({
      status: "FAILED",
      exitCode: 3,
      error: expect.stringMatching(/^exited with 3/),
    });
    expect([failed.startedAt, failed.finishedAt]).not.toContain(null);
    expect((await site(key, siteId)).status).toBe("RUNNING");
  });

  it("has its lines kept once and in order, followed live, and gone on with after the last one seen", async () => {
    const { key, host, siteId } = await scene();
    const { id } = (await run(key, siteId)).body;
    const taken = await given(host);
    const lease = { jobId: taken.job.id, attempt: taken.attempt };
    const say = (firstSeq: number, ...texts: string[]) =>
      host.send({
        type: "log",
        ...lease,
        deploymentId: id,
        firstSeq,
        lines: texts.map((text) => ({ at: "2026-11-21T10:00:00.123456789Z", stream: "stdout", text })),
      });
    const follow = (headers: Record<string, string>) =>
      call(`/api/v1/commands/${id}/logs?follow=1`, {
        headers: { Authorization: `Bearer ${key}`, ...headers },
      });
    const live = await follow({});
    say(1, "one", "two");
    await host.next("logAck");
    say(2, "two", "three");
    await host.next("logAck");
    // Another deployment's or command's lines are none of this lease's.
    host.send({
      type: "log",
      ...lease,
      deploymentId: `${id.slice(0, -4)}0000`,
      firstSeq: 4,
      lines: [{ at: "2026-11-21T10:00:00Z", stream: "stdout", text: "forged" }],
    });
    await host.next("logAck");
    // The end comes right behind the last line, which is not lost for it.
    say(4, "four");
    await succeed(host, taken);
    expect(live.headers.get("Content-Type")).toBe("text/event-stream");
    const texts = (events: string) => [...events.matchAll(/"text":"([^"]*)"/g)].map(([, text]) => text);
    expect(texts(await live.text())).toEqual(["one", "two", "three", "four", "Command succeeded."]);
    const { data } = (await api<Page<LogLine>>(key, "GET", `/commands/${id}/logs?limit=2`)).body;
    expect(data.map(({ seq, text }) => [seq, text])).toEqual([
      [1, "one"],
      [2, "two"],
    ]);
    expect(texts(await (await follow({ "Last-Event-ID": "3" })).text())).toEqual([
      "four",
      "Command succeeded.",
    ]);
  });

  it("is refused with a reason in every state that has no image or is unpaid, and taken in every other", async () => {
    const { key, siteId } = await scene(0);
    const refusals = {
      PENDING: 402,
      DEPLOYING: 202,
      RUNNING: 202,
      STOPPED: 202,
      FAILED: 202,
      SUSPENDED: 402,
      DELETING: 409,
    } as const;
    for (const [status, expected] of Object.entries(refusals)) {
      await execute("UPDATE sites SET status = ? WHERE id = ?", status, siteId);
      const answer = await run(key, siteId);
      expect([status, answer.status]).toEqual([status, expected]);
      if (expected === 409) expect(answer.body.reason).toMatch(/being deleted/);
    }
    await execute("UPDATE sites SET status = 'RUNNING', host_id = NULL WHERE id = ?", siteId);
    expect((await run(key, siteId)).body.reason).toMatch(/not placed on a host/);
    const fresh = await createSite(key);
    await execute("UPDATE sites SET status = 'FAILED' WHERE id = ?", fresh.siteId);
    const never = await run(key, fresh.siteId);
    expect([never.status, never.body.reason]).toEqual([
      409,
      expect.stringMatching(/No version .* Deploy the site first/),
    ]);
  });

  it("is one line of a bounded length and time", async () => {
    const { key, siteId } = await scene(0);
    for (const body of [
      {},
      { command: "" },
      { command: "a\nb" },
      { command: "x".repeat(2001) },
      { command: "ls", timeoutSeconds: 0 },
      { command: "ls", timeoutSeconds: 3601 },
      { command: "ls", timeoutSeconds: 1.5 },
      { command: "ls", host: "x" },
    ])
      expect((await run(key, siteId, body)).status).toBe(400);
  });

  it("runs beside one other of its site, and ten wait: the next is refused, however many ask at once", async () => {
    const { key, host, siteId } = await scene();
    for (let count = 0; count < 2; count++) await run(key, siteId);
    const running = [await given(host), await given(host)];
    const answers = await Promise.all(Array.from({ length: 14 }, () => run(key, siteId)));
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(10);
    expect(answers.find(({ status }) => status === 409)?.body.reason).toMatch(
      /10 commands of this site are already queued/,
    );
    expect(host.waiting().filter(({ type }) => type === "job")).toEqual([]);
    await succeed(host, running[0]!);
    expect((await given(host)).args.command).toBe("echo hello");
    expect(host.waiting().filter(({ type }) => type === "job")).toEqual([]);
    expect((await run(key, siteId)).status).toBe(202);
  });

  it("holds up no deployment, and none holds it up", async () => {
    const { key, host, siteId, ready } = await scene();
    const deploying = await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    expect(deploying.status).toBe(202);
    const deployment = await host.next("job");
    const { id } = (await run(key, siteId)).body;
    const taken = await given(host);
    await finish(host, deployment.job, deployment.attempt, deployResult);
    expect((await site(key, siteId)).status).toBe("RUNNING");
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    const restart = await host.next("job");
    expect(restart.job.kind).toBe("site.restart");
    await finish(host, restart.job, restart.attempt);
    expect((await command(key, id)).status).toBe("RUNNING");
    await succeed(host, taken);
    // Each takes of its own room only.
    ready(0, 1);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    await run(key, siteId);
    const only = await given(host);
    ready(1, 0);
    expect((await host.next("job")).job.kind).toBe("site.restart");
    await succeed(host, only);
  });

  it("is not given to a host without room for commands", async () => {
    const { key, host, siteId } = await scene();
    host.send(room(10));
    const { id } = (await run(key, siteId)).body;
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    expect((await host.next("job")).job.kind).toBe("site.restart");
    expect((await command(key, id)).status).toBe("QUEUED");
  });

  it("is not run again when its agent lost it, goes on when its agent still has it", async () => {
    const { key, host, siteId } = await scene();
    const ids = [(await run(key, siteId)).body.id, (await run(key, siteId)).body.id];
    const [kept, lost] = [await given(host), await given(host)];
    host.close();
    const back = await greetedAgent({ running: [{ jobId: kept.job.id, attempt: kept.attempt }] }, host.token);
    back.send(room(10, { freeCommands: 10 }));
    const { status, error } = await command(key, lost.args.commandId);
    expect([status, error]).toEqual(["FAILED", expect.stringMatching(/interrupted .* not repeated/)]);
    expect((await command(key, kept.args.commandId)).status).toBe("RUNNING");
    // Its log goes on as well.
    back.send({
      type: "log",
      jobId: kept.job.id,
      attempt: kept.attempt,
      deploymentId: kept.args.commandId,
      firstSeq: 1,
      lines: [{ at: "2026-11-21T10:00:00Z", stream: "stdout", text: "on" }],
    });
    await back.next("logAck");
    await succeed(back, kept);
    expect(ids).toContain(kept.args.commandId);
    expect(
      (await api<Page<LogLine>>(key, "GET", `/commands/${kept.args.commandId}/logs`)).body.data[0]?.text,
    ).toBe("on");
    expect(back.waiting().filter(({ type }) => type === "job")).toEqual([]);
  });

  it("that outlives its deadline ends with a reason, and late reports change nothing", async () => {
    const { key, host, siteId } = await scene();
    const { id } = (await run(key, siteId)).body;
    const taken = await given(host);
    await execute("UPDATE jobs SET deadline_at = 1 WHERE command_id = ?", id);
    await tick();
    expect(await command(key, id)).toMatchObject({
      status: "FAILED",
      error: expect.stringMatching(/did not report/),
    });
    await host.next("drop");
    await succeed(host, taken);
    expect((await command(key, id)).status).toBe("FAILED");
  });

  it("ends with its site, and with a host that is removed by force", async () => {
    const { key, host, siteId } = await scene(1);
    const running = (await run(key, siteId)).body.id;
    const taken = await given(host);
    const waiting = (await run(key, siteId)).body.id;
    await api(key, "DELETE", `/sites/${siteId}`);
    expect(await host.next("cancel")).toMatchObject({ jobId: taken.job.id });
    expect((await command(key, waiting)).status).toBe("CANCELLED");
    await fail(host, taken.job, taken.attempt, "Cancelled.", true);
    expect((await command(key, running)).status).toBe("CANCELLED");
    const gone = await host.next("job");
    await finish(host, gone.job, gone.attempt);
    expect((await api(key, "GET", `/commands/${running}`)).status).toBe(404);

    const other = await scene();
    const lost = (await run(other.key, other.siteId)).body.id;
    await given(other.host);
    other.host.close();
    await execute("UPDATE hosts SET offline_since = 1 WHERE id = ?", other.host.hostId);
    expect((await api(await operator(), "DELETE", `/hosts/${other.host.hostId}?force=1`)).status).toBe(200);
    expect(await command(other.key, lost)).toMatchObject({
      status: "FAILED",
      error: "Its host was removed.",
    });
  });

  it("goes with the site to its new host where it still waits", async () => {
    const { key, host, siteId } = await scene(0);
    const { id } = (await run(key, siteId)).body;
    const newer = await readyAgent();
    newer.send(room(10, { freeCommands: 10 }));
    await drain(host);
    await tick();
    const job = await finishNext(newer, deployResult);
    const taken = await given(newer);
    expect(taken.args.commandId).toBe(id);
    // In what runs there.
    expect(job.args).toMatchObject({ deploymentId: taken.args.deploymentId });
    await succeed(newer, taken);
  });

  it("is forgotten with its log thirty days after its end", async () => {
    const { key, host, siteId } = await scene();
    const { id } = (await run(key, siteId)).body;
    await succeed(host, await given(host));
    await execute("UPDATE commands SET finished_at = ? WHERE id = ?", Date.now() - 29 * 86_400_000, id);
    await tick();
    expect((await api(key, "GET", `/commands/${id}`)).status).toBe(200);
    await execute("UPDATE commands SET finished_at = ? WHERE id = ?", Date.now() - 31 * 86_400_000, id);
    await tick();
    expect((await api(key, "GET", `/commands/${id}`)).status).toBe(404);
    const log = bindings.DEPLOYMENT_LOG.get(bindings.DEPLOYMENT_LOG.idFromName(id));
    expect(await log.read(0, 10)).toEqual([]);
  });

  it("is its owner's only, and listed newest first in pages", async () => {
    const { key, siteId } = await scene(0);
    const ids: string[] = [];
    for (let count = 0; count < 3; count++) ids.unshift((await run(key, siteId)).body.id);
    const first = await listed(key, siteId, "?limit=2");
    const second = await listed(key, siteId, `?limit=2&cursor=${first.nextCursor}`);
    expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(ids);
    expect(second.nextCursor).toBeNull();
    const stranger = await account();
    for (const [method, path] of [
      ["GET", `/commands/${ids[0]}`],
      ["GET", `/commands/${ids[0]}/logs`],
      ["POST", `/commands/${ids[0]}/cancel`],
      ["GET", `/sites/${siteId}/commands`],
      ["GET", `/sites/${siteId}/schedules`],
    ] as const)
      expect([path, (await api(stranger, method, path)).status]).toEqual([path, 403]);
    expect((await run(stranger, siteId)).status).toBe(403);
  });
});

describe("cancelling a command", () => {
  it("ends one that waits at once, and one that runs when its host has stopped it", async () => {
    const { key, host, siteId, ready } = await scene(0);
    const waiting = (await run(key, siteId)).body.id;
    expect((await cancel(key, waiting)).body).toMatchObject({
      status: "CANCELLED",
      exitCode: null,
      error: null,
    });
    expect((await cancel(key, waiting)).status).toBe(409);
    const running = (await run(key, siteId)).body.id;
    ready(10, 1);
    const taken = await given(host);
    expect((await cancel(key, running)).body.status).toBe("RUNNING");
    expect(await host.next("cancel")).toMatchObject({ jobId: taken.job.id });
    await fail(host, taken.job, taken.attempt, "Cancelled.", true);
    expect((await command(key, running)).status).toBe("CANCELLED");
  });

  it("that comes as it ends leaves one truth: the host's", async () => {
    const { key, host, siteId } = await scene();
    const { id } = (await run(key, siteId)).body;
    const taken = await given(host);
    const [cancelled] = await Promise.all([cancel(key, id), succeed(host, taken)]);
    expect([202, 409]).toContain(cancelled.status);
    expect(await command(key, id)).toMatchObject({ status: "SUCCEEDED", exitCode: 0 });
    expect((await cancel(key, id)).status).toBe(409);
  });
});

describe("a schedule", () => {
  const schedule = (key: string, siteId: string, body: object = {}) =>
    api<Schedule & { reason: string; issues: { path: string }[] }>(
      key,
      "POST",
      `/sites/${siteId}/schedules`,
      // Not due again by itself in the test, though a minute ends in it.
      { name: "clean-up", cron: "@yearly", command: "npm run clean", ...body },
    );
  const shown = async (key: string, siteId: string) =>
    (await api<Page<Schedule>>(key, "GET", `/sites/${siteId}/schedules`)).body.data[0];
  const makeDue = (id: string, minutesAgo = 0) =>
    execute(
      "UPDATE schedules SET next_run_at = ? WHERE id = ?",
      Math.floor(Date.now() / 60_000 - minutesAgo) * 60_000,
      id,
    );

  it("runs its command once in a due minute, however many ticks race, and not before", async () => {
    const { key, host, siteId } = await scene();
    const made = await schedule(key, siteId, { timeoutSeconds: 60 });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({ enabled: true, skippedRuns: 0, lastSkippedAt: null });
    expect(Date.parse(made.body.nextRunAt ?? "") % 60_000).toBe(0);
    await execute("UPDATE schedules SET next_run_at = ? WHERE id = ?", Date.now() + 60_000, made.body.id);
    await tick();
    expect((await listed(key, siteId)).data).toEqual([]);
    await makeDue(made.body.id);
    const before = Date.now();
    await Promise.all([tick(), tick(), tick()]);
    const { data } = await listed(key, siteId, `?scheduleId=${made.body.id}`);
    expect(data).toMatchObject([
      { command: "npm run clean", timeoutSeconds: 60, trigger: "schedule", scheduleId: made.body.id },
    ]);
    const after = await shown(key, siteId);
    expect(Date.parse(after?.nextRunAt ?? "")).toBeGreaterThan(before);
    expect(after?.skippedRuns).toBe(0);
    await succeed(host, await given(host));
    const other = (await schedule(key, siteId, { name: "other" })).body;
    expect((await listed(key, siteId, `?scheduleId=${other.id}`)).data).toEqual([]);
  });

  it("shows no next run while its site is stopped", async () => {
    const { key, host, siteId } = await scene();
    const { id } = (await schedule(key, siteId)).body;
    await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
    expect((await shown(key, siteId))?.nextRunAt).toBeNull();
    expect((await api(key, "PATCH", `/schedules/${id}`, { name: "later" })).body).toMatchObject({
      name: "later",
      nextRunAt: null,
    });
    const { job, attempt } = await host.next("job");
    await finish(host, job, attempt);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "start" });
    expect((await shown(key, siteId))?.nextRunAt).toBeNull();
    const started = await host.next("job");
    await finish(host, started.job, started.attempt);
    expect(Date.parse((await shown(key, siteId))?.nextRunAt ?? "")).toBeGreaterThan(Date.now());
  });

  it("makes up for all it missed with one run", async () => {
    const { key, siteId } = await scene(0);
    const { id } = (await schedule(key, siteId)).body;
    await makeDue(id, 90);
    await tick();
    await tick();
    expect((await listed(key, siteId)).data).toHaveLength(1);
  });

  it("leaves out a run while the one before goes on, and says so", async () => {
    const { key, host, siteId } = await scene();
    const { id } = (await schedule(key, siteId)).body;
    await makeDue(id);
    await tick();
    const taken = await given(host);
    await makeDue(id);
    await tick();
    expect((await listed(key, siteId)).data).toHaveLength(1);
    expect(await shown(key, siteId)).toMatchObject({ skippedRuns: 1, lastSkippedAt: expect.any(String) });
    await succeed(host, taken);
    await makeDue(id);
    await tick();
    expect((await listed(key, siteId)).data).toHaveLength(2);
  });

  it("runs in no state in which its site is stopped, unpaid or going, and makes none of it up", async () => {
    const { key, siteId } = await scene(0);
    const { id } = (await schedule(key, siteId)).body;
    for (const [status, wanted] of [
      ["STOPPED", "STOPPED"],
      ["RUNNING", "STOPPED"],
      ["SUSPENDED", "RUNNING"],
      ["DELETING", "RUNNING"],
      ["PENDING", "RUNNING"],
    ]) {
      await execute("UPDATE sites SET status = ?, wanted = ? WHERE id = ?", status, wanted, siteId);
      await makeDue(id);
      await tick();
      expect([status, (await listed(key, siteId)).data]).toEqual([status, []]);
    }
    expect(await shown(key, siteId)).toMatchObject({ skippedRuns: 0 });
    await execute("UPDATE sites SET status = 'RUNNING', wanted = 'RUNNING' WHERE id = ?", siteId);
    await tick();
    expect((await listed(key, siteId)).data).toEqual([]);
  });

  it("is not taken by a site nobody has paid for, and 200 of an account are all", async () => {
    const { key, siteId } = await scene(0);
    const unpaid = await createSite(key);
    expect(await schedule(key, unpaid.siteId)).toMatchObject({
      status: 402,
      body: { invoiceToken: unpaid.invoiceToken },
    });
    await execute(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
       INSERT INTO schedules (id, site_id, account_id, name, cron, command, timeout_seconds, enabled, created_at, updated_at)
       SELECT 'sched_' || s.id || i, 'site_other', s.account_id, 'many-' || s.id || i, '@daily', 'true', 60, 0, 1, 1 FROM n, sites s WHERE s.id = ?`,
      siteId,
    );
    const refused = await schedule(key, siteId);
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([
      409,
      expect.stringContaining("an account 200"),
    ]);
  });

  it("that is due while its site is stopped has no next time, and one again from the minute in which the site runs", async () => {
    const { key, siteId } = await scene(0);
    const { id } = (await schedule(key, siteId)).body;
    const nextRun = async () =>
      (
        await bindings.DB.prepare("SELECT next_run_at AS at FROM schedules WHERE id = ?")
          .bind(id)
          .first<{ at: number | null }>()
      )?.at;
    await execute("UPDATE sites SET status = 'STOPPED', wanted = 'STOPPED' WHERE id = ?", siteId);
    await makeDue(id);
    await tick();
    expect(await nextRun()).toBeNull();
    await tick();
    expect(await nextRun()).toBeNull();
    await execute("UPDATE sites SET status = 'RUNNING', wanted = 'RUNNING' WHERE id = ?", siteId);
    expect(Date.parse((await shown(key, siteId))?.nextRunAt ?? "")).toBeGreaterThan(Date.now());
    await tick();
    expect(await nextRun()).toBeGreaterThan(Date.now());
    expect((await listed(key, siteId)).data).toEqual([]);
  });

  it("of an account with many that are due does not hold up another's", async () => {
    const [many, one] = [await scene(0), await scene(0)];
    await execute(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
       INSERT INTO schedules (id, site_id, account_id, name, cron, command, timeout_seconds, enabled, next_run_at, created_at, updated_at)
       SELECT 'sched_' || s.id || i, s.id, s.account_id, 'many-' || i, '@daily', 'true', 60, 1, 1, 1, 1 FROM n, sites s WHERE s.id = ?`,
      many.siteId,
    );
    const { id } = (await schedule(one.key, one.siteId)).body;
    await makeDue(id);
    await tick();
    const { results } = await bindings.DB.prepare(
      "SELECT site_id FROM jobs WHERE kind = 'site.command' AND site_id IN (?, ?) ORDER BY seq",
    )
      .bind(many.siteId, one.siteId)
      .all<{ site_id: string }>();
    expect(results.length).toBeGreaterThan(2);
    expect(results.slice(0, 2).map(({ site_id }) => site_id)).toContain(one.siteId);
  });

  it("that is switched off runs nothing; switched on, or given other times, it counts from now", async () => {
    const { key, siteId } = await scene(0);
    const { id } = (await schedule(key, siteId, { cron: "@yearly" })).body;
    const change = (body: object) => api<Schedule>(key, "PATCH", `/schedules/${id}`, body);
    expect((await change({ enabled: false })).body).toMatchObject({ enabled: false, nextRunAt: null });
    await tick();
    expect((await listed(key, siteId)).data).toEqual([]);
    const on = (await change({ enabled: true, cron: "*/5 * * * *" })).body;
    expect(Date.parse(on.nextRunAt ?? "") - Date.now()).toBeLessThanOrEqual(300_000);
    expect((await change({ command: "npm run other" })).body).toMatchObject({
      command: "npm run other",
      nextRunAt: on.nextRunAt,
      timeoutSeconds: 600,
    });
    for (const body of [{}, { cron: "0 0 30 2 *" }, { cron: "* * * *" }, { nextRunAt: null }])
      expect((await change(body)).status).toBe(400);
  });

  it("has a name of its own among twenty of its site, and a cron expression that comes true", async () => {
    const { key, siteId } = await scene(0);
    const bad = await schedule(key, siteId, { cron: "61 * * * *" });
    expect([bad.status, bad.body.issues[0]?.path]).toEqual([400, "cron"]);
    const answers = await Promise.all(
      Array.from({ length: 22 }, (_, count) => schedule(key, siteId, { name: `n${count}` })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(20);
    expect(answers.find(({ status }) => status === 409)?.body.reason).toMatch(/at most 20 schedules/);
    const names = (await api<Page<Schedule>>(key, "GET", `/sites/${siteId}/schedules`)).body.data;
    expect(
      (await api<{ reason: string }>(key, "PATCH", `/schedules/${names[0]?.id}`, { name: names[1]?.name }))
        .body.reason,
    ).toMatch(/named/);
    const stranger = await account();
    expect((await api(stranger, "DELETE", `/schedules/${names[0]?.id}`)).status).toBe(403);
    expect((await api(stranger, "PATCH", `/schedules/${names[0]?.id}`, { enabled: false })).status).toBe(403);
    expect((await api(key, "DELETE", `/schedules/${names[0]?.id}`)).body).toEqual({
      id: names[0]?.id,
      removed: true,
    });
    expect((await api(key, "DELETE", `/schedules/${names[0]?.id}`)).status).toBe(404);
    expect((await schedule(key, siteId, { name: names[1]?.name })).body.reason).toMatch(
      /already has a schedule named/,
    );
  });

  it("keeps its last fifty runs, and the others of its site are left alone", async () => {
    const { key, siteId } = await scene(0);
    const other = (await run(key, siteId)).body.id;
    await cancel(key, other);
    const { id } = (await schedule(key, siteId)).body;
    await makeDue(id);
    await tick();
    const { data } = await listed(key, siteId, `?scheduleId=${id}`);
    const made = data[0]?.id ?? "";
    await cancel(key, made);
    for (let count = 0; count < 60; count++)
      await execute(
        "INSERT INTO commands SELECT ?, site_id, account_id, command, timeout_seconds, status, trigger, schedule_id, deployment_id, exit_code, error, created_at, started_at, finished_at FROM commands WHERE id = ?",
        `${made.slice(0, -10)}0000000${100 + count}`,
        made,
      );
    await makeDue(id);
    await tick();
    const kept = await listed(key, siteId, `?scheduleId=${id}&limit=100`);
    expect(kept.data).toHaveLength(50);
    expect((await api(key, "GET", `/commands/${other}`)).status).toBe(200);
  });
});
