import { afterEach, describe, expect, it, vi } from "vitest";
import { maxFrameBytes } from "../../protocol/agent/messages.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  finish,
  greetedAgent,
  pay,
  readyAgent,
  site,
} from "./service.ts";

// Each test's sites come to a host of its own.
afterEach(() => bindings.DB.prepare("UPDATE hosts SET status = 'DRAINING'").run());

/** Writes an environment that the API would not have taken. */
const forceEnv = (siteId: string, entries: object[]) =>
  bindings.DB.prepare(
    "INSERT INTO site_env_versions (site_id, version, entries, created_at) VALUES (?, 1, ?, 0)",
  )
    .bind(siteId, JSON.stringify(entries))
    .run();
const tooLarge = Array.from({ length: 35 }, (_, index) => ({
  key: `V${index}`,
  value: "x".repeat(32_768),
  scope: "both",
  secret: false,
}));
const unreadable = [{ key: "TOKEN", value: "v2.gone.AAAA", scope: "both", secret: true }];

describe("an environment", () => {
  it("that is larger in all than a job may carry is refused with the reason, however many steps it takes", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const set = (page: number, encrypted: boolean) =>
      api<{ issues?: { path: string; message: string }[] }>(key, "PATCH", `/sites/${siteId}`, {
        envVariables: Array.from({ length: 3 }, (_, index) => ({
          key: `V${page}_${index}`,
          value: "x".repeat(32_000),
          encrypted,
        })),
      });
    expect([(await set(0, false)).status, (await set(1, false)).status]).toEqual([200, 200]);
    for (const encrypted of [true, false]) {
      const refused = await set(2, encrypted);
      expect(refused.status).toBe(400);
      expect(refused.body.issues).toEqual([
        { path: "envVariables", message: expect.stringContaining("256 KiB") },
      ]);
    }
    // Taking some away is always possible.
    const less = { envVariables: [{ key: "V0_0", value: null }] };
    expect((await api(key, "PATCH", `/sites/${siteId}`, less)).status).toBe(200);
  });
});

describe("a job that cannot be sent", () => {
  it.each([
    ["because it is larger than an agent takes", tooLarge, "1024 KiB"],
    ["because a secret cannot be opened", unreadable, "secret"],
  ])("%s fails with the reason, and the next is offered", async (_, entries, reason) => {
    vi.spyOn(console, "error").mockReturnValue();
    const key = await account();
    const unfit = await createSite(key);
    const fit = await createSite(key);
    await forceEnv(unfit.siteId, entries);
    const on = await readyAgent();
    await pay(unfit.invoiceToken);
    await pay(fit.invoiceToken);
    const { job, attempt } = await on.next("job");
    expect(JSON.stringify(job).length).toBeLessThan(maxFrameBytes);
    expect(job.args).toMatchObject({ run: { siteId: fit.siteId } });
    await finish(on, job, attempt, deployResult);
    const shown = await site(key, unfit.siteId);
    expect([shown.status, shown.latestDeployment?.status]).toEqual(["FAILED", "FAILED"]);
    expect(shown.latestDeployment?.error).toContain(reason);
    // No slot was spent on it.
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
  });

  it("because its environment is gone is not sent without one", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const key = await account();
    const { siteId, invoiceToken } = await createSite(key);
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "MODE", value: "production" }] });
    await pay(invoiceToken);
    await bindings.DB.prepare("DELETE FROM site_env_versions WHERE site_id = ?").bind(siteId).run();
    const on = await readyAgent();
    await expect.poll(async () => (await site(key, siteId)).status).toBe("FAILED");
    expect(on.waiting().filter(({ type }) => type === "job")).toEqual([]);
  });

  it("holds up neither a hello nor the other jobs that are offered anew", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const key = await account();
    const unfit = await createSite(key);
    const fit = await createSite(key);
    const gone = await readyAgent();
    await pay(unfit.invoiceToken);
    await gone.next("job");
    await pay(fit.invoiceToken);
    await gone.next("job");
    await forceEnv(unfit.siteId, unreadable);
    await bindings.DB.prepare("UPDATE deployments SET env_version = 1 WHERE site_id = ?")
      .bind(unfit.siteId)
      .run();
    gone.close();
    const back = await greetedAgent({}, gone.token);
    const again = await back.next("job");
    expect(again).toMatchObject({ attempt: 2, job: { args: { run: { siteId: fit.siteId } } } });
    expect((await site(key, unfit.siteId)).latestDeployment?.error).toContain("secret");
  });

  it.each([
    ["settings that cannot be read", "UPDATE sites SET volumes = '[' WHERE id = ?"],
    [
      "kept settings that cannot be read",
      "UPDATE deployments SET run = '{', \"trigger\" = 'move' WHERE site_id = ?",
    ],
    ["an environment that cannot be read", "UPDATE site_env_versions SET entries = '[' WHERE site_id = ?"],
    ["no deployment", "UPDATE jobs SET deployment_id = NULL WHERE site_id = ?"],
    ["a kind that this version does not know", "UPDATE jobs SET kind = 'site.later' WHERE site_id = ?"],
  ])("for its row has %s holds up no hello either: it has failed, and the others go on", async (_, spoil) => {
    vi.spyOn(console, "error").mockReturnValue();
    const key = await account();
    const unfit = await createSite(key);
    await api(key, "PATCH", `/sites/${unfit.siteId}`, { envVariables: [{ key: "A", value: "b" }] });
    const fit = await createSite(key);
    const gone = await readyAgent();
    for (const { invoiceToken } of [unfit, fit]) {
      await pay(invoiceToken);
      await gone.next("job");
    }
    await bindings.DB.prepare(spoil).bind(unfit.siteId).run();
    gone.close();
    const back = await greetedAgent({}, gone.token);
    const again = await back.next("job");
    expect(again).toMatchObject({ attempt: 2, job: { args: { run: { siteId: fit.siteId } } } });
    const job = await bindings.DB.prepare("SELECT status, error FROM jobs WHERE site_id = ?")
      .bind(unfit.siteId)
      .first();
    const why = expect.stringContaining("could not be prepared");
    expect(job).toEqual({ status: "FAILED", error: why });
    const [deployment] = (
      await bindings.DB.prepare("SELECT status, error FROM deployments WHERE site_id = ?")
        .bind(unfit.siteId)
        .all()
    ).results;
    expect(deployment).toEqual({ status: "FAILED", error: why });
    await finish(back, again.job, again.attempt, deployResult);
    expect((await site(key, fit.siteId)).status).toBe("RUNNING");
    back.close();
  });

  it("for its row cannot be read is taken out of the way of what waits behind it", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const key = await account();
    const [unfit, fit] = [await createSite(key), await createSite(key)];
    await forceEnv(unfit.siteId, []);
    await bindings.DB.prepare("UPDATE site_env_versions SET entries = '[' WHERE site_id = ?")
      .bind(unfit.siteId)
      .run();
    await pay(unfit.invoiceToken);
    await pay(fit.invoiceToken);
    const on = await readyAgent();
    expect((await on.next("job")).job.args).toMatchObject({ run: { siteId: fit.siteId } });
    const { status } = (await bindings.DB.prepare("SELECT status FROM jobs WHERE site_id = ?")
      .bind(unfit.siteId)
      .first()) as { status: string };
    expect(status).toBe("FAILED");
    on.close();
  });

  it("because what it needs is gone ends as well", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const key = await account();
    const unfit = await createSite(key);
    const fit = await createSite(key);
    await bindings.DB.prepare("UPDATE sites SET github_url = NULL WHERE id = ?").bind(unfit.siteId).run();
    const on = await readyAgent();
    await pay(unfit.invoiceToken);
    await pay(fit.invoiceToken);
    expect((await on.next("job")).job.args).toMatchObject({ run: { siteId: fit.siteId } });
    expect((await site(key, unfit.siteId)).latestDeployment?.error).toContain("operator");
  });
});
