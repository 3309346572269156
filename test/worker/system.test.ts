import { afterEach, describe, expect, it, vi } from "vitest";
import type { Overview, System } from "../../protocol/api/system.ts";
import { secretBox } from "../../worker/adapters/secret-box.ts";
import {
  account,
  api,
  bindings,
  createSite,
  fail,
  finishNext,
  hostIn,
  operator,
  operatorLogin,
  pay,
  readyAgent,
  run,
  runningSite,
  uniqueName,
} from "./service.ts";

afterEach(() => vi.restoreAllMocks());

const overview = async () => (await api<Overview>(await operator(), "GET", "/overview")).body;

describe("the overview", () => {
  it("counts hosts, sites, jobs, failures and money as they are", async () => {
    const before = await overview();
    const [key, on] = [await account(), await readyAgent()];
    const { siteId } = await runningSite(key, on);
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    const { job, attempt } = await on.next("job");
    await fail(on, job, attempt);
    const region = uniqueName("r");
    const silent = await hostIn(region);
    const waits = await createSite(key, { region });
    await pay(waits.invoiceToken);
    await run("UPDATE jobs SET created_at = 7 WHERE site_id = ?", waits.siteId);
    await createSite(key);
    await run(
      "INSERT INTO payment_flags (id, reason, reference, created_at) VALUES (?, 'disputed', 'overview', 0)",
      uniqueName("flag_"),
    );
    const after = await overview();
    expect(after.hosts.up).toBe(before.hosts.up + 1);
    expect(after.hosts.down).toContainEqual({
      id: silent.id,
      name: expect.any(String) as string,
      since: null,
    });
    expect(after.sites).toEqual({ RUNNING: 1, DEPLOYING: 1, PENDING: 1 });
    expect(after.accounts).toMatchObject({ total: before.accounts.total + 1, suspended: 0 });
    expect(after.queue).toEqual({
      waiting: 1,
      running: 0,
      stuck: 1,
      oldestWaitingAt: "1970-01-01T00:00:00.007Z",
    });
    expect(after.deploymentsInAnHour).toEqual({ live: 1, failed: 1 });
    expect(after.money).toMatchObject({
      received: [{ currency: "usd", amountCents: 1000, count: 2 }],
      refunded: [],
      unpaid: [{ currency: "usd", amountCents: 500, count: 1 }],
      openFlags: 1,
    });
    expect(Date.parse(after.money.since)).toBeLessThanOrEqual(Date.now());
  });

  it("counts databases without a verified backup, and mails that wait", async () => {
    const [key, on] = [await account(), await readyAgent()];
    const { body } = await api<{ databaseId: string; invoiceToken: string }>(key, "POST", "/databases", {
      name: uniqueName("data"),
      type: "redis",
    });
    await pay(body.invoiceToken);
    await finishNext(on, { version: "7.2" });
    await run("DELETE FROM mails");
    await run(
      "INSERT INTO mails (id, account_id, subject, text, created_at, try_at) VALUES ('m', 'acc_x', 's', 't', ?, 0)",
      Date.now(),
    );
    expect(await overview()).toMatchObject({
      backups: { failing: 0, unprotected: 1, lastVerifiedAt: null },
      mail: { configured: true, waiting: 1, lastSentAt: null },
      databases: { RUNNING: 1 },
    });
    await run("DELETE FROM mails");
  });
});

describe("the system", () => {
  it("says how it is set up and what is to be done, and no secret", async () => {
    const { status, body } = await api<System>(await operator(), "GET", "/system");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      payments: { processor: "test", live: false },
      backupStore: { error: null },
      secrets: { oldKeyIds: [expect.any(String)], keyId: expect.stringMatching(/^[\w-]{8}$/) },
    });
    const todo = body.setup.filter(({ done }) => !done).map(({ step }) => step);
    expect(todo).toEqual(expect.arrayContaining(["https", "payments"]));
    const shown = JSON.stringify(body);
    for (const [name, value] of Object.entries(bindings as unknown as Record<string, unknown>))
      if (/KEY|TOKEN|SECRET/.test(name) && typeof value === "string") expect(shown).not.toContain(value);
  });

  it("counts what is still under older keys, place by place", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const old = secretBox(["B".repeat(43)], (count) => crypto.getRandomValues(new Uint8Array(count)));
    await api(key, "PATCH", `/sites/${siteId}`, {
      envVariables: [{ key: "TOKEN", value: "x", encrypted: true }],
    });
    const places = async () =>
      (await api<System>(await operator(), "GET", "/system")).body.secrets.underOldKeys;
    expect(await places()).toEqual([]);
    await run(
      "UPDATE sites SET git_token_sealed = ? WHERE id = ?",
      old.seal("t", `sites.git_token:${siteId}`),
      siteId,
    );
    await run(
      "UPDATE site_env_versions SET entries = ? WHERE site_id = ?",
      JSON.stringify([
        { key: "TOKEN", value: old.seal("x", `site_env:${siteId}:TOKEN`), scope: "both", secret: true },
      ]),
      siteId,
    );
    expect(await places()).toEqual([
      { place: "sites.git_token", rows: 1 },
      { place: "site_env", rows: 1 },
    ]);
  });

  it("sends a mail to the operator who asks, and says what the mail service answered", async () => {
    const sent: string[] = [];
    let answer = 200;
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const request = new Request(input, init);
      sent.push(await request.text());
      return new Response("{}", { status: answer });
    });
    const test = async () => api(await operator(), "POST", "/system/mail-test");
    expect(await test()).toMatchObject({ status: 200, body: { to: operatorLogin.email, sent: true } });
    expect(JSON.parse(sent[0] ?? "")).toMatchObject({ to: [operatorLogin.email], subject: "Mail works" });
    answer = 401;
    expect(await test()).toMatchObject({
      status: 409,
      body: { reason: expect.stringContaining("401") as string },
    });
    expect((await api(await account(), "POST", "/system/mail-test")).status).toBe(403);
  });
});
