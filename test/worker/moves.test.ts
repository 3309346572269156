import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Deployment } from "../../protocol/api/deployments.ts";
import { clearAway, drain, foundOffline, hostFor, paidSites, sql, tick } from "./hosts-service.ts";
import {
  account,
  api,
  call,
  deployResult,
  fail,
  finish,
  finishNext,
  jobOf,
  operator,
  runningSite,
  site,
  type Agent,
  ready,
} from "./service.ts";

beforeEach(clearAway);

/** Of a site to another host, which takes nothing yet. */
async function waitingMove() {
  const key = await account();
  const old = await hostFor(2);
  const { siteId } = await runningSite(key, old);
  const fresh = await hostFor(2);
  fresh.send(ready(0));
  await drain(old);
  return { key, siteId, old, fresh };
}

describe("a move that waits", () => {
  it("is joined by what is asked for meanwhile: its source of now is deployed, on the new host", async () => {
    const { key, siteId, old, fresh } = await waitingMove();
    const { status, body } = await api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, {
      action: "deploy",
    });
    expect(status).toBe(202);
    fresh.send(ready(1));
    const { job, attempt } = await fresh.next("job");
    expect(job).toMatchObject({ kind: "site.deploy", args: { deploymentId: body.deploymentId } });
    expect(job.args).not.toHaveProperty("source.commit");
    const deployment = (await api<Deployment>(key, "GET", `/deployments/${body.deploymentId}`)).body;
    expect(deployment).toMatchObject({ trigger: "api", commit: null });
    const commit = "c".repeat(40);
    await finish(fresh, job, attempt, { ...deployResult, commit });
    expect(await site(key, siteId)).toMatchObject({
      hostId: fresh.hostId,
      status: "RUNNING",
      currentDeployment: { commit },
    });
    old.close();
    fresh.close();
  });

  it("is joined by each of several requests, whatever source they name, and keeps its host", async () => {
    const { key, siteId, old, fresh } = await waitingMove();
    const asked: string[] = [];
    for (const ref of ["one", "other", undefined]) {
      const input = { action: "deploy", ref };
      const { body } = await api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, input);
      asked.push(body.deploymentId);
    }
    expect(new Set(asked)).toHaveLength(1);
    fresh.send(ready(1));
    const { job, attempt } = await fresh.next("job");
    expect(job).toMatchObject({ kind: "site.deploy", args: { deploymentId: asked[0] } });
    await finish(fresh, job, attempt, deployResult);
    expect(await site(key, siteId)).toMatchObject({ hostId: fresh.hostId, status: "RUNNING" });
    old.close();
    fresh.close();
  });
});

it("a password, a name or another rule that is set during a move is told to the new host once the site is there", async () => {
  const key = await account();
  const old = await hostFor(2);
  const { siteId } = await runningSite(key, old);
  const fresh = await hostFor(2);
  await drain(old);
  const { job, attempt } = await fresh.next("job");
  expect(job).toMatchObject({ kind: "site.deploy", args: { run: { siteId } } });
  const ingress = { allow: ["192.0.2.0/24"] };
  expect((await api(key, "PATCH", `/sites/${siteId}`, { settings: { ingress } })).status).toBe(200);
  const there = await old.next("job");
  expect(there.job).toMatchObject({ kind: "site.route", args: { ingress } });
  await finish(old, there.job, there.attempt);
  await finish(fresh, job, attempt, deployResult);
  const arrived = await fresh.next("job");
  expect(arrived.job).toMatchObject({ kind: "site.route", args: { siteId, ingress } });
  old.close();
  fresh.close();
});

it("a move runs the version with the settings it has, and not with those that wait for the next deployment", async () => {
  const key = await account();
  const old = await hostFor(2);
  const releaseCommand = "npx prisma migrate deploy";
  const { siteId } = await runningSite(key, old, { startCommand: "node old.js", releaseCommand });
  const settings = { port: 4000, replicas: 2, startCommand: "node new.js" };
  expect((await api(key, "PATCH", `/sites/${siteId}`, { settings })).status).toBe(200);
  const fresh = await hostFor(2);
  await drain(old);
  const moved = await fresh.next("job");
  // It is not run, but what it runs is in the image, which the next deployment may use.
  expect(moved.job.args).toMatchObject({
    run: { port: 3000, replicas: 1, startCommand: "node old.js" },
    releaseCommand,
  });
  expect(moved.job.args).not.toHaveProperty("release");
  await finish(fresh, moved.job, moved.attempt, deployResult);
  await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
  expect((await fresh.next("job")).job.args).toMatchObject({
    run: settings,
    release: { command: releaseCommand, timeoutSeconds: 600 },
    releaseCommand,
  });
  old.close();
  fresh.close();
});

describe("a move makes what is in service once more", () => {
  const image = { deployType: "image", githubUrl: undefined, branch: undefined, buildCommand: undefined };
  const text = { ...image, deployType: "dockerfile" };
  it.each([
    [
      { buildCommand: "make old", rootDir: "old" },
      { buildCommand: "make new", rootDir: "new", branch: "next", lfs: true },
      { buildCommand: "make old", rootDir: "old", source: { branch: null, commit: deployResult.commit } },
    ],
    [
      { ...text, dockerfile: "FROM old" },
      { dockerfile: "FROM new" },
      { source: { type: "dockerfile", text: "FROM old" } },
    ],
    [
      { ...image, image: "registry.example/app:latest" },
      { image: "registry.example/app:next" },
      { source: { reference: "registry.example/app:latest", digest: deployResult.imageDigest } },
    ],
  ])("%#: of its source and environment, and not of those that wait", async (made, settings, expected) => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old, made);
    expect((await api(key, "PATCH", `/sites/${siteId}`, { settings })).status).toBe(200);
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "V", value: "waits" }] });
    const fresh = await hostFor(2);
    await drain(old);
    const moved = await fresh.next("job");
    const { url } = await site(key, siteId);
    const about = { siteUrl: url, commit: deployResult.commit };
    expect(moved.job.args).toMatchObject({ ...expected, run: { ...about, env: [] } });
    expect(moved.job.args).not.toHaveProperty("source.lfs");
    await finish(fresh, moved.job, moved.attempt, deployResult);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    const { args } = (await fresh.next("job")).job;
    expect(args).toMatchObject({ run: { env: [{ key: "V", value: "waits" }] } });
    expect(args).not.toMatchObject(expected);
    old.close();
    fresh.close();
  });

  it("without the token of the server that its source is to come from next", async () => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old, { gitToken: "of-the-old-server" });
    const settings = { githubUrl: "other.example/owner/repo", gitToken: "of-the-other-server" };
    await api(key, "PATCH", `/sites/${siteId}`, { settings });
    const fresh = await hostFor(2);
    await drain(old);
    const { job } = await fresh.next("job");
    expect(job.args).toMatchObject({ source: { address: "git.example/owner/repo", token: null } });
    old.close();
    fresh.close();
  });

  it("also where that was rolled back to, or its host is dead", async () => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old, { ...text, dockerfile: "FROM old" });
    await api(key, "PATCH", `/sites/${siteId}`, { settings: { dockerfile: "FROM new" } });
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "V", value: "new" }] });
    for (const [method, path, body] of [
      ["PATCH", "", { action: "deploy" }],
      ["POST", "/rollback", {}],
    ] as const) {
      await api(key, method, `/sites/${siteId}${path}`, body);
      await finishNext(old, deployResult);
    }
    old.close();
    await vi.waitUntil(async () => (await site(key, siteId)).hostOffline, 10_000);
    const fresh = await hostFor(2);
    await api(await operator(), "DELETE", `/hosts/${old.hostId}?force=1`);
    expect((await fresh.next("job")).job.args).toMatchObject({
      source: { type: "dockerfile", text: "FROM old" },
      run: { env: [] },
    });
    fresh.close();
  });
});

describe("a command that runs where its site leaves", () => {
  const leaving = async () => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old);
    old.send(ready(10, { freeCommands: 2 }));
    const { body } = await api<{ id: string }>(key, "POST", `/sites/${siteId}/commands`, {
      command: "npm run migrate",
      timeoutSeconds: 3600,
    });
    const command = await old.next("job");
    const fresh = await hostFor(2);
    await sql("UPDATE hosts SET status = 'DRAINING' WHERE id = ?", old.hostId);
    await tick();
    await finishNext(fresh, deployResult);
    await sql("UPDATE sites SET leave_at = 0 WHERE id = ?", siteId);
    await tick();
    // The site's own containers do not run twice for that long.
    const first = await jobOf(old, "site.evict");
    await finish(old, first.job, first.attempt);
    await tick();
    expect(old.waiting()).toEqual([]);
    const end = async () => {
      await tick();
      const last = await jobOf(old, "site.evict");
      await finish(old, last.job, last.attempt);
      await tick();
      expect(old.waiting()).toEqual([]);
      fresh.close();
    };
    const shown = async () => (await api<{ status: string }>(key, "GET", `/commands/${body.id}`)).body.status;
    return { key, old, fresh, siteId, commandId: body.id, command, end, shown };
  };

  it("runs to its own end, and then what it needed goes and the host may be removed", async () => {
    const { old, command, end, shown } = await leaving();
    const remove = async () => api(await operator(), "DELETE", `/hosts/${old.hostId}`);
    expect([await shown(), (await remove()).status]).toEqual(["RUNNING", 409]);
    await finish(old, command.job, command.attempt, { exitCode: 0, error: null });
    expect(await shown()).toBe("SUCCEEDED");
    await end();
    expect((await remove()).status).toBe(200);
  });

  it("is cancelled there", async () => {
    const { key, old, commandId, command, end, shown } = await leaving();
    expect((await api(key, "POST", `/commands/${commandId}/cancel`)).status).toBe(202);
    expect(await old.next("cancel")).toMatchObject({ jobId: command.job.id, attempt: command.attempt });
    await fail(old, command.job, command.attempt, "Cancelled.", true);
    expect(await shown()).toBe("CANCELLED");
    await end();
  });

  it("holds up nobody beyond its own time, when its host does not say how it ended", async () => {
    const { old, command, end, shown } = await leaving();
    await sql("UPDATE jobs SET deadline_at = 0 WHERE id = ?", command.job.id);
    await tick();
    await old.next("drop");
    expect(await shown()).toBe("FAILED");
    await end();
  });

  it("ends with a deletion of its site, which waits for it", async () => {
    const { key, old, fresh, siteId, command } = await leaving();
    await api(key, "DELETE", `/sites/${siteId}`);
    await old.next("cancel");
    const gone = await jobOf(fresh, "site.delete");
    await finish(fresh, gone.job, gone.attempt);
    await fail(old, command.job, command.attempt, "Cancelled.", true);
    await tick();
    const evict = await jobOf(old, "site.evict");
    await finish(old, evict.job, evict.attempt);
    await tick();
    const again = await jobOf(fresh, "site.delete");
    await finish(fresh, again.job, again.attempt);
    expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
    old.close();
    fresh.close();
  });
});

describe("a rollback after a move", () => {
  const image = { deployType: "image", githubUrl: undefined, branch: undefined, buildCommand: undefined };
  const second = { ...deployResult, commit: "c".repeat(40), imageDigest: `sha256:${"d".repeat(64)}` };
  const moved = async (from: Agent, to: Agent) => {
    await sql("UPDATE hosts SET status = 'DRAINING' WHERE id = ?", from.hostId);
    await tick();
    await finishNext(to, second);
    await sql("UPDATE sites SET leave_at = 0");
    await tick();
    const evict = await from.next("job");
    await finish(from, evict.job, evict.attempt);
    await sql("UPDATE hosts SET status = 'ACTIVE' WHERE id = ?", from.hostId);
  };

  it.each([
    [
      { buildCommand: "make old" },
      { buildCommand: "make new" },
      { type: "git", address: "git.example/owner/repo", commit: deployResult.commit },
    ],
    [
      { ...image, deployType: "dockerfile", dockerfile: "FROM old" },
      { dockerfile: "FROM new" },
      { type: "dockerfile", text: "FROM old" },
    ],
    [
      { ...image, image: "registry.example/app:1" },
      { image: "registry.example/app:2" },
      { type: "image", reference: "registry.example/app:1", digest: deployResult.imageDigest },
    ],
  ])("%#: makes the version before once more, of its own source", async (made, settings, otherwise) => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old, made);
    await api(key, "PATCH", `/sites/${siteId}`, { settings });
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "V", value: "new" }] });
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    await finishNext(old, second);
    const fresh = await hostFor(2);
    // Moves are no versions: they neither come before the current one, nor take a place of those that are kept.
    for (let round = 0; round < 2; round++) {
      await moved(old, fresh);
      await moved(fresh, old);
    }
    const listed = async () =>
      (await api<{ data: Deployment[] }>(key, "GET", `/sites/${siteId}/deployments`)).body.data;
    const first = (await listed()).at(-1);
    expect(first).toMatchObject({ number: 1, imageKept: false, canRollBack: true });

    const { status, body } = await api<{ deploymentId: string }>(key, "POST", `/sites/${siteId}/rollback`);
    expect(status).toBe(202);
    const { job, attempt } = await old.next("job");
    const buildCommand = made.buildCommand ?? null;
    expect(job.args).toMatchObject({
      deploymentId: body.deploymentId,
      source: { type: "kept", deploymentId: first?.id, otherwise },
      buildCommand,
      run: { env: [] },
    });
    await finish(old, job, attempt, deployResult);
    expect((await listed())[0]).toMatchObject({
      status: "LIVE",
      rollbackOf: first?.id,
      commit: deployResult.commit,
    });
    // Whoever goes forth again finds the newest move's image, and whoever comes back what was made of the first just now.
    for (const kept of [true, true]) {
      await api(key, "POST", `/sites/${siteId}/rollback`);
      const next = await old.next("job");
      const { source } = next.job.args as { source: { deploymentId: string } };
      expect((await listed()).find(({ id }) => id === source.deploymentId)).toMatchObject({
        imageKept: kept,
      });
      await finish(old, next.job, next.attempt, second);
    }
    old.close();
    fresh.close();
  });

  it("is refused where the site has had no other version", async () => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old);
    const fresh = await hostFor(2);
    await moved(old, fresh);
    expect(await api(key, "POST", `/sites/${siteId}/rollback`)).toMatchObject({
      status: 409,
      body: { reason: expect.stringContaining("no earlier deployment") },
    });
    old.close();
    fresh.close();
  });
});

it.each(["stop", "start"])(
  "a move does not start a stopped site, unless its owner asks for that meanwhile: %s",
  async (action) => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
    const stop = await old.next("job");
    await finish(old, stop.job, stop.attempt);
    const fresh = await hostFor(2);
    await drain(old);
    const move = await fresh.next("job");
    expect(move.job.args).toMatchObject({ parked: true });
    await api(key, "PATCH", `/sites/${siteId}`, { action });
    await finish(fresh, move.job, move.attempt, { ...deployResult, parked: true });
    expect(await site(key, siteId)).toMatchObject({ hostId: fresh.hostId, status: "STOPPED" });
    for (const kind of action === "start"
      ? (["site.stop", "site.start"] as const)
      : (["site.stop"] as const)) {
      const { job, attempt } = await jobOf(fresh, kind);
      expect((await site(key, siteId)).status).toBe("STOPPED");
      await finish(fresh, job, attempt);
    }
    expect((await site(key, siteId)).status).toBe(action === "start" ? "RUNNING" : "STOPPED");
    old.close();
    fresh.close();
  },
);

it("a stopped site whose stop fails on its new host is not started by its next move", async () => {
  const key = await account();
  const old = await hostFor(2);
  const { siteId } = await runningSite(key, old);
  await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
  const stop = await old.next("job");
  await finish(old, stop.job, stop.attempt);
  const fresh = await hostFor(2);
  await drain(old);
  await finishNext(fresh, { ...deployResult, parked: true });
  const again = await fresh.next("job");
  expect(again.job.kind).toBe("site.stop");
  await fail(fresh, again.job, again.attempt);
  await sql("UPDATE sites SET leaving_host_id = NULL, leave_at = NULL WHERE id = ?", siteId);
  const third = await hostFor(2);
  await drain(fresh);
  expect((await third.next("job")).job.args).toMatchObject({ parked: true });
  for (const host of [old, fresh, third]) host.close();
});

it("an image that went with its site's eviction is not kept when the site is back on that host", async () => {
  const key = await account();
  const old = await hostFor(2);
  const { siteId } = await runningSite(key, old);
  const fresh = await hostFor(2);
  for (const [from, to] of [
    [old, fresh],
    [fresh, old],
  ] as const) {
    await drain(from);
    await finishNext(to, deployResult);
    await sql("UPDATE sites SET leave_at = 0 WHERE id = ?", siteId);
    await tick();
    const evict = await jobOf(from, "site.evict");
    await finish(from, evict.job, evict.attempt);
    await api(await operator(), "PATCH", `/hosts/${from.hostId}`, { action: "activate" });
  }
  const list = (await api<{ data: Deployment[] }>(key, "GET", `/sites/${siteId}/deployments`)).body.data;
  expect(list.map(({ number, imageKept }) => [number, imageKept])).toEqual([
    [3, true],
    [2, false],
    [1, false],
  ]);
  old.close();
  fresh.close();
});

it("what a site wrote and met begins anew with a move, and says so", async () => {
  const key = await account();
  const old = await hostFor(2);
  const { siteId } = await runningSite(key, old);
  const fresh = await hostFor(2);
  const read = async <Body>(what: string, on: Agent, answer: object) => {
    const reading = api<{ data: Body[] }>(key, "GET", `/sites/${siteId}/${what}`);
    const { requestId } = await on.next("ask");
    on.send({ type: "answer", requestId, answer, last: true });
    return (await reading).body.data;
  };
  const line = (at: string) => ({ at, stream: "stdout", text: "hello" });
  const logs = { kind: "logs", lines: [line("2100-01-01T00:00:00.000000001Z")] };
  const events = { kind: "events", events: [{ at: "2100-01-01T00:00:00.000Z", kind: "start", detail: "" }] };
  expect(await read("logs", old, logs)).toHaveLength(1);
  expect(await read("events", old, events)).toHaveLength(1);
  await drain(old);
  await finishNext(fresh, deployResult);
  const text = expect.stringContaining("moved to another host") as string;
  expect(await read("logs", fresh, logs)).toMatchObject([{ stream: "system", text }, { text: "hello" }]);
  expect(await read("logs?tail=1", fresh, logs)).toMatchObject([{ text: "hello" }]);
  expect(await read("logs?since=2099-01-01T00:00:00Z", fresh, logs)).toHaveLength(1);
  expect(await read("events", fresh, events)).toMatchObject([
    { kind: "moved", detail: text },
    { kind: "start" },
  ]);
  old.close();
  fresh.close();
});

it("who follows a site's log is let go when the site moves, to go on where it is, and when it is deleted", async () => {
  const key = await account();
  const old = await hostFor(2);
  const { siteId } = await runningSite(key, old);
  const fresh = await hostFor(2);
  const follow = async (on: Agent) => {
    const response = await call(`/api/v1/sites/${siteId}/logs?follow=1`, {
      headers: { Authorization: `Bearer ${key}` },
    });
    expect((await on.next("ask")).question).toMatchObject({ siteId, follow: true });
    return response;
  };
  const before = await follow(old);
  await drain(old);
  await finishNext(fresh, deployResult);
  expect(await before.text()).toContain(": following");
  await old.next("endAsk");

  const after = await follow(fresh);
  await sql("UPDATE sites SET leaving_host_id = NULL WHERE id = ?", siteId);
  await api(key, "DELETE", `/sites/${siteId}`);
  const gone = await fresh.next("job");
  await finish(fresh, gone.job, gone.attempt);
  expect(await after.text()).toContain(": following");
  old.close();
  fresh.close();
});

describe("a site that waits for a host", () => {
  it("is stopped at once, and no host is given it until its owner wants it again", async () => {
    const key = await account();
    const [siteId = ""] = await paidSites(key, 1);
    expect(await site(key, siteId)).toMatchObject({ status: "DEPLOYING", hostId: null });
    expect((await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" })).body).toMatchObject({
      status: "STOPPED",
    });
    const host = await hostFor(1);
    await tick();
    expect(host.waiting()).toEqual([]);
    expect(await site(key, siteId)).toMatchObject({
      status: "STOPPED",
      hostId: null,
      latestDeployment: { status: "CANCELLED" },
    });
    expect((await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" })).status).toBe(202);
    await finishNext(host, deployResult);
    expect(await site(key, siteId)).toMatchObject({ status: "RUNNING", hostId: host.hostId });
    host.close();
  });
});

it("a site that was stopped before it had run is not brought back by the removal of its dead host", async () => {
  const key = await account();
  const dead = await hostFor(1);
  const [siteId = ""] = await paidSites(key, 1);
  await dead.next("job");
  await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
  dead.close();
  await sql("UPDATE hosts SET offline_since = 1 WHERE id = ?", dead.hostId);
  await api(await operator(), "DELETE", `/hosts/${dead.hostId}?force=1`);
  await tick();
  expect(await site(key, siteId)).toMatchObject({ hostId: null, status: "STOPPED" });
  const { results } = await sql("SELECT kind FROM jobs WHERE site_id = ? AND status = 'QUEUED'", siteId);
  expect(results).toEqual([]);
});

it("a site that is deleted while it moves away from a dead host leaves nothing on the new one", async () => {
  const key = await account();
  const dead = await hostFor(1);
  const { siteId } = await runningSite(key, dead);
  const fresh = await hostFor(1);
  await drain(dead);
  const { job, attempt } = await fresh.next("job");
  dead.close();
  await foundOffline(dead.hostId);
  await api(await operator(), "DELETE", `/hosts/${dead.hostId}?force=1`);
  await api(key, "DELETE", `/sites/${siteId}`);
  await fresh.next("cancel");
  // It was up before it heard of that.
  await finish(fresh, job, attempt, deployResult);
  await tick();
  const removal = await fresh.next("job");
  expect(removal.job).toMatchObject({ kind: "site.delete", args: { siteId } });
  await finish(fresh, removal.job, removal.attempt);
  expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
  fresh.close();
});
