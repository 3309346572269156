import { describe, expect, it } from "vitest";
import type { EnvVariableShown } from "../../protocol/api/sites.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  finish,
  finishNext,
  pay,
  readyAgent,
  runningSite,
  site,
  ready,
} from "./service.ts";

describe("environment variables", () => {
  it("are set by key, removed by null, and shown without secret values", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const patch = (envVariables: object[]) => api(key, "PATCH", `/sites/${siteId}`, { envVariables });
    expect(
      await patch([
        { key: "A", value: "1" },
        { key: "TOKEN", value: "s3cret-value", encrypted: true, scope: "build" },
      ]),
    ).toMatchObject({
      status: 200,
      body: {
        restartRequired: false,
        envVariables: [
          { key: "A", value: "1", encrypted: false, scope: "both" },
          { key: "TOKEN", value: null, encrypted: true, scope: "build" },
        ],
      },
    });
    await patch([
      { key: "A", value: null },
      { key: "B", value: "" },
    ]);
    expect((await site(key, siteId)).envVariables).toEqual([
      { key: "TOKEN", value: null, encrypted: true, scope: "build" },
      { key: "B", value: "", encrypted: false, scope: "both" },
    ]);
    const stored = await bindings.DB.prepare("SELECT * FROM site_env_versions WHERE site_id = ?")
      .bind(siteId)
      .all();
    expect(JSON.stringify(stored)).not.toContain("s3cret-value");
  });

  it("that are removed where there are none change nothing", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on);
    const patch = (envVariables: object[]) => api(key, "PATCH", `/sites/${siteId}`, { envVariables });
    const versions = async () =>
      (await api<{ data: { version: number }[] }>(key, "GET", `/sites/${siteId}/env`)).body.data.map(
        ({ version }) => version,
      );
    expect([(await patch([{ key: "A", value: null }])).body, await versions()]).toEqual([
      { envVariables: [], restartRequired: false },
      [],
    ]);
    await patch([{ key: "B", value: "1" }]);
    const before = await versions();
    expect((await patch([{ key: "A", value: null }])).body).toMatchObject({
      envVariables: [{ key: "B", value: "1" }],
      restartRequired: false,
    });
    expect(await versions()).toEqual(before);
  });

  it("that only builds or the running site get stay so with another value, until they are said to be for both", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const scopeAfter = async (change: object) => {
      const envVariables = [{ key: "TOKEN", value: "x", ...change }];
      await api(key, "PATCH", `/sites/${siteId}`, { envVariables });
      return (await site(key, siteId)).envVariables[0]?.scope;
    };
    expect(await scopeAfter({ scope: "build", encrypted: true })).toBe("build");
    expect(await scopeAfter({})).toBe("build");
    expect(await scopeAfter({ scope: "runtime" })).toBe("runtime");
    expect(await scopeAfter({ value: "y" })).toBe("runtime");
    expect(await scopeAfter({ scope: "both" })).toBe("both");
  });

  it("keep their value, also a secret one, where a change names none, and a secret is not made readable that way", async () => {
    const [key, agent] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, agent);
    const set = async (...envVariables: object[]) =>
      (await api(key, "PATCH", `/sites/${siteId}`, { envVariables })).status;
    await set(
      { key: "PLAIN", value: "a\r\nb" },
      { key: "TOKEN", value: "s3cret-value", encrypted: true },
      { key: "LATER", value: "also-s3cret" },
    );
    const kept = [
      { key: "PLAIN", scope: "runtime" },
      { key: "TOKEN", scope: "runtime" },
    ];
    expect(await set(...kept, { key: "LATER", encrypted: true })).toBe(200);
    for (const refused of [
      { key: "TOKEN", encrypted: false },
      { key: "NEW", scope: "both" },
    ])
      expect(await set(refused)).toBe(400);
    expect((await site(key, siteId)).envVariables.map(({ value }) => value)).toEqual(["a\r\nb", null, null]);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    expect((await agent.next("job")).job.args).toMatchObject({
      run: {
        env: [
          { key: "PLAIN", value: "a\r\nb", scope: "runtime", secret: false },
          { key: "TOKEN", value: "s3cret-value", scope: "runtime", secret: true },
          { key: "LATER", value: "also-s3cret", scope: "both", secret: true },
        ],
      },
    });
    agent.close();
  });

  it("that are secret stay so with another value, until they are said not to be", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const set = async (variable: object) =>
      (
        await api<{ envVariables: EnvVariableShown[] }>(key, "PATCH", `/sites/${siteId}`, {
          envVariables: [{ key: "TOKEN", ...variable }],
        })
      ).body.envVariables;
    await set({ value: "one", encrypted: true });
    expect(await set({ value: "two" })).toMatchObject([{ value: null, encrypted: true }]);
    expect(await set({ value: "three", encrypted: false })).toMatchObject([
      { value: "three", encrypted: false },
    ]);
    await set({ value: "four", encrypted: true });
    await set({ value: null });
    expect(await set({ value: "five" })).toMatchObject([{ value: "five", encrypted: false }]);
  });

  it("reach the host opened: a deployment's as they were when it was asked for, a restart's as they are", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    const env = { key: "TOKEN", value: "s3cret-value", encrypted: true };
    expect((await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [env] })).body).toMatchObject({
      restartRequired: true,
    });
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    const restart = await agent.next("job");
    expect(restart.job.args).toMatchObject({
      run: { env: [{ key: "TOKEN", value: "s3cret-value", secret: true, scope: "both" }] },
    });
    await finish(agent, restart.job, restart.attempt);
    const other = await readyAgent(0);
    const { siteId: waiting, invoiceToken } = await createSite(key);
    await api(key, "PATCH", `/sites/${waiting}`, { envVariables: [{ key: "V", value: "asked" }] });
    await pay(invoiceToken);
    await api(key, "PATCH", `/sites/${waiting}`, { envVariables: [{ key: "V", value: "later" }] });
    other.send(ready(1));
    expect((await other.next("job")).job.args).toMatchObject({
      run: { env: [{ key: "V", value: "asked" }] },
    });
    agent.close();
    other.close();
  });

  it("are kept as often as something may still need them, however often they are changed", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId, invoiceToken } = await createSite(key);
    let value = 0;
    const change = async (times: number) => {
      for (let count = 0; count < times; count++) {
        const envVariables = [{ key: "V", value: String(++value) }];
        expect((await api(key, "PATCH", `/sites/${siteId}`, { envVariables })).status).toBe(200);
      }
    };
    const versions = async () =>
      (
        await bindings.DB.prepare("SELECT version FROM site_env_versions WHERE site_id = ? ORDER BY version")
          .bind(siteId)
          .all<{ version: number }>()
      ).results.map(({ version }) => version);
    await change(2);
    await pay(invoiceToken);
    await finishNext(agent, deployResult);
    await change(3);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
    const restart = await agent.next("job");
    await change(25);
    // What runs, what a host works on, and the newest.
    expect(await versions()).toEqual([2, 5, ...Array.from({ length: 20 }, (_, index) => 11 + index)]);
    await finish(agent, restart.job, restart.attempt);
    await change(1);
    expect(await versions()).toEqual([5, ...Array.from({ length: 20 }, (_, index) => 12 + index)]);
    agent.close();
  });

  it("of a bad form are refused and change nothing, as is more than one kind of change", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const bodies = [
      { envVariables: [{ key: "1A", value: "x" }] },
      { envVariables: [{ key: "A=B", value: "x" }] },
      { envVariables: [{ key: "A", value: 1 }] },
      { envVariables: [{ key: "A", value: "\0" }] },
      { envVariables: [] },
      { envVariables: [{ key: "A", value: "x" }], action: "deploy" },
      { settings: {} },
      { settings: { name: "other" } },
      { settings: { port: 0 } },
      { settings: { image: "nginx" } },
      {},
    ];
    for (const body of bodies)
      expect([body, (await api(key, "PATCH", `/sites/${siteId}`, body)).status]).toEqual([body, 400]);
    expect((await site(key, siteId)).envVariables).toEqual([]);
  });
});

describe("settings", () => {
  it("say what runs before a version serves, and how long it may take to start: also of the one in service", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    const settings = { releaseCommand: "npm run migrate", startTimeoutSeconds: 300 };
    const path = `/sites/${siteId}`;
    expect((await api(key, "PATCH", path, { settings })).body).toMatchObject(settings);
    await api(key, "PATCH", path, { action: "restart" });
    const restart = await agent.next("job");
    expect(restart.job.args).toMatchObject({ run: { startTimeoutSeconds: 300 } });
    expect(restart.timeoutMs).toBeGreaterThanOrEqual((300 + 300) * 1000);
    await finish(agent, restart.job, restart.attempt);
    await api(key, "PATCH", path, { action: "deploy" });
    const { job } = await agent.next("job");
    expect(job.args).toMatchObject({
      run: { startTimeoutSeconds: 300 },
      release: { command: "npm run migrate" },
    });
    const taken = { releaseCommand: null, startTimeoutSeconds: null };
    expect((await api(key, "PATCH", path, { settings: taken })).body).toMatchObject(taken);
    agent.close();
  });

  it("are used from the next deployment, and null takes one away", async () => {
    const key = await account();
    const agent = await readyAgent();
    const { siteId } = await runningSite(key, agent);
    const changed = await api(key, "PATCH", `/sites/${siteId}`, {
      settings: { port: 4000, branch: "next", startCommand: "node b.js" },
    });
    expect(changed).toMatchObject({
      status: 200,
      body: { port: 4000, branch: "next", startCommand: "node b.js" },
    });
    await api(key, "PATCH", `/sites/${siteId}`, { settings: { startCommand: null } });
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    expect((await agent.next("job")).job.args).toMatchObject({
      source: { branch: "next" },
      run: { port: 4000, startCommand: null },
    });
    agent.close();
  });
});
