import { afterEach, describe, expect, it, vi } from "vitest";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import type {
  DeploymentExplanation,
  SiteDiagnosis,
  SiteProbed,
  Unhealthy,
} from "../../protocol/api/diagnosis.ts";
import type { SiteHealth } from "../../protocol/api/running.ts";
import type { SiteCloned } from "../../protocol/api/sites.ts";
import { wellContainer } from "../support/site-container.ts";
import { follow } from "../../worker/services/sites/probe.ts";
import { answerNext, funded, useTool } from "./assistant.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  deployingSite,
  fail,
  finish,
  finishNext,
  pay,
  readyAgent,
  runningSite,
  site,
  uniqueName,
  type Agent,
  runningDatabase,
} from "./service.ts";

afterEach(() => vi.restoreAllMocks());

const healthOf = (change: Partial<SiteHealth> = {}): SiteHealth => ({
  route: "serving",
  hostnames: [],
  containers: [wellContainer],
  diskFreeMb: 50_000,
  ...change,
});
/** No host outside can be reached. */
const offline = () =>
  vi.spyOn(globalThis, "fetch").mockImplementation(() => Promise.reject(new TypeError("cannot be reached")));

/** A site whose second deployment has failed. */
async function failedSite(key: string, on: Agent, error: string, name: string) {
  const { siteId } = await runningSite(key, on, { name });
  await api(key, "PATCH", `/sites/${siteId}`, {
    envVariables: [{ key: "TOKEN", value: "canary-secret", encrypted: true }],
  });
  await api(key, "PATCH", `/sites/${siteId}`, {
    settings: { startCommand: "node other.js", buildCommand: "make broken" },
  });
  const { body } = await api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, {
    action: "deploy",
  });
  const { job, attempt } = await on.next("job");
  on.send({
    type: "log",
    jobId: job.id,
    attempt,
    deploymentId: body.deploymentId,
    firstSeq: 1,
    lines: ["Building.", "Starting.", "Error: no port"].map((text) => ({
      at: new Date().toISOString(),
      stream: "stdout" as const,
      text,
    })),
  });
  await on.next("logAck");
  on.send({
    type: "failed",
    jobId: job.id,
    attempt,
    error,
    cancelled: false,
    durations: { clone: 1, build: 2, start: null, swap: null },
  });
  await on.next("ack");
  return { siteId, deploymentId: body.deploymentId };
}

describe("a failed deployment", () => {
  const wrongPort =
    "Nothing listens on port 3000, but the app listens on 8080: set the site's port to it, or let the app use the PORT variable.";

  it("is explained by its step, its last lines, what changed since the last good one, and a fix that works", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId, deploymentId } = await failedSite(key, on, wrongPort, uniqueName("broken"));
    const path = `/deployments/${deploymentId}/explanation`;
    const { body } = await api<DeploymentExplanation>(key, "GET", path);
    expect(body).toMatchObject({
      failed: true,
      step: "start",
      error: wrongPort,
      outOfMemory: false,
      lastLines: expect.arrayContaining(["Error: no port"]) as string[],
      lastGood: { number: 1 },
      changed: {
        environment: [{ key: "TOKEN", change: "added" }],
        settings: ["startCommand", "buildCommand"],
        unknownSettings: [],
      },
      cause: { code: "wrong_port" },
      fixes: [{ operation: "patchSite", input: { id: siteId, settings: { port: 8080 } } }],
    });
    expect(JSON.stringify(body)).not.toContain("canary-secret");
    const { id, ...change } = body.fixes[0]?.input ?? {};
    expect((await api(key, "PATCH", `/sites/${String(id)}`, change)).status).toBe(200);
    expect((await site(key, siteId)).port).toBe(8080);
    // Once a later one has ended, it is no longer kept what this one was built from.
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    await finishNext(on, deployResult);
    const later = (await api<DeploymentExplanation>(key, "GET", path)).body;
    expect(later.changed).toMatchObject({
      settings: ["startCommand"],
      unknownSettings: expect.arrayContaining(["buildCommand", "branch"]) as string[],
    });
    // A fix would change what the later one works with.
    expect(later.fixes).toEqual([]);
    expect((await api(await account(), "GET", path)).status).toBe(403);
  });

  it("is explained through the assistant by its site, and one that did not fail has nothing to explain", async () => {
    const [key, on] = [await funded(), await readyAgent()];
    const { deploymentId } = await failedSite(key, on, wrongPort, "broken");
    const { result } = await useTool(key, "explain_failed_deployment", { site: "broken" });
    expect(result).toMatchObject({
      deployment: { id: deploymentId },
      cause: { code: "wrong_port" },
      since: null,
    });
    const { siteId } = await runningSite(key, on, { name: "fine" });
    const current = (await site(key, siteId)).currentDeployment?.id ?? "";
    const named = await useTool(key, "explain_failed_deployment", { deployment: current });
    expect(named.result).toMatchObject({ failed: false, step: null, cause: null, fixes: [], changed: null });
    expect((await useTool(key, "explain_failed_deployment", { site: "fine" })).result).toMatchObject({
      failed: false,
    });
  });
});

describe("the health of a site", () => {
  it("is asked of its host at this moment, for its owner", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on);
    const path = `/sites/${siteId}/health`;
    const reading = api<SiteHealth>(key, "GET", path);
    expect(await answerNext(on, { kind: "health", health: healthOf() })).toEqual({
      kind: "health",
      siteId,
      port: 3000,
    });
    expect((await reading).body).toEqual(healthOf());
    expect((await api(await account(), "GET", path)).status).toBe(403);
  });
});

describe("a diagnosis", () => {
  it("of a site that nobody paid for is that, without asking anybody", async () => {
    const key = await account();
    const { siteId, invoiceId } = await createSite(key);
    const asked = offline();
    const { body } = await api<SiteDiagnosis>(key, "GET", `/sites/${siteId}/diagnosis`);
    expect(body.checks[0]).toMatchObject({
      check: "invoice",
      status: "problem",
      fixes: [{ operation: "getInvoice", input: { id: invoiceId } }],
    });
    expect(asked).not.toHaveBeenCalled();
    expect((await api(await account(), "GET", `/sites/${siteId}/diagnosis`)).status).toBe(403);
  });

  it("of a site names its database that nobody paid for, before the deployment that failed without it", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId, invoiceToken } = await createSite(key);
    const created = await api<DatabaseCreated>(key, "POST", "/databases", {
      name: uniqueName("data"),
      type: "postgresql",
    });
    await api(key, "POST", `/databases/${created.body.databaseId}/links`, { siteId });
    await pay(invoiceToken);
    const { job, attempt } = await on.next("job");
    await fail(on, job, attempt, "The app exited with code 1.");
    offline();
    const reading = api<SiteDiagnosis>(key, "GET", `/sites/${siteId}/diagnosis`);
    await answerNext(on, { kind: "health", health: healthOf({ containers: [] }) });
    const { body } = await reading;
    expect(body.checks.find(({ status }) => status === "problem")).toMatchObject({
      check: "database",
      fixes: [{ operation: "getInvoice", input: { id: created.body.invoiceId } }],
    });
  });

  it("goes on while the host is silent", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on);
    on.close();
    await on.closed;
    offline();
    const { status, body } = await api<SiteDiagnosis>(key, "GET", `/sites/${siteId}/diagnosis`);
    expect(status).toBe(200);
    expect(body.checks.find(({ check }) => check === "health")?.status).toBe("unknown");
  });
});

describe("a request from outside", () => {
  it("is refused for any name but the site's own, and for what is no path", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on);
    const asked = offline();
    const probe = (body: object, as = key) => api<SiteProbed>(as, "POST", `/sites/${siteId}/probe`, body);
    for (const path of ["//evil.test/", "/\\evil.test/", "http://evil.test/", "home", "/\n", "/%0d%0a x"])
      expect([path, (await probe({ path })).status]).toEqual([path, 400]);
    expect((await probe({ domain: "evil.test" })).status).toBe(400);
    expect((await probe({}, await account())).status).toBe(403);
    expect(asked).not.toHaveBeenCalled();
  });

  it("says of an answer while no version of the site is in service that it is not the site's", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on);
    const probe = async () => (await api<SiteProbed>(key, "POST", `/sites/${siteId}/probe`, {})).body;
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("", { status: 404 }));
    expect(await probe()).toMatchObject({ reachable: true, status: 404, error: null });
    await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
    await finishNext(on);
    expect(await probe()).toMatchObject({
      reachable: true,
      status: 404,
      error: expect.stringMatching(/^no version of the site is in service/),
    });
  });

  it("tells an endless redirect, another port and a host that cannot be reached from an answer", async () => {
    const now = () => new Date();
    const start = new URL("https://a.test/");
    const allowed = new Set(["a.test"]);
    const answers = (location: string | null) => ({
      now,
      fetchOnce: async () => ({ status: 302, location }),
    });
    const endless = await follow(answers("/"), start, allowed, "");
    expect([endless.error, endless.requests.length]).toEqual(["too many redirects", 6]);
    for (const location of ["https://a.test:8443/", "ftp://a.test/", "https://b.test/", "https://[::1]/"])
      expect((await follow(answers(location), start, allowed, "")).requests).toHaveLength(1);
    const gone = { now, fetchOnce: async () => Promise.reject(new Error("connection refused")) };
    expect(await follow(gone, start, allowed, "")).toMatchObject({
      reachable: false,
      status: null,
      error: "connection refused",
    });
  });
});

describe("another site like this one", () => {
  it("has its settings and plain variables, and neither secrets nor domains; it waits for its own payment", async () => {
    const key = await funded();
    const { siteId } = await createSite(key, {
      name: "first",
      branch: "main",
      buildCommand: "npm run build",
      healthCheckPath: "/up",
      rootDir: "app",
      gitToken: "canary-token",
      volumes: [{ name: "data", mountPath: "/data" }],
    });
    await api(key, "PATCH", `/sites/${siteId}`, {
      envVariables: [
        { key: "PLAIN", value: "1", scope: "build" },
        { key: "TOKEN", value: "canary-secret", encrypted: true },
      ],
    });
    await api(key, "PATCH", `/sites/${siteId}`, { domain: "www.clone.example.com" });
    const { result } = await useTool(key, "clone_site", { site: "first", name: "second" });
    const cloned = result as SiteCloned & { payAt: string };
    expect(cloned).toMatchObject({ secretsToSet: ["TOKEN"], credentialsToSet: ["gitToken"] });
    const [one, two] = [await site(key, siteId), await site(key, cloned.siteId)];
    const different = ["id", "name", "url", "domains", "envVariables", "createdAt", "updatedAt"];
    const alike = (of: object) =>
      Object.fromEntries(Object.entries(of).filter(([name]) => !different.includes(name)));
    expect(alike(two)).toEqual(alike(one));
    expect(two).toMatchObject({
      status: "PENDING",
      domains: [],
      envVariables: [{ key: "PLAIN", value: "1", scope: "build" }],
    });
    expect((await pay(cloned.invoiceToken)).status).toBe(200);
    const again = await api(key, "POST", `/sites/${siteId}/clone`, { name: "second" });
    expect(again.status).toBe(409);
    expect((await api(await account(), "POST", `/sites/${siteId}/clone`, { name: "x" })).status).toBe(403);
  });
});

describe("a generated secret", () => {
  it("is set, random, and shown to nobody", async () => {
    const key = await funded();
    const { siteId } = await createSite(key, { name: "sealed" });
    await useTool(key, "generate_secret", { site: "sealed", key: "SESSION_SECRET", length: 64 });
    const generate = (name: string) =>
      api(key, "POST", `/sites/${siteId}/env/generate`, { key: name, length: 64 });
    const { status, body } = await generate("OTHER");
    expect([status, body["envVariables"]]).toEqual([
      200,
      [
        { key: "SESSION_SECRET", value: null, encrypted: true, scope: "both" },
        { key: "OTHER", value: null, encrypted: true, scope: "both" },
      ],
    ]);
    const { contextOf } = await import("../../worker/compose.ts");
    const ctx = contextOf(bindings, { type: "system" }, () => undefined);
    const row = await bindings.DB.prepare(
      "SELECT entries FROM site_env_versions WHERE site_id = ? ORDER BY version DESC LIMIT 1",
    )
      .bind(siteId)
      .first<{ entries: string }>();
    const values = (JSON.parse(row?.entries ?? "[]") as { key: string; value: string }[]).map((one) =>
      ctx.secrets.open(one.value, `site_env:${siteId}:${one.key}`),
    );
    expect(values).toEqual([expect.stringMatching(/^[\w-]{64}$/), expect.stringMatching(/^[\w-]{64}$/)]);
    expect(new Set(values).size).toBe(2);
    expect((await generate("1")).status).toBe(400);
  });
});

describe("what is not well in an account", () => {
  it("is listed with its reason; what its owner stopped is well", async () => {
    const [key, on] = [await funded(), await readyAgent()];
    const fine = await runningSite(key, on, { name: "fine" });
    const broken = await deployingSite(key, on, { name: "broken" });
    await fail(on, broken.job, broken.attempt, "The build failed.");
    const stopped = await runningSite(key, on, { name: "stopped" });
    await api(key, "PATCH", `/sites/${stopped.siteId}`, { action: "stop" });
    const { job, attempt } = await on.next("job");
    await finish(on, job, attempt);
    await createSite(key, { name: "unpaid" });
    const named = await runningSite(key, on, { name: "named" });
    await api(key, "POST", `/sites/${named.siteId}/domains`, { domain: "shop.example" });
    const message = "There is no record at shop.example. Create a CNAME record.";
    await bindings.DB.prepare(
      "UPDATE domains SET verified_at = 1, state = 'ERROR', problems = ? WHERE site_id = ?",
    )
      .bind(JSON.stringify([{ code: "record_missing", message }]), named.siteId)
      .run();
    const failing = await runningSite(key, on, { name: "failing" });
    const detail = "The health check /up of version 1 answers 500, 3 times in a row.";
    const other = await readyAgent();
    other.send({ type: "failingChecks", sites: [{ siteId: fine.siteId, detail: "of another host" }] });
    on.send({ type: "failingChecks", sites: [{ siteId: failing.siteId, detail }] });
    const failingNow = async () =>
      (await api<Unhealthy>(key, "GET", "/account/unhealthy")).body.data.filter(
        ({ reason }) => reason === detail,
      ).length;
    await expect.poll(failingNow).toBe(1);
    const { result } = await useTool(key, "list_unhealthy_resources", {});
    const { data, looked } = result as Unhealthy;
    expect(looked).toBe(6);
    expect(Object.fromEntries(data.map(({ name, reason }) => [name, reason]))).toEqual({
      failing: detail,
      broken: "it is FAILED",
      unpaid: "it is PENDING",
      named: "its domain shop.example is failing: There is no record at shop.example. Create a CNAME record",
    });
    expect((await api<Unhealthy>(key, "GET", "/account/unhealthy")).body).toEqual(result);
    expect(data.map(({ id }) => id)).not.toContain(fine.siteId);
    on.send({ type: "failingChecks", sites: [] });
    await expect.poll(failingNow).toBe(0);
  });
});

describe("a session of a database", () => {
  const asServer = { type: "postgresql", databaseName: expect.any(String) as string };
  const launched = async (key: string, on: Agent): Promise<string> =>
    (await runningDatabase(key, on)).databaseId;
  const insight = {
    sizeMb: 1,
    connections: { used: 2, max: 10 },
    cacheHitRatio: null,
    uptimeSeconds: 1,
    activeQueries: [
      { id: "41", statement: "UPDATE a", durationMs: 9000, state: "active", waitsFor: null, blockedBy: [] },
      {
        id: "42",
        statement: "UPDATE b",
        durationMs: 5,
        state: "active",
        waitsFor: "Lock: tuple",
        blockedBy: ["41"],
      },
    ],
    slowQueries: [],
  };

  it("is ended by its id, for the owner alone; one that is not there is 404", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const id = await launched(key, on);
    const end = (session: string, as = key) => api(as, "DELETE", `/databases/${id}/sessions/${session}`);
    expect((await end("41", await account())).status).toBe(403);
    expect((await end("x")).status).toBe(404);
    for (const ended of [true, false]) {
      const ending = end("41");
      expect(await answerNext(on, { kind: "endSession", ended })).toMatchObject({
        kind: "endSession",
        session: "41",
        databaseId: id,
        ...asServer,
      });
      expect((await ending).status).toBe(ended ? 200 : 404);
    }
  });

  it("is not ended where it runs something else by then", async () => {
    const [key, on] = [await funded(), await readyAgent()];
    const db = await launched(key, on);
    const using = useTool(key, "kill_query", { db, query: "42" });
    await answerNext(on, { kind: "insight", insight });
    await answerNext(on, { kind: "insight", insight: { ...insight, activeQueries: [] } });
    expect((await using).reply.toolCalls).toEqual([{ tool: "kill_query", ok: false }]);
  });

  it("is not written to by a dry run", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const db = await launched(key, on);
    const both = { statement: "DELETE FROM orders", write: true, dryRun: true };
    expect((await api(key, "POST", `/databases/${db}/query`, both)).status).toBe(400);
  });
});
