import { describe, expect, it } from "vitest";
import type { Deployment } from "../../protocol/api/deployments.ts";
import {
  account,
  api,
  bindings,
  createSite,
  fail,
  finish,
  finishNext,
  jobOf,
  pay,
  readyAgent,
  runningSite,
  site,
  deployResult,
  ready,
} from "./service.ts";

const deploy = async (key: string, siteId: string) =>
  (await api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, { action: "deploy" })).body
    .deploymentId;
const cancel = (key: string, id: string) => api(key, "POST", `/deployments/${id}/cancel`);
const deployment = async (key: string, id: string) =>
  (await api<Deployment>(key, "GET", `/deployments/${id}`)).body;

describe("cancelling a deployment", () => {
  it("ends one that runs when the host has stopped it, and the old version goes on", async () => {
    const [key, host] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, host);
    const id = await deploy(key, siteId);
    const { job, attempt } = await host.next("job");
    expect((await cancel(key, id)).status).toBe(202);
    expect(await host.next("cancel")).toMatchObject({ jobId: job.id, attempt });
    expect((await deployment(key, id)).status).toBe("BUILDING");
    await fail(host, job, attempt, "Cancelled", true);
    expect(await deployment(key, id)).toMatchObject({ status: "CANCELLED", error: null });
    expect((await site(key, siteId)).status).toBe("RUNNING");
    expect((await cancel(key, id)).status).toBe(409);
  });

  it("ends one that waits at once, and the one that runs goes on", async () => {
    const [key, host] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, host);
    const running = await deploy(key, siteId);
    const { job, attempt } = await host.next("job");
    const waiting = await deploy(key, siteId);
    expect(waiting).not.toBe(running);
    expect((await cancel(key, waiting)).body).toEqual({ id: waiting, status: "CANCELLED" });
    expect((await site(key, siteId)).status).toBe("DEPLOYING");
    await finish(host, job, attempt, deployResult);
    expect([(await deployment(key, running)).status, (await site(key, siteId)).status]).toEqual([
      "LIVE",
      "RUNNING",
    ]);
  });

  it("that was asked for behind a stop leaves the site stopped, as nothing of it runs any more", async () => {
    const [key, host] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, host);
    host.send(ready(0));
    await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
    const id = await deploy(key, siteId);
    expect((await cancel(key, id)).body).toEqual({ id, status: "CANCELLED" });
    host.send(ready(1));
    const { job, attempt } = await jobOf(host, "site.stop");
    await finish(host, job, attempt);
    expect((await site(key, siteId)).status).toBe("STOPPED");
    expect((await api(key, "PATCH", `/sites/${siteId}`, { action: "start" })).status).toBe(202);
  });

  it("of a site that was stopped leaves it stopped, and one that fails does not", async () => {
    const [key, host] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, host);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
    const stop = await host.next("job");
    await finish(host, stop.job, stop.attempt);
    for (const [cancelled, status] of [
      [true, "STOPPED"],
      [false, "FAILED"],
    ] as const) {
      const id = await deploy(key, siteId);
      const { job, attempt } = await host.next("job");
      if (cancelled) await cancel(key, id);
      await fail(host, job, attempt, "It broke.", cancelled);
      expect((await site(key, siteId)).status).toBe(status);
    }
  });

  it("behind a start of a stopped site leaves the start, and what starts stays", async () => {
    const [key, host] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, host);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
    const stop = await host.next("job");
    await finish(host, stop.job, stop.attempt);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "start" });
    const { job, attempt } = await jobOf(host, "site.start");
    await cancel(key, await deploy(key, siteId));
    await finish(host, job, attempt);
    expect((await site(key, siteId)).status).toBe("RUNNING");
    const wanted = bindings.DB.prepare("SELECT wanted FROM sites WHERE id = ?").bind(siteId);
    expect(await wanted.first()).toEqual({ wanted: "RUNNING" });
  });

  it("leaves a first deployment's site FAILED, from where it can be deployed again", async () => {
    const [key, host] = [await account(), await readyAgent(0)];
    const created = await createSite(key);
    await pay(created.invoiceToken);
    const id = (await site(key, created.siteId)).latestDeployment?.id ?? "";
    expect((await cancel(await account(), id)).status).toBe(403);
    expect((await cancel(key, id)).body).toEqual({ id, status: "CANCELLED" });
    expect((await site(key, created.siteId)).status).toBe("FAILED");
    await deploy(key, created.siteId);
    host.send(ready(1));
    await finishNext(host, deployResult);
    expect((await site(key, created.siteId)).status).toBe("RUNNING");
  });
});
