import { describe, expect, it } from "vitest";
import type { JobArgs } from "../../protocol/agent/jobs.ts";
import type { Page } from "../../protocol/api/common.ts";
import type { Deployment } from "../../protocol/api/deployments.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  finish,
  finishNext,
  operator,
  pay,
  readyAgent,
  runningSite,
  uniqueName,
  type Agent,
} from "./service.ts";

const listed = async (key: string, path: string) =>
  (await api<Page<{ id: string }>>(key, "GET", path)).body.data.map(({ id }) => id);

describe("a list", () => {
  it("of sites, databases or invoices has only those of the status that is asked for, page by page", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const running = await runningSite(key, on);
    const [one, two] = [await createSite(key), await createSite(key)];
    expect(await listed(key, "/sites?status=RUNNING")).toEqual([running.siteId]);
    expect(await listed(key, "/sites?status=PENDING")).toEqual([two.siteId, one.siteId]);
    const { body: page } = await api<Page<{ id: string }>>(key, "GET", "/sites?status=PENDING&limit=1");
    expect(await listed(key, `/sites?status=PENDING&limit=1&cursor=${page.nextCursor}`)).toEqual([
      one.siteId,
    ]);
    expect(await listed(key, "/invoices?status=paid")).toEqual([running.invoiceId]);
    expect(await listed(key, "/invoices?status=unpaid")).toEqual([two.invoiceId, one.invoiceId]);
    const { body } = await api<{ databaseId: string }>(key, "POST", "/databases", {
      name: uniqueName("data"),
      type: "redis",
    });
    expect(await listed(key, "/databases?status=PENDING")).toEqual([body.databaseId]);
    expect(await listed(key, "/databases?status=RUNNING")).toEqual([]);
    for (const path of ["/sites", "/databases", "/invoices"])
      expect((await api(key, "GET", `${path}?status=LOST`)).status).toBe(400);
  });
});

describe("a filter of a list", () => {
  it("by what is no id or address is refused, as an empty list would say that there is nothing", async () => {
    const key = await operator();
    for (const wrong of ["", "x", "site_001m80000000000000000000000"])
      for (const path of [
        "/notifications/deliveries?channelId=",
        "/activity/all?accountId=",
        "/sites/all?accountId=",
        "/jobs?hostId=",
      ])
        expect([path, wrong, (await api(key, "GET", path + wrong)).status]).toEqual([path, wrong, 400]);
    expect((await api(key, "GET", "/accounts?email=")).status).toBe(400);
  });
});

describe("a deployment of a ref", () => {
  const deployed = async (key: string, on: Agent, siteId: string, ref?: string) => {
    const body = { action: "deploy", ...(ref !== undefined && { ref }) };
    expect((await api(key, "PATCH", `/sites/${siteId}`, body)).status).toBe(202);
    const job = await finishNext(on, deployResult);
    return (job.args as JobArgs<"site.deploy">).source;
  };

  it("fetches that branch, tag or commit once; the next one is of the site's branch again", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on, { branch: "main" });
    expect(await deployed(key, on, siteId, "v1.2.3")).toMatchObject({ branch: "v1.2.3" });
    const commit = "c".repeat(40);
    expect(await deployed(key, on, siteId, commit)).toMatchObject({ branch: "main", commit });
    expect(await deployed(key, on, siteId)).not.toHaveProperty("commit");
    const { body } = await api<Page<Deployment>>(key, "GET", `/sites/${siteId}/deployments`);
    expect(body.data.map(({ ref }) => ref)).toEqual([null, commit, "v1.2.3", null]);
    for (const ref of ["a b", "-x", "a..b", ""])
      expect((await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy", ref })).status).toBe(400);
  });

  it("is refused for a site that has no repository, and of several that wait, the last one counts", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const image = await runningSite(key, on, {
      deployType: "image",
      githubUrl: undefined,
      image: "registry.test/app:1",
    });
    const deploy = (siteId: string, ref: string) =>
      api(key, "PATCH", `/sites/${siteId}`, { action: "deploy", ref });
    expect((await deploy(image.siteId, "main")).status).toBe(400);
    const { siteId } = await runningSite(key, on);
    await deploy(siteId, "one");
    const first = await on.next("job");
    await deploy(siteId, "two");
    await deploy(siteId, "three");
    await finish(on, first.job, first.attempt, deployResult);
    const { job } = await on.next("job");
    expect((job.args as JobArgs<"site.deploy">).source).toMatchObject({ branch: "three" });
  });
});

describe("a rollback", () => {
  it("takes the environment of its deployment, or the newest one where that is asked for", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on);
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "NEW", value: "1" }] });
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    await finishNext(on, deployResult);
    const [, first] = await listed(key, `/sites/${siteId}/deployments`);
    const envOf = async (withEnv?: boolean) => {
      const body = { deploymentId: first, ...(withEnv !== undefined && { withEnv }) };
      expect((await api(key, "POST", `/sites/${siteId}/rollback`, body)).status).toBe(202);
      const job = await finishNext(on, deployResult);
      return (job.args as JobArgs<"site.deploy">).run.env.map((one) => one.key);
    };
    expect(await envOf()).toEqual([]);
    expect(await envOf(false)).toEqual(["NEW"]);
    expect(await envOf(true)).toEqual([]);
  });
});

describe("a deletion", () => {
  it("of a site with volumes is refused where their data is not to be lost", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const volumes = [{ name: "data", mountPath: "/data" }];
    const { siteId } = await runningSite(key, on, { volumes });
    const remove = (id: string, query: string) => api(key, "DELETE", `/sites/${id}${query}`);
    expect((await remove(siteId, "?deleteVolumes=0")).status).toBe(409);
    expect((await api(key, "GET", `/sites/${siteId}`)).body["status"]).toBe("RUNNING");
    expect((await remove(siteId, "?deleteVolumes=1")).status).toBe(202);
    const plain = await runningSite(key, on);
    expect((await remove(plain.siteId, "?deleteVolumes=0")).status).toBe(202);
    expect((await remove(plain.siteId, "?deleteVolumes=0")).status).toBe(202);
    const unpaid = await createSite(key);
    expect((await remove(unpaid.siteId, "?deleteVolumes=0")).status).toBe(202);
    expect((await api(key, "GET", `/sites/${unpaid.siteId}`)).status).toBe(404);
  });

  it.each([
    ["", "database.backup"],
    ["?skipFinalBackup=1", "database.delete"],
  ])("of a database with %j begins with %s", async (query, kind) => {
    const [key, on] = [await account(), await readyAgent()];
    const { body } = await api<{ databaseId: string; invoiceToken: string }>(key, "POST", "/databases", {
      name: uniqueName("data"),
      type: "redis",
    });
    await pay(body.invoiceToken);
    await finishNext(on, { version: "7.0" });
    expect((await api(key, "DELETE", `/databases/${body.databaseId}${query}`)).status).toBe(202);
    const { results } = await bindings.DB.prepare(
      "SELECT kind FROM jobs WHERE database_id = ? AND status IN ('QUEUED', 'LEASED') ORDER BY seq LIMIT 1",
    )
      .bind(body.databaseId)
      .all<{ kind: string }>();
    expect(results).toEqual([{ kind }]);
  });
});
