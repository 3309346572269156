import { describe, expect, it } from "vitest";
import type { JobArgs } from "../../protocol/agent/jobs.ts";
import type { Site } from "../../protocol/api/sites.ts";
import {
  account,
  api,
  createSite,
  deployResult,
  deployingSite,
  finish,
  jobOf,
  readyAgent,
  runningSite,
  site,
} from "./service.ts";

const lifecycle = { restartPolicy: "never" as const, drainSeconds: 60, stopTimeoutSeconds: 30 };
const patch = (key: string, id: string, settings: object, apply?: string) =>
  api<Site>(key, "PATCH", `/sites/${id}`, { settings, ...(apply !== undefined && { apply }) });

describe("settings that are applied now", () => {
  it("restart the version in service with them, and are what its next deployment uses", async () => {
    const [key, host] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, host);
    const healthCheck = { kind: "tcp", intervalSeconds: 60, timeoutSeconds: 2, failures: 5 };
    const settings = { lifecycle, replicas: 2, healthCheckPath: "/up", healthCheck };
    expect(await patch(key, siteId, settings, "now")).toMatchObject({ status: 200, body: settings });
    const { job, attempt } = await jobOf(host, "site.restart");
    expect(job.args.run).toMatchObject(settings);
    await finish(host, job, attempt);
    await patch(key, siteId, { healthCheckPath: null, lifecycle: {} }, "now");
    const again = await host.next("job");
    expect((again.job.args as JobArgs<"site.restart">).run).toMatchObject({
      healthCheckPath: null,
      lifecycle: {},
      replicas: 2,
    });
    await finish(host, again.job, again.attempt);
    expect(await site(key, siteId)).toMatchObject({ status: "RUNNING", lifecycle: {}, replicas: 2 });
  });

  it("wait for the start of a site that is stopped", async () => {
    const [key, host] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, host);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
    const stop = await host.next("job");
    await finish(host, stop.job, stop.attempt);
    expect((await patch(key, siteId, { lifecycle }, "now")).status).toBe(200);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "start" });
    const start = await jobOf(host, "site.start");
    expect(start.job.args.run).toMatchObject({ lifecycle });
  });

  it("are refused whole where no version is in service, or one of them needs a deployment", async () => {
    const [key, host] = [await account(), await readyAgent()];
    const unpaid = await createSite(key);
    expect((await patch(key, unpaid.siteId, { replicas: 2 }, "now")).status).toBe(402);
    const { siteId, job, attempt } = await deployingSite(key, host);
    expect((await patch(key, siteId, { replicas: 2 }, "now")).status).toBe(409);
    await finish(host, job, attempt, deployResult);
    const refused = await patch(key, siteId, { replicas: 2, port: 4000 }, "now");
    expect(refused).toMatchObject({ status: 400, body: { issues: [{ path: "settings.port" }] } });
    for (const wrong of [{ drainSeconds: 0 }, { drainSeconds: 3601 }, { stopTimeoutSeconds: 121 }])
      expect((await patch(key, siteId, { lifecycle: wrong })).status).toBe(400);
    expect((await patch(key, siteId, { lifecycle: { restartPolicy: "sometimes" } })).status).toBe(400);
    expect((await patch(key, siteId, { lifecycle: { stopSignal: "SIGKILL" } })).status).toBe(400);
    for (const wrong of [{ kind: "udp" }, { intervalSeconds: 9 }, { timeoutSeconds: 31 }, { failures: 0 }])
      expect((await patch(key, siteId, { healthCheck: wrong })).status).toBe(400);
    for (const wrong of [0, 11, 1.5])
      expect((await patch(key, siteId, { keptImages: wrong })).status).toBe(400);
    expect((await patch(key, siteId, { replicas: 2 }, "later")).status).toBe(400);
    expect(await site(key, siteId)).toMatchObject({ replicas: 1, lifecycle: {}, port: 3000 });
  });

  it("count from the next deployment without that word", async () => {
    const [key, host] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, host);
    await patch(key, siteId, { lifecycle });
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    const restart = await host.next("job");
    expect((restart.job.args as JobArgs<"site.restart">).run.lifecycle).toEqual({});
    await finish(host, restart.job, restart.attempt);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    const deploy = await host.next("job");
    expect((deploy.job.args as JobArgs<"site.deploy">).run.lifecycle).toEqual(lifecycle);
  });
});
