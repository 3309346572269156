import { beforeEach, describe, expect, it } from "vitest";
import type { Deployment } from "../../protocol/api/deployments.ts";
import { clearAway, hostFor } from "./hosts-service.ts";
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
