import { describe, expect, it } from "vitest";
import { siteEvents } from "../../worker/domain/site-events.ts";
import type { Site } from "../../protocol/api/sites.ts";
import { siteStatuses } from "../../protocol/states.ts";
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
  hostIn,
  jobOf,
  pay,
  readyAgent,
  runningSite,
  site,
  siteInput,
  uniqueName,
} from "./service.ts";

describe("the main job", () => {
  it("creates a PENDING site with an unpaid invoice and deploys nothing until it is paid", async () => {
    const key = await account();
    const agent = await readyAgent();
    const created = await createSite(key);
    expect(created).toEqual({
      siteId: expect.stringMatching(/^site_/),
      invoiceId: expect.stringMatching(/^invoice_/),
      invoiceToken: expect.stringMatching(/^inv_/),
    });
    expect(await site(key, created.siteId)).toMatchObject({
      status: "PENDING",
      currentDeployment: null,
      latestDeployment: null,
      hostId: null,
    });
    const page = await call(`/invoice/${created.invoiceToken}`, { headers: { Accept: "application/json" } });
    expect(await page.json()).toMatchObject({
      id: created.invoiceId,
      status: "unpaid",
      amountCents: 500,
      currency: "usd",
    });
    expect(agent.waiting()).toEqual([]);
    agent.close();
  });

  it("goes from payment to RUNNING by one job that the agent reports done", async () => {
    const key = await account();
    const agent = await readyAgent();
    const created = await createSite(key, { branch: "main", gitToken: "s3cret-token" });
    const paid = await pay(created.invoiceToken);
    expect(await paid.json()).toMatchObject({ status: "paid" });
    const { job, attempt } = await jobOf(agent, "site.deploy");
    expect(job.args).toMatchObject({
      source: { type: "git", address: "git.example/owner/repo", branch: "main", token: "s3cret-token" },
      run: { siteId: created.siteId, port: 3000 },
    });
    const deploying = await site(key, created.siteId);
    expect(deploying).toMatchObject({
      status: "DEPLOYING",
      latestDeployment: { status: "BUILDING" },
      hostId: agent.hostId,
    });
    await finish(agent, job, attempt, deployResult);
    expect(await site(key, created.siteId)).toMatchObject({
      status: "RUNNING",
      currentDeployment: { number: 1, commit: deployResult.commit, commitMessage: "First" },
      latestDeployment: { number: 1, status: "LIVE" },
    });
    agent.close();
  });

  it("settles an invoice once, however often it is paid", async () => {
    const key = await account();
    const agent = await readyAgent();
    const created = await createSite(key);
    const answers = await Promise.all(Array.from({ length: 10 }, () => pay(created.invoiceToken)));
    expect(answers.map((answer) => answer.status)).toEqual(Array(10).fill(200));
    const deployments = await api<{ data: unknown[] }>(key, "GET", `/sites/${created.siteId}/deployments`);
    expect(deployments.body.data).toHaveLength(1);
    const { results } = await bindings.DB.prepare("SELECT count(*) AS n FROM payments WHERE invoice_id = ?")
      .bind(created.invoiceId)
      .all();
    expect(results).toEqual([{ n: 1 }]);
    agent.close();
  });

  it("may be named with any of a-z, 0-9 and -: its host name is valid all the same", async () => {
    const key = await account();
    for (const name of ["-", "-shop-", "xn--shop"]) {
      const { siteId } = await createSite(key, { name });
      const shown = await site(key, siteId);
      expect(shown.name).toBe(name);
      expect(new URL(shown.url).hostname).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*\.[a-z0-9.-]+$/);
    }
  });

  it("is refused in a region that no host is in, with those there are, and so is a change of its settings", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const elsewhere = () => api(key, "POST", "/sites", siteInput({ region: "mars" }));
    const refused = (path: string, message: string) => ({
      status: 400,
      body: { error: "invalid_request", issues: [{ path, message: expect.stringContaining(message) }] },
    });
    await bindings.DB.prepare("UPDATE hosts SET status = 'REMOVED'").run();
    expect(await elsewhere()).toMatchObject(refused("region", "nor does any other"));
    for (const region of ["EU", "a\0b", "a\nb", "ü", "x".repeat(51)])
      expect(await api(key, "POST", "/sites", siteInput({ region }))).toMatchObject(refused("region", ""));
    for (const region of ["us", "eu", "eu"]) await hostIn(region);
    expect(await elsewhere()).toMatchObject(refused("region", "only eu, us:"));
    expect(await api(key, "PATCH", `/sites/${siteId}`, { settings: { region: "mars" } })).toMatchObject(
      refused("settings.region", "only eu, us:"),
    );
    const database = { name: uniqueName("data"), type: "redis", region: "mars" };
    expect(await api(key, "POST", "/databases", database)).toMatchObject(refused("region", "only eu, us:"));
    expect((await api(key, "POST", "/databases", { ...database, region: "us" })).status).toBe(201);
  });

  it("is refused from where no host would fetch it, at once and as a setting", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const refused = (path: string) => ({
      status: 400,
      body: { error: "invalid_request", issues: [{ path, message: expect.any(String) as string }] },
    });
    for (const host of [
      "git.example:8443",
      "localhost",
      "git.localhost",
      "git.internal",
      "gitea",
      "127.0.0.1",
      "0x7f.1",
      "2130706433",
      "10.0.0.1",
      "172.31.0.1",
      "192.168.1.1",
      "169.254.169.254",
      "100.64.0.1",
      "224.0.0.1",
      "999.1.1.1",
    ]) {
      const githubUrl = `${host}/owner/repo`;
      expect([host, await api(key, "POST", "/sites", siteInput({ githubUrl }))]).toMatchObject([
        host,
        refused("githubUrl"),
      ]);
      expect(await api(key, "PATCH", `/sites/${siteId}`, { settings: { githubUrl } })).toMatchObject(
        refused("settings.githubUrl"),
      );
    }
    for (const host of ["git.example:443", "9.9.9.9", "172.32.0.1", "internal.example"])
      expect((await api(key, "POST", "/sites", siteInput({ githubUrl: `${host}/owner/repo` }))).status).toBe(
        201,
      );
  });

  it("is refused while a hundred of the account's sites and databases were never paid for", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const copies = (count: number) =>
      bindings.DB.prepare(`
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
        INSERT INTO sites (id, account_id, name, status, deploy_type, port, pack_id, billing_term, slug, webhook_hash, created_at, updated_at)
        SELECT id || i, account_id, name || i, 'PENDING', deploy_type, port, pack_id, billing_term, slug || i, webhook_hash || i,
          created_at, updated_at FROM sites, n WHERE id = ?1`)
        .bind(siteId, count)
        .run();
    await copies(98);
    const database = () =>
      api<{ databaseId: string }>(key, "POST", "/databases", { name: uniqueName("data"), type: "redis" });
    const last = await database();
    const refused = {
      status: 409,
      body: { reason: expect.stringMatching(/^100 of .* pay for some of them or delete them/) },
    };
    expect(await api(key, "POST", "/sites", siteInput())).toMatchObject(refused);
    expect(await database()).toMatchObject(refused);
    expect((await api(await account(), "POST", "/sites", siteInput())).status).toBe(201);
    await api(key, "DELETE", `/databases/${last.body.databaseId}`);
    expect((await api(key, "POST", "/sites", siteInput())).status).toBe(201);
  });

  it("of a pasted Dockerfile that cannot be built or run is refused before it is paid for", async () => {
    const key = await account();
    const create = (dockerfile: string, more: object = {}) =>
      api(
        key,
        "POST",
        "/sites",
        siteInput({ deployType: "dockerfile", githubUrl: undefined, dockerfile, ...more }),
      );
    const image = "FROM alpine AS build\nRUN true\nFROM scratch\nCOPY --from=build / /\n";
    for (const [dockerfile, message] of [
      ["FORM alpine\n", "line 1: there is no instruction FORM"],
      ["# empty\n", expect.stringMatching(/^there is no FROM/)],
      ["FROM scratch\n", expect.stringMatching(/^line 1: FROM scratch /)],
      [image, expect.stringMatching(/^line 3: FROM scratch begins without a command/)],
    ] as const) {
      const refused = await create(dockerfile);
      expect([dockerfile, refused.status, refused.body]).toEqual([
        dockerfile,
        400,
        { error: "invalid_request", issues: [{ path: "dockerfile", message }] },
      ]);
    }
    const { status, body } = await create(image, { startCommand: "/app" });
    expect(status).toBe(201);
    const changed = await api(key, "PATCH", `/sites/${String(body["siteId"])}`, {
      settings: { dockerfile: "RUN true\n" },
    });
    expect([changed.status, changed.body["issues"]]).toEqual([
      400,
      [
        {
          path: "settings.dockerfile",
          message: expect.stringMatching(/^line 1: RUN stands before FROM/),
        },
      ],
    ]);
  });

  it("of a pasted Dockerfile shows its text where it is read alone, and not in lists", async () => {
    const key = await account();
    const dockerfile = 'FROM alpine\nCMD ["/app"]\n';
    const { siteId } = await createSite(key, { deployType: "dockerfile", githubUrl: undefined, dockerfile });
    const other = await createSite(key);
    expect((await api(key, "GET", `/sites/${siteId}`)).body).toMatchObject({ dockerfile });
    expect((await api(key, "GET", `/sites/${other.siteId}`)).body).toMatchObject({ dockerfile: null });
    const { body } = await api<{ data: object[] }>(key, "GET", "/sites");
    expect(body.data.filter((one) => "dockerfile" in one)).toEqual([]);
  });

  it("takes no change while it is being deleted, which would be lost", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const path = `/sites/${siteId}`;
    const variable = (value: string) => ({ envVariables: [{ key: "A", value }] });
    await api(key, "PATCH", path, variable("1"));
    await api(key, "PATCH", path, variable("2"));
    await bindings.DB.prepare("UPDATE sites SET status = 'DELETING' WHERE id = ?").bind(siteId).run();
    const before = await site(key, siteId);
    for (const [method, at, body] of [
      ["PATCH", path, variable("3")],
      ["POST", `${path}/env/generate`, { key: "B" }],
      ["POST", `${path}/env/restore`, { version: 1 }],
      ["PATCH", path, { settings: { port: 4000 } }],
      ["PATCH", path, { settings: { ingress: { maxBodyMb: 5 } } }],
      ["PATCH", path, { domain: "www.deleting.example" }],
      ["POST", `${path}/domains`, { domain: "www.deleting.example" }],
    ] as const)
      expect([at, body, await api(key, method, at, body)]).toMatchObject([
        at,
        body,
        { status: 409, body: { reason: expect.stringContaining("being deleted") } },
      ]);
    expect(await site(key, siteId)).toEqual(before);
  });

  it("is changed by no request with fields that its operation does not have; none and an empty object are the same", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const path = `/sites/${siteId}/webhook`;
    const address = async () => (await api<{ url: string }>(key, "GET", path)).body.url;
    const before = await address();
    for (const body of [{ foo: 1 }, [], 7]) {
      const refused = await api(key, "POST", `${path}/rotate`, body);
      expect([refused.status, refused.body["issues"]]).toEqual([400, [expect.anything()]]);
    }
    expect((await api(key, "DELETE", `/sites/${siteId}`, { foo: 1 })).status).toBe(400);
    expect(await address()).toBe(before);
    for (const body of [undefined, "", {}])
      expect((await api(key, "POST", `${path}/rotate`, body)).status).toBe(200);
    expect(await address()).not.toBe(before);
  });

  it("takes another region as a setting, asked for when it is placed the next time", async () => {
    const key = await account();
    await hostIn("nowhere");
    await hostIn("elsewhere");
    const { siteId } = await createSite(key, { region: "nowhere", dockerfilePath: "deploy/Dockerfile" });
    const shown = await site(key, siteId);
    expect(shown).toMatchObject({ region: "nowhere", dockerfilePath: "deploy/Dockerfile" });
    for (const wanted of ["elsewhere", null]) {
      const { body } = await api<Site>(key, "PATCH", `/sites/${siteId}`, { settings: { region: wanted } });
      expect([body.region, (await site(key, siteId)).region]).toEqual([wanted, wanted]);
    }
  });

  it("has submodules and Git LFS files fetched only where they are asked for", async () => {
    const key = await account();
    const agent = await readyAgent();
    const created = await createSite(key, { submodules: true });
    expect(await site(key, created.siteId)).toMatchObject({ submodules: true, lfs: false });
    await pay(created.invoiceToken);
    const first = await agent.next("job");
    expect(first.job.args).toMatchObject({ source: { submodules: true } });
    expect((first.job.args as { source: object }).source).not.toHaveProperty("lfs");
    await finish(agent, first.job, first.attempt, deployResult);
    const settings = { submodules: false, lfs: true };
    await api(key, "PATCH", `/sites/${created.siteId}`, { settings });
    expect(await site(key, created.siteId)).toMatchObject(settings);
    await api(key, "PATCH", `/sites/${created.siteId}`, { action: "deploy" });
    const second = await agent.next("job");
    expect(second.job.args).toMatchObject({ source: { lfs: true } });
    expect((second.job.args as { source: object }).source).not.toHaveProperty("submodules");
    await finish(agent, second.job, second.attempt, deployResult);
    const refused = await api(key, "POST", "/sites", {
      ...siteInput({ deployType: "image", image: "nginx", lfs: true }),
      githubUrl: undefined,
    });
    expect(refused.status).toBe(400);
    agent.close();
  });

  it.each([
    { deployType: "image", image: "nginx" },
    { deployType: "dockerfile", dockerfile: "FROM nginx" },
  ])("of type $deployType refuses how a repository is built, which it would ignore", async (source) => {
    const key = await account();
    const input = { ...siteInput(source), githubUrl: undefined };
    const settings = {
      buildCommand: "make",
      rootDir: "web",
      dockerfilePath: "Dockerfile",
      builder: "detect",
      installCommand: "npm ci",
      outputDir: "dist",
      singlePage: true,
      languageVersion: "22",
    };
    const { siteId } = (await api<{ siteId: string }>(key, "POST", "/sites", input)).body;
    for (const [name, value] of Object.entries(settings)) {
      const created = await api(key, "POST", "/sites", { ...input, name: uniqueName("site"), [name]: value });
      const changed = await api(key, "PATCH", `/sites/${siteId}`, { settings: { [name]: value } });
      for (const { status, body } of [created, changed])
        expect([name, status, JSON.stringify(body)]).toEqual([name, 400, expect.stringContaining(name)]);
      const unset = await api(key, "PATCH", `/sites/${siteId}`, { settings: { [name]: null } });
      expect([name, unset.status]).toEqual([name, 200]);
    }
  });

  it("is built as its owner says, and as detected where nothing is said any more", async () => {
    const key = await account();
    const agent = await readyAgent();
    const settings = {
      builder: "detect",
      installCommand: "npm ci --legacy-peer-deps",
      outputDir: "web/out",
      singlePage: false,
      languageVersion: "22",
    };
    const created = await createSite(key, settings);
    expect(await site(key, created.siteId)).toMatchObject(settings);
    await pay(created.invoiceToken);
    const first = await agent.next("job");
    expect(first.job.args).toMatchObject({ options: settings });
    await finish(agent, first.job, first.attempt, deployResult);
    const none = Object.fromEntries(Object.keys(settings).map((name) => [name, null]));
    await api(key, "PATCH", `/sites/${created.siteId}`, { settings: { ...none, singlePage: true } });
    expect(await site(key, created.siteId)).toMatchObject({ ...none, singlePage: true });
    await api(key, "PATCH", `/sites/${created.siteId}`, { action: "deploy" });
    const second = await agent.next("job");
    expect(second.job.args).toHaveProperty("options", { singlePage: true });
    await finish(agent, second.job, second.attempt, deployResult);
    await api(key, "POST", `/sites/${created.siteId}/rollback`, {});
    expect((await agent.next("job")).job.args).toMatchObject({ options: settings });
    for (const wrong of [
      { builder: "nixpacks" },
      { outputDir: "../out" },
      { languageVersion: "latest" },
      { singlePage: "yes" },
    ])
      expect((await api(key, "PATCH", `/sites/${created.siteId}`, { settings: wrong })).status).toBe(400);
    agent.close();
  });

  it("keeps the git token sealed in storage", async () => {
    const key = await account();
    const { siteId } = await createSite(key, { gitToken: "s3cret-token" });
    const row = await bindings.DB.prepare("SELECT * FROM sites WHERE id = ?").bind(siteId).first();
    expect(JSON.stringify(row)).not.toContain("s3cret-token");
    expect(JSON.stringify(await site(key, siteId))).not.toContain("s3cret-token");
  });
});

describe("a failed deployment", () => {
  it("of a new site leaves it FAILED with the reason", async () => {
    const key = await account();
    const agent = await readyAgent();
    const created = await createSite(key);
    await pay(created.invoiceToken);
    const { job, attempt } = await agent.next("job");
    await fail(agent, job, attempt, "Branch nope does not exist: choose another.");
    expect(await site(key, created.siteId)).toMatchObject({
      status: "FAILED",
      latestDeployment: { status: "FAILED", error: "Branch nope does not exist: choose another." },
    });
    agent.close();
  });

  it("while an older version serves returns the site to RUNNING", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    const current = (await site(key, siteId)).currentDeployment;
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    const { job, attempt } = await agent.next("job");
    await fail(agent, job, attempt);
    expect(await site(key, siteId)).toMatchObject({
      status: "RUNNING",
      currentDeployment: current,
      latestDeployment: { status: "FAILED" },
    });
    agent.close();
  });
});

describe("deploy", () => {
  it("asked for many times while one runs leaves one waiting", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    const first = await api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    expect(first).toMatchObject({
      status: 202,
      body: { id: siteId, status: "DEPLOYING", deploymentId: expect.stringMatching(/^dep_/) },
    });
    const running = await agent.next("job");
    const more = await Promise.all(
      Array.from({ length: 20 }, () =>
        api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, { action: "deploy" }),
      ),
    );
    expect(new Set(more.map(({ body }) => body.deploymentId)).size).toBe(1);
    expect(agent.waiting()).toEqual([]);
    await finish(agent, running.job, running.attempt, deployResult);
    expect((await site(key, siteId)).status).toBe("DEPLOYING");
    await finishNext(agent, deployResult);
    expect((await site(key, siteId)).status).toBe("RUNNING");
    const { body } = await api<{ data: { status: string }[] }>(key, "GET", `/sites/${siteId}/deployments`);
    expect(body.data.map(({ status }) => status)).toEqual(["LIVE", "SUPERSEDED", "SUPERSEDED"]);
    agent.close();
  });

  it.each(siteStatuses)("of a %s site moves it and queues one job, or does neither", async (status) => {
    const key = await account();
    const { siteId } = await createSite(key);
    await bindings.DB.prepare("UPDATE sites SET status = ? WHERE id = ?").bind(status, siteId).run();
    const { status: code } = await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    const legal = (siteEvents.deployRequested.from as readonly string[]).includes(status);
    expect(code).toBe(legal ? 202 : status === "PENDING" || status === "SUSPENDED" ? 402 : 409);
    const { results } = await bindings.DB.prepare("SELECT count(*) AS n FROM jobs WHERE site_id = ?")
      .bind(siteId)
      .all();
    expect(results).toEqual([{ n: legal ? 1 : 0 }]);
    expect((await site(key, siteId)).status).toBe(legal ? "DEPLOYING" : status);
    // Nobody placed it: the next test's agent would take it.
    await bindings.DB.prepare("UPDATE jobs SET status = 'CANCELLED' WHERE site_id = ?").bind(siteId).run();
  });

  it("of an unpaid site answers 402 with the invoice that settles it", async () => {
    const key = await account();
    const { siteId, invoiceToken } = await createSite(key);
    expect(await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" })).toMatchObject({
      status: 402,
      body: { error: "payment_required", invoiceToken },
    });
  });
});

describe("start, stop and restart", () => {
  it("become true when the agent says so, in the order they were asked for", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    const act = (action: string) => api(key, "PATCH", `/sites/${siteId}`, { action });
    expect(await act("start")).toMatchObject({
      status: 409,
      body: { error: "conflict", reason: expect.any(String) },
    });
    expect(await act("stop")).toMatchObject({ status: 202, body: { id: siteId } });
    const stop = await agent.next("job");
    expect((await site(key, siteId)).status).toBe("RUNNING");
    expect((await act("start")).status).toBe(202);
    expect(agent.waiting()).toEqual([]);
    await finish(agent, stop.job, stop.attempt);
    const start = await agent.next("job");
    expect([stop.job.kind, start.job.kind]).toEqual(["site.stop", "site.start"]);
    await finish(agent, start.job, start.attempt);
    expect((await site(key, siteId)).status).toBe("RUNNING");
    expect((await act("restart")).status).toBe(202);
    const restart = await jobOf(agent, "site.restart");
    await finish(agent, restart.job, restart.attempt);
    expect((await site(key, siteId)).status).toBe("RUNNING");
    await act("stop");
    const last = await agent.next("job");
    await finish(agent, last.job, last.attempt);
    expect((await site(key, siteId)).status).toBe("STOPPED");
    agent.close();
  });

  it("stop ends a deployment that runs, and the site is STOPPED", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    const deploy = await agent.next("job");
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    expect((await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" })).status).toBe(202);
    const cancel = await agent.next("cancel");
    expect(cancel.jobId).toBe(deploy.job.id);
    await fail(agent, deploy.job, deploy.attempt, "Cancelled.", true);
    const stop = await jobOf(agent, "site.stop");
    await finish(agent, stop.job, stop.attempt);
    expect((await site(key, siteId)).status).toBe("STOPPED");
    const { body } = await api<{ data: { status: string }[] }>(key, "GET", `/sites/${siteId}/deployments`);
    expect(body.data.map(({ status }) => status)).toEqual(["CANCELLED", "CANCELLED", "LIVE"]);
    agent.close();
  });
});

describe("delete", () => {
  it("is final: the host cleans up, then the site is not found and its name is free", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    const { name } = await site(key, siteId);
    expect(await api(key, "DELETE", `/sites/${siteId}`)).toMatchObject({
      status: 202,
      body: { id: siteId, status: "DELETING" },
    });
    expect((await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" })).status).toBe(409);
    const { job, attempt } = await jobOf(agent, "site.delete");
    await finish(agent, job, attempt);
    expect(await api(key, "GET", `/sites/${siteId}`)).toMatchObject({
      status: 404,
      body: { error: "Not found" },
    });
    await createSite(key, { name });
    agent.close();
  });

  it("of a site no host has seen needs no host, and voids its invoice", async () => {
    const key = await account();
    const { siteId, invoiceToken } = await createSite(key);
    expect((await api(key, "DELETE", `/sites/${siteId}`)).status).toBe(202);
    expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
    expect((await pay(invoiceToken)).status).toBe(409);
  });
});

describe("refusals", () => {
  it("tell the missing, the bad and the revoked key alike, with 401", async () => {
    const key = await account();
    for (const bad of [
      null,
      "nonsense",
      key.slice(0, -1) + (key.endsWith("a") ? "b" : "a"),
      key.replace("sk_", "pk_"),
    ])
      expect(await api(bad, "GET", "/sites")).toMatchObject({ status: 401, body: { error: "unauthorized" } });
  });

  it("tell a site that is somebody else's from one that is not there", async () => {
    const [owner, other] = [await account(), await account()];
    const { siteId } = await createSite(owner);
    expect(await api(other, "GET", `/sites/${siteId}`)).toMatchObject({
      status: 403,
      body: { error: "forbidden" },
    });
    expect((await api(other, "PATCH", `/sites/${siteId}`, { action: "deploy" })).status).toBe(403);
    expect((await api(other, "DELETE", `/sites/${siteId}`)).status).toBe(403);
    const gone = siteId.slice(0, -1) + (siteId.endsWith("0") ? "1" : "0");
    expect(await api(other, "GET", `/sites/${gone}`)).toMatchObject({
      status: 404,
      body: { error: "Not found" },
    });
    expect((await api(other, "GET", "/sites/nonsense")).status).toBe(404);
  });

  it("name the field of a bad body and create nothing", async () => {
    const key = await account();
    const cases: [Record<string, unknown>, string][] = [
      [{ name: "Not A Label" }, "name"],
      [{ githubUrl: "https://git.example/owner/repo" }, "githubUrl"],
      [{ githubUrl: "user:pw@git.example/owner/repo" }, "githubUrl"],
      [{ branch: "--upload-pack=touch" }, "branch"],
      [{ port: 70_000 }, "port"],
      [{ port: "3000" }, "port"],
      [{ billingTerm: 2 }, "billingTerm"],
      [{ startCommand: "node server.js\nrm -rf /" }, "startCommand"],
      [{ rootDir: "../.." }, "rootDir"],
      [{ packId: "pack_nope" }, "packId"],
      [{ deployType: "ftp" }, "deployType"],
    ];
    for (const [overrides, path] of cases) {
      const { status, body } = await api<{ error: string; issues: { path: string }[] }>(
        key,
        "POST",
        "/sites",
        siteInput(overrides),
      );
      expect({ overrides, status, error: body.error, path: body.issues[0]?.path }).toEqual({
        overrides,
        status: 400,
        error: "invalid_request",
        path,
      });
    }
    expect((await api(key, "POST", "/sites", siteInput({ extra: 1 }))).status).toBe(400);
    expect((await api(key, "POST", "/sites", "{not json")).body).toMatchObject({ error: "invalid_request" });
    expect((await api<{ data: unknown[] }>(key, "GET", "/sites")).body.data).toEqual([]);
  });

  it("name the field of a bad change where the body says which change it is, and else what it may be", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const cases: [body: unknown, path: string, message: RegExp][] = [
      [{ envVariables: [{ key: "A", value: 1 }] }, "envVariables.0.value", /string/],
      [{ envVariables: { A: "1" } }, "envVariables", /list/],
      [{ action: "delete" }, "action", /^must be one of "start", "stop", "restart", "deploy"$/],
      [{ billingTerm: 3 }, "packId", /required/],
      [{ domain: { remove: "no name" } }, "domain.remove", /a domain name/],
      [{ domain: {} }, "domain", /"remove".*"verify"/],
      ...[{}, [], null, { replicas: 2 }, { action: "start", settings: { port: 1 } }].map(
        (body): [unknown, string, RegExp] => [
          body,
          "",
          /exactly one of action, envVariables, domain, settings and packId/,
        ],
      ),
    ];
    for (const [body, path, message] of cases) {
      const answer = await api<{ issues: object[] }>(key, "PATCH", `/sites/${siteId}`, body);
      expect([body, answer.status, answer.body.issues]).toEqual([
        body,
        400,
        [{ path, message: expect.stringMatching(message) }],
      ]);
    }
  });

  it("refuse a taken name with 409", async () => {
    const key = await account();
    const input = siteInput();
    expect((await api(key, "POST", "/sites", input)).status).toBe(201);
    expect(await api(key, "POST", "/sites", input)).toMatchObject({
      status: 409,
      body: { error: "conflict" },
    });
  });

  it("refuse a body that is too large or not JSON", async () => {
    const key = await account();
    const headers = { Authorization: `Bearer ${key}` };
    const big = await call("/api/v1/sites", {
      method: "POST",
      headers: { ...headers, "Content-Type": "application/json" },
      body: `"${"x".repeat(1_100_000)}"`,
    });
    expect(big.status).toBe(413);
    const form = await call("/api/v1/sites", {
      method: "POST",
      headers: { ...headers, "Content-Type": "text/plain" },
      body: "name=x",
    });
    expect(form.status).toBe(415);
  });

  it("admit sixty requests in a minute with one key, then answer 429", async () => {
    const key = await account();
    const answers = await Promise.all(Array.from({ length: 80 }, () => api(key, "GET", "/sites")));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(60);
    const [refused] = answers.filter(({ status }) => status === 429);
    expect(refused?.body).toEqual({ error: "rate_limited" });
    expect(Number(refused?.headers.get("Retry-After"))).toBeGreaterThan(0);
    expect(refused?.headers.get("RateLimit-Policy")).toBe('"key";q=60;w=60');
  });
});

describe("the deploy webhook", () => {
  it("deploys without any header, skips other branches and pings, and stops when rotated", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent, { branch: "main" });
    const { url } = (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body;
    const post = (body?: string, headers?: Record<string, string>) =>
      call(new URL(url).pathname, {
        method: "POST",
        ...(body !== undefined && { body }),
        ...(headers && { headers }),
      });
    const ping = await post("{}", { "X-GitHub-Event": "ping" });
    expect([ping.status, await ping.json()]).toEqual([200, { status: "RUNNING", skipped: true }]);
    const other = await post(JSON.stringify({ ref: "refs/heads/feature" }), { "X-GitHub-Event": "push" });
    expect(other.status).toBe(200);
    const form = new URLSearchParams({ payload: JSON.stringify({ ref: "refs/heads/feature" }) });
    const asForm = await post(form.toString(), {
      "X-GitHub-Event": "push",
      "Content-Type": "application/x-www-form-urlencoded",
    });
    expect([asForm.status, await asForm.json()]).toEqual([200, { status: "RUNNING", skipped: true }]);
    const deployments = async () =>
      (await api<{ data: unknown[] }>(key, "GET", `/sites/${siteId}/deployments`)).body.data.length;
    expect([await deployments(), (await site(key, siteId)).status]).toEqual([1, "RUNNING"]);
    const pushed = (...names: string[]) =>
      JSON.stringify({ changes: names.map((id) => ({ ref: { id: `refs/${id}` }, type: "UPDATE" })) });
    const asBitbucket = { "X-Event-Key": "repo:refs_changed" };
    const others = await post(pushed("heads/dev", "tags/main", "heads/fix"), asBitbucket);
    expect([others.status, await others.json()]).toEqual([200, { status: "RUNNING", skipped: true }]);
    const fired = await post(pushed("tags/v1", "heads/dev", "heads/main"), asBitbucket);
    expect([fired.status, await fired.json()]).toEqual([
      202,
      { status: "DEPLOYING", deploymentId: expect.stringMatching(/^dep_/) },
    ]);
    expect((await site(key, siteId)).status).toBe("DEPLOYING");
    await api(key, "POST", `/sites/${siteId}/webhook/rotate`);
    const dead = await post();
    expect([dead.status, await dead.json()]).toEqual([404, { error: "Not found" }]);
    agent.close();
  });

  it("of a site without a branch deploys what is pushed to the repository's own, and nothing else", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    const { url } = (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body;
    const push = async (ref: string) =>
      (
        await call(new URL(url).pathname, {
          method: "POST",
          headers: { "X-GitHub-Event": "push" },
          body: JSON.stringify({ ref, repository: { default_branch: "trunk" } }),
        })
      ).status;
    expect(await push("refs/heads/main")).toBe(200);
    expect((await site(key, siteId)).status).toBe("RUNNING");
    expect(await push("refs/heads/trunk")).toBe(202);
    expect((await site(key, siteId)).status).toBe("DEPLOYING");
    agent.close();
  });

  it("is limited by itself: what a Git host sends for others from the same address does not use it up", async () => {
    const key = await account();
    const hook = async () => {
      const { siteId } = await createSite(key);
      const { url } = (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body;
      return new URL(url).pathname;
    };
    const [first, second, third] = [await hook(), await hook(), await hook()];
    const post = async (path: string) => {
      const answer = await call(path, {
        method: "POST",
        headers: { "CF-Connecting-IP": "203.0.113.140" },
      });
      return [answer.status, (await answer.json<{ error: string }>()).error];
    };
    const times = (count: number, path: string) =>
      Promise.all(Array.from({ length: count }, () => post(path)));
    for (const path of [first, second]) await times(120, path);
    expect(await post(first)).toEqual([429, "rate_limited"]);
    expect((await post(third))[0]).toBe(402);
    // Who guesses is refused before anything is looked for.
    const guessed = `/webhooks/deploy/whk_0${"x".repeat(43)}`;
    const others = Array.from(
      { length: 600 },
      (_, at) => `${guessed.slice(0, -3)}${String(at).padStart(3, "0")}`,
    );
    await Promise.all(others.map(post));
    expect(await post(guessed)).toEqual([429, "rate_limited"]);
    // Others at that address are not held up by it.
    expect((await post(third))[0]).toBe(402);
    expect(await post(third.slice(0, -6))).toEqual([429, "rate_limited"]);
  });

  it("of an unpaid site answers 402", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const { url } = (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body;
    expect((await call(new URL(url).pathname, { method: "POST" })).status).toBe(402);
  });
});
