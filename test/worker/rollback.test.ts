import { describe, expect, it } from "vitest";
import type { Job } from "../../protocol/agent/jobs.ts";
import type { Deployment } from "../../protocol/api/deployments.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  fail,
  finish,
  finishNext,
  readyAgent,
  runningSite,
  site,
  type Agent,
  ready,
} from "./service.ts";

type Accepted = { deploymentId: string; status: string; error?: string; reason?: string };

const resultOf = (version: number) => ({
  ...deployResult,
  commit: `${version}`.padStart(40, "0"),
  commitMessage: `Version ${version}`,
  imageDigest: `sha256:${`${version}`.padStart(64, "0")}`,
  imageId: `sha256:${`${version}`.padStart(64, "1")}`,
  buildKey: `key ${version}`,
});

const deployJobOf = (job: Job) => {
  if (job.kind !== "site.deploy") throw new Error(`a ${job.kind}`);
  return job.args;
};

/** A running site of a fresh account, and what its owner and its host do. */
async function owned() {
  const [key, host] = [await account(), await readyAgent(1)];
  const { siteId } = await runningSite(key, host);
  const patch = (body: object) => api<Accepted>(key, "PATCH", `/sites/${siteId}`, body);
  const deploy = async (version: number) => {
    const { deploymentId } = (await patch({ action: "deploy" })).body;
    host.send(ready(1));
    await finishNext(host, resultOf(version));
    return deploymentId;
  };
  return {
    key,
    host,
    siteId,
    patch,
    deploy,
    rollback: (body?: object) => api<Accepted>(key, "POST", `/sites/${siteId}/rollback`, body),
    deployments: async () =>
      (await api<{ data: Deployment[] }>(key, "GET", `/sites/${siteId}/deployments?limit=100`)).body.data,
    taken: () => taken(host),
  };
}

async function taken(host: Agent) {
  host.send(ready(1));
  return host.next("job");
}

const setEnv = (patch: (body: object) => Promise<unknown>, value: string) =>
  patch({ envVariables: [{ key: "V", value }] });

describe("a rollback", () => {
  it("runs no release command, as that version's has done what it does", async () => {
    const { deploy, rollback, taken: take } = await owned();
    await deploy(2);
    await rollback();
    expect((await take()).job.args).not.toHaveProperty("release");
  });

  it("brings back the deployment before the current: its image, its environment, its run settings", async () => {
    const { host, siteId, patch, deploy, rollback, deployments, taken: take, key } = await owned();
    await setEnv(patch, "of the second");
    const second = await deploy(2);
    await setEnv(patch, "of the third");
    await patch({ settings: { port: 4000, startCommand: "node b.js", healthCheckPath: "/up" } });
    const third = await deploy(3);

    const { status, body } = await rollback();
    expect([status, body.status]).toEqual([202, "DEPLOYING"]);
    const { job, attempt } = await take();
    const args = deployJobOf(job);
    expect(args).toMatchObject({
      deploymentId: body.deploymentId,
      source: { type: "kept", deploymentId: second },
      run: {
        port: 3000,
        startCommand: null,
        healthCheckPath: null,
        env: [{ key: "V", value: "of the second" }],
      },
    });
    expect(args.kept.find(({ deploymentId }) => deploymentId === second)).toMatchObject({
      imageId: resultOf(2).imageId,
      imageDigest: resultOf(2).imageDigest,
    });
    const { imageId: _, buildKey: __, durations: ___, ...shown } = resultOf(2);
    expect((await deployments())[0]).toMatchObject({ ...shown, trigger: "rollback", rollbackOf: second });
    await finish(host, job, attempt, resultOf(2));
    expect(await site(key, siteId)).toMatchObject({
      status: "RUNNING",
      currentDeployment: { id: body.deploymentId, commit: resultOf(2).commit },
    });
    const [now, before] = await deployments();
    expect([now?.status, now?.envVersion, before?.id, before?.status]).toEqual([
      "LIVE",
      1,
      third,
      "SUPERSEDED",
    ]);

    // Once more goes forth again, and a restart keeps the port its image listens on.
    await rollback();
    const again = await take();
    expect(again.job.args).toMatchObject({
      source: { deploymentId: third },
      run: { port: 4000, startCommand: "node b.js", healthCheckPath: "/up" },
    });
    await finish(host, again.job, again.attempt, resultOf(3));
  });

  it("that fails leaves what serves, and is FAILED with the reason", async () => {
    const { host, siteId, deploy, rollback, deployments, taken: take, key } = await owned();
    const second = await deploy(2);
    await rollback();
    const { job, attempt } = await take();
    await fail(host, job, attempt, "Nothing listens on port 3000.");
    expect(await site(key, siteId)).toMatchObject({ status: "RUNNING", currentDeployment: { id: second } });
    const [failed, current, first] = await deployments();
    expect(failed).toMatchObject({
      status: "FAILED",
      imageKept: false,
      error: expect.stringContaining("3000"),
    });
    expect([current?.status, current?.imageKept, first?.imageKept]).toEqual(["LIVE", true, true]);
  });

  it("is refused where there is nothing to go back to", async () => {
    const { rollback, deployments, deploy, host, taken: take, patch } = await owned();
    expect(await rollback()).toMatchObject({
      status: 409,
      body: { error: "conflict", reason: expect.stringContaining("no earlier deployment") },
    });
    await patch({ action: "deploy" });
    const { job, attempt } = await take();
    await fail(host, job, attempt);
    const [failed] = await deployments();
    expect(await rollback({ deploymentId: failed?.id })).toMatchObject({
      status: 409,
      body: { reason: expect.stringContaining("never live") },
    });
    const other = await owned();
    const foreign = await other.deploy(2);
    for (const deploymentId of [foreign, "dep_nonsense", `dep_0${"0".repeat(26)}`, "'"])
      expect((await rollback({ deploymentId })).status).toBe(404);
    for (const body of [{ deploymentId: 1 }, { deployment: foreign }, []])
      expect((await rollback(body)).status).toBe(400);
    await deploy(3);
    expect((await rollback()).status).toBe(202);
  });

  it("of an unpaid site is 402 with its invoice, of a stranger's 403, of one that goes 409", async () => {
    const { key, siteId, rollback, deploy } = await owned();
    await deploy(2);
    expect((await api(await account(), "POST", `/sites/${siteId}/rollback`)).status).toBe(403);
    const unpaid = await createSite(key);
    expect(await api(key, "POST", `/sites/${unpaid.siteId}/rollback`)).toMatchObject({
      status: 402,
      body: { error: "payment_required", invoiceToken: unpaid.invoiceToken },
    });
    await api(key, "DELETE", `/sites/${siteId}`);
    expect((await rollback()).status).toBe(409);
  });

  it("of a stopped site starts it again", async () => {
    const { host, key, siteId, deploy, rollback, patch, taken: take } = await owned();
    await deploy(2);
    await patch({ action: "stop" });
    const stop = await take();
    await finish(host, stop.job, stop.attempt);
    expect((await rollback()).status).toBe(202);
    const { job, attempt } = await take();
    await finish(host, job, attempt, resultOf(1));
    expect((await site(key, siteId)).status).toBe("RUNNING");
  });
});

describe("a rollback in the queue", () => {
  it("waits for the deployment that runs, and of many at once there is one", async () => {
    const { host, siteId, deploy, rollback, patch, taken: take, key } = await owned();
    await deploy(2);
    const running = (await patch({ action: "deploy" })).body.deploymentId;
    const first = await take();
    const answers = await Promise.all(Array.from({ length: 8 }, () => rollback()));
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.deploymentId}`)).size).toBe(1);
    await finish(host, first.job, first.attempt, resultOf(3));
    const next = await take();
    expect(deployJobOf(next.job)).toMatchObject({
      deploymentId: answers[0]?.body.deploymentId,
      source: { type: "kept" },
    });
    await finish(host, next.job, next.attempt, resultOf(1));
    expect((await site(key, siteId)).status).toBe("RUNNING");
    expect(running).not.toBe(answers[0]?.body.deploymentId);
  });

  it("takes the place of a deployment that waits, and makes way for a later one", async () => {
    const { host, siteId, deploy, rollback, patch, deployments, taken: take, key } = await owned();
    await deploy(2);
    await patch({ action: "deploy" });
    const running = await take();
    const waiting = (await patch({ action: "deploy" })).body.deploymentId;
    const back = (await rollback()).body.deploymentId;
    const forth = (await patch({ action: "deploy" })).body.deploymentId;
    const statusOf = new Map((await deployments()).map(({ id, status }) => [id, status]));
    expect([waiting, back, forth].map((id) => statusOf.get(id))).toEqual([
      "CANCELLED",
      "CANCELLED",
      "QUEUED",
    ]);
    await finish(host, running.job, running.attempt, resultOf(3));
    const next = await take();
    expect(deployJobOf(next.job)).toMatchObject({ deploymentId: forth, source: { type: "git" } });
    await finish(host, next.job, next.attempt, resultOf(4));
    const { results } = await bindings.DB.prepare(
      "SELECT id FROM jobs WHERE site_id = ? AND status IN ('QUEUED', 'LEASED')",
    )
      .bind(siteId)
      .all();
    expect([results, (await site(key, siteId)).status]).toEqual([[], "RUNNING"]);
  });

  it("is joined by a deployment's request only where both ask for the same", async () => {
    const { deploy, rollback, patch, taken: take, deployments } = await owned();
    const second = await deploy(2);
    await deploy(3);
    await patch({ action: "deploy" });
    await take();
    await setEnv(patch, "first asked");
    const joined = (await patch({ action: "deploy" })).body.deploymentId;
    await setEnv(patch, "then asked");
    expect((await patch({ action: "deploy", rebuild: true })).body.deploymentId).toBe(joined);
    expect((await deployments())[0]).toMatchObject({ id: joined, envVersion: 2 });
    const one = (await rollback({ deploymentId: second })).body.deploymentId;
    expect((await rollback({ deploymentId: second })).body.deploymentId).toBe(one);
    expect([one === joined, (await deployments())[1]]).toMatchObject([
      false,
      { id: joined, status: "CANCELLED" },
    ]);
  });
});

describe("a deployment of a branch, tag or commit in the queue", () => {
  it("keeps what was asked for: a request for another source takes its place, one for the same joins it", async () => {
    const { host, deploy, patch, deployments, taken: take } = await owned();
    await deploy(2);
    await patch({ action: "deploy" });
    const running = await take();
    const asked = async (ref?: string) => (await patch({ action: "deploy", ref })).body.deploymentId;
    const tagged = await asked("v1");
    const branch = await asked();
    const other = await asked("v2");
    expect(await asked("v2")).toBe(other);
    expect((await deployments()).slice(0, 3)).toMatchObject([
      { id: other, ref: "v2", status: "QUEUED" },
      { id: branch, ref: null, status: "CANCELLED" },
      { id: tagged, ref: "v1", status: "CANCELLED" },
    ]);
    await finish(host, running.job, running.attempt, resultOf(3));
    expect(deployJobOf((await take()).job)).toMatchObject({ deploymentId: other, source: { branch: "v2" } });
  });
});

describe("images", () => {
  it("of the five newest successful deployments are kept: the host is told which, the record says so", async () => {
    const { host, deploy, rollback, patch, deployments, taken: take } = await owned();
    for (let version = 2; version <= 6; version++) await deploy(version);
    const kept = async () =>
      (await deployments()).filter(({ imageKept }) => imageKept).map((one) => one.number);
    expect(await kept()).toEqual([6, 5, 4, 3, 2]);
    const [, , , , second, first] = await deployments();
    expect(await rollback({ deploymentId: first?.id })).toMatchObject({
      status: 409,
      body: { reason: expect.stringContaining("5 latest") },
    });

    // While another deployment runs, the oldest is about to go: a rollback can no longer name it.
    await patch({ action: "deploy" });
    const running = await take();
    expect(deployJobOf(running.job).kept.map(({ number }) => number)).toEqual([6, 5, 4, 3]);
    expect((await rollback({ deploymentId: second?.id })).status).toBe(409);
    await fail(host, running.job, running.attempt);
    expect(await kept()).toEqual([6, 5, 4, 3, 2]);

    // The oldest kept can be named, and stays until its image counts by the deployment that uses it.
    expect((await rollback({ deploymentId: second?.id })).status).toBe(202);
    const back = await take();
    expect(deployJobOf(back.job).kept.map(({ number }) => number)).toEqual([6, 5, 4, 3, 2]);
    await finish(host, back.job, back.attempt, resultOf(2));
    expect(await kept()).toEqual([8, 6, 5, 4, 3]);
  });

  it("are kept as many as the site says; one that was given up does not come back with a larger number", async () => {
    const { deploy, rollback, patch, deployments } = await owned();
    for (let version = 2; version <= 6; version++) await deploy(version);
    const keep = async (keptImages: number) => {
      expect((await patch({ settings: { keptImages } })).status).toBe(200);
      return (await deployments()).filter(({ canRollBack }) => canRollBack).map((one) => one.number);
    };
    expect(await keep(10)).toEqual([6, 5, 4, 3, 2]);
    expect(await keep(2)).toEqual([6, 5]);
    const third = (await deployments()).find(({ number }) => number === 3);
    expect(await rollback({ deploymentId: third?.id })).toMatchObject({
      status: 409,
      body: { reason: expect.stringContaining("2 latest") },
    });
    expect(await keep(7)).toEqual([6, 5]);
    await deploy(7);
    expect(await keep(7)).toEqual([7, 6, 5]);
    expect(await keep(1)).toEqual([7]);
  });

  it("on a host that the site has left are not kept", async () => {
    const { siteId, deploy, deployments } = await owned();
    await deploy(2);
    const other = await readyAgent(0);
    for (const hostId of [other.hostId, null]) {
      await bindings.DB.prepare("UPDATE sites SET host_id = ? WHERE id = ?").bind(hostId, siteId).run();
      expect((await deployments()).map(({ imageKept }) => imageKept)).toEqual([false, false]);
    }
  });

  it("are told to the host with what they were made of, so that it can use one again", async () => {
    const { deploy, patch, taken: take } = await owned();
    await deploy(2);
    await patch({ action: "deploy", rebuild: true });
    const { rebuild, kept } = deployJobOf((await take()).job);
    expect([rebuild, kept.map(({ buildKey }) => buildKey)]).toEqual([true, ["key 2", "key-of-the-first"]]);
  });
});

it("what a deployment was made of is kept as long as a move, a rollback or the explanation of the newest needs it", async () => {
  const { host, siteId, deploy, patch, rollback, deployments, taken: take } = await owned();
  const withBuild = async () => {
    const { results } = await bindings.DB.prepare(
      "SELECT number FROM deployments WHERE site_id = ? AND build IS NOT NULL ORDER BY number DESC",
    )
      .bind(siteId)
      .all<{ number: number }>();
    return results.map(({ number }) => number);
  };
  const broken = async () => {
    await patch({ action: "deploy" });
    const { job, attempt } = await take();
    await fail(host, job, attempt);
  };
  for (let version = 2; version <= 3; version++) await deploy(version);
  for (let round = 0; round < 6; round++) await broken();
  expect(await withBuild()).toEqual([9, 3, 2, 1]);
  for (let version = 10; version <= 12; version++) await deploy(version);
  expect(await withBuild()).toEqual([12, 11, 10, 3, 2]);
  const oldest = (await deployments()).find(({ number }) => number === 2)?.id;
  await rollback({ deploymentId: oldest });
  const { job, attempt } = await take();
  expect(job.args).toMatchObject({ source: { otherwise: { type: "git", commit: resultOf(2).commit } } });
  await fail(host, job, attempt);
  expect(await withBuild()).toEqual([13, 12, 11, 10, 3, 2]);
});

describe("the environment's version", () => {
  it("of a deployment follows a restart or start that brought a newer one, once it is done", async () => {
    const { host, patch, deployments, taken: take } = await owned();
    const version = async () => (await deployments())[0]?.envVersion;
    await setEnv(patch, "one");
    await patch({ action: "restart" });
    const restart = await take();
    await setEnv(patch, "two");
    expect([restart.job.args, await version()]).toMatchObject([{ run: { env: [{ value: "one" }] } }, 0]);
    await finish(host, restart.job, restart.attempt);
    expect(await version()).toBe(1);

    await patch({ action: "restart" });
    const broken = await take();
    await fail(host, broken.job, broken.attempt);
    expect(await version()).toBe(1);

    await patch({ action: "stop" });
    const stop = await take();
    await finish(host, stop.job, stop.attempt);
    await patch({ action: "start" });
    const start = await take();
    expect(start.job.args).toMatchObject({ run: { env: [{ value: "two" }] } });
    await finish(host, start.job, start.attempt);
    expect(await version()).toBe(2);
  });

  it("and settings of a restart are those of what is restarted", async () => {
    const { patch, taken: take } = await owned();
    await patch({ settings: { port: 4000 } });
    await patch({ action: "restart" });
    expect((await take()).job.args).toMatchObject({ run: { port: 3000 } });
  });
});

describe("a private registry's login", () => {
  it("reaches the host opened, and is neither stored in the clear nor shown", async () => {
    const [key, host] = [await account(), await readyAgent(1)];
    const login = { registryUsername: "robot", registryPassword: "pull-s3cret" };
    const image = { deployType: "image", image: "registry.example/app:1", githubUrl: undefined };
    const { siteId } = await runningSite(key, host, { ...image, ...login });
    const patch = (settings: object) => api(key, "PATCH", `/sites/${siteId}`, { settings });
    const next = async () => {
      await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
      const { job, attempt } = await taken(host);
      await finish(host, job, attempt, deployResult);
      return deployJobOf(job).source;
    };
    expect(await next()).toEqual({
      type: "image",
      reference: "registry.example/app:1",
      login: { username: "robot", password: "pull-s3cret" },
    });
    const stored = await bindings.DB.prepare("SELECT * FROM sites WHERE id = ?").bind(siteId).all();
    expect(JSON.stringify([stored, await site(key, siteId)])).not.toContain("pull-s3cret");
    expect((await patch({ registryPassword: null })).status).toBe(200);
    expect(await next()).toMatchObject({ login: null });
  });

  it("is refused without its other half, and for other kinds of source", async () => {
    const key = await account();
    const image = { deployType: "image", image: "registry.example/app:1", githubUrl: undefined };
    await expect(createSite(key, { ...image, registryUsername: "robot" })).rejects.toThrow("400");
    await expect(createSite(key, { registryUsername: "a", registryPassword: "b" })).rejects.toThrow("400");
    const { siteId } = await createSite(key);
    const settings = { registryPassword: "b" };
    expect((await api(key, "PATCH", `/sites/${siteId}`, { settings })).status).toBe(400);
  });
});
