import { describe, expect, it } from "vitest";
import { account, api, deployingSite, fail, finish, readyAgent, runningSite, site } from "./service.ts";

describe("an action that fails on the host", () => {
  it("says why where the site is shown, until it succeeds", async () => {
    const key = await account();
    const on = await readyAgent();
    const { siteId } = await runningSite(key, on);
    const act = async (action: string, error?: string) => {
      expect((await api(key, "PATCH", `/sites/${siteId}`, { action })).status).toBe(202);
      const { job, attempt } = await on.next("job");
      expect(job.kind).toBe(`site.${action}`);
      if (error === undefined) await finish(on, job, attempt);
      else await fail(on, job, attempt, error);
      const { status, latestDeployment } = await site(key, siteId);
      return [status, latestDeployment?.status, latestDeployment?.error];
    };
    expect(await act("restart", "Nothing listens on port 3000.")).toEqual([
      "RUNNING",
      "LIVE",
      "Not restarted: Nothing listens on port 3000.",
    ]);
    expect(await act("restart")).toEqual(["RUNNING", "LIVE", null]);
    expect(await act("stop", "The engine does not answer.")).toEqual([
      "RUNNING",
      "LIVE",
      "Not stopped: The engine does not answer.",
    ]);
    expect(await act("stop")).toEqual(["STOPPED", "LIVE", null]);
    expect(await act("start", "The image is gone: deploy again.")).toEqual([
      "FAILED",
      "LIVE",
      "Not started: The image is gone: deploy again.",
    ]);
    expect(await act("start")).toEqual(["RUNNING", "LIVE", null]);
  });

  it("says of a site that was stopped in its first deployment that no version of it has run", async () => {
    const key = await account();
    const on = await readyAgent();
    const { siteId, job, attempt } = await deployingSite(key, on);
    const act = (action: string) => api(key, "PATCH", `/sites/${siteId}`, { action });
    expect((await act("stop")).status).toBe(202);
    await fail(on, job, attempt, "Cancelled.", true);
    const stop = await on.next("job");
    await finish(on, stop.job, stop.attempt);
    expect((await site(key, siteId)).status).toBe("STOPPED");
    for (const action of ["start", "restart"])
      expect((await act(action)).body).toMatchObject({
        reason: "No version of this site has run yet. Deploy it first.",
      });
    expect((await act("stop")).body).toMatchObject({ reason: "This site is already stopped." });
  });
});
