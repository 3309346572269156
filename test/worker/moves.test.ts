import { beforeEach, describe, expect, it } from "vitest";
import type { Deployment } from "../../protocol/api/deployments.ts";
import { clearAway, hostFor, paidSites, sql, tick } from "./hosts-service.ts";
import { account, api, deployResult, finish, operator, runningSite, site } from "./service.ts";

beforeEach(clearAway);

describe("a move that waits", () => {
  it("is joined by what is asked for meanwhile: its source of now is deployed, on the new host", async () => {
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old);
    const fresh = await hostFor(2);
    fresh.send({ type: "ready", free: 0 });
    await api(await operator(), "PATCH", `/hosts/${old.hostId}`, { action: "drain" });
    const { status, body } = await api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, {
      action: "deploy",
    });
    expect(status).toBe(202);
    fresh.send({ type: "ready", free: 1 });
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
});

it("a move runs the version with the settings it has, and not with those that wait for the next deployment", async () => {
  const key = await account();
  const old = await hostFor(2);
  const { siteId } = await runningSite(key, old, { startCommand: "node old.js" });
  const settings = { port: 4000, replicas: 2, startCommand: "node new.js" };
  expect((await api(key, "PATCH", `/sites/${siteId}`, { settings })).status).toBe(200);
  const fresh = await hostFor(2);
  await api(await operator(), "PATCH", `/hosts/${old.hostId}`, { action: "drain" });
  const moved = await fresh.next("job");
  expect(moved.job.args).toMatchObject({ run: { port: 3000, replicas: 1, startCommand: "node old.js" } });
  await finish(fresh, moved.job, moved.attempt, deployResult);
  await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
  expect((await fresh.next("job")).job.args).toMatchObject({ run: settings });
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
    const { job, attempt } = await host.next("job");
    await finish(host, job, attempt, deployResult);
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
