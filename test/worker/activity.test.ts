import * as z from "zod";
import { describe, expect, it } from "vitest";
import type { Activity } from "../../protocol/api/activity.ts";
import type { Page } from "../../protocol/api/common.ts";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import { tools, type ToolName } from "../../protocol/api/tools.ts";
import { automaticActions } from "../../protocol/states.ts";
import { call as act } from "../../worker/api/call.ts";
import { contextOf } from "../../worker/compose.ts";
import { secretArguments, shownArguments } from "../../worker/domain/shown-arguments.ts";
import { listActivity } from "../../worker/services/activity/list.ts";
import { forgetOldActivity } from "../../worker/services/activity/forget-old.ts";
import { funded, say, scripted } from "./assistant.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  operator,
  readyAgent,
  runningSite,
  site,
  siteInput,
} from "./service.ts";

const activityOf = async (key: string, query = "") =>
  (await api<Page<Activity>>(key, "GET", `/activity${query}`)).body;

describe("every change", () => {
  it("is one row: who, what, on which resource, with which arguments, how it ended, in which request", async () => {
    const key = await account();
    const response = await call("/api/v1/sites", {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify(siteInput({ name: "recorded", gitToken: "canary" })),
    });
    const { siteId } = await response.json<{ siteId: string }>();
    const { data } = await activityOf(key);
    expect(data).toMatchObject([
      {
        actor: "key",
        actorId: expect.stringMatching(/^key_/) as string,
        operation: "createSite",
        resourceId: siteId,
        arguments: { name: "recorded", gitToken: "…", port: 3000 },
        outcome: "done",
        requestId: response.headers.get("X-Request-Id"),
      },
    ]);
  });

  it("that was refused is recorded with the refusal, and what only reads is not recorded", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    await api(key, "GET", `/sites/${siteId}`);
    expect((await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" })).status).toBe(402);
    await expect
      .poll(async () => (await activityOf(key)).data.map(({ operation, outcome }) => [operation, outcome]))
      .toEqual([
        ["patchSite", "payment_required"],
        ["createSite", "done"],
      ]);
  });

  it("stands or falls with its row: where the batch fails, there is neither", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const { account_id: accountId } = (await bindings.DB.prepare("SELECT account_id FROM sites WHERE id = ?")
      .bind(siteId)
      .first<{ account_id: `acc_${string}` }>()) ?? { account_id: "acc_none" };
    const ctx = contextOf(
      bindings,
      { type: "key", accountId, role: "user", plan: "free", keyId: "key_none" },
      () => undefined,
    );
    const sent: string[][] = [];
    const failing = Object.create(ctx.db) as typeof ctx.db;
    failing.batch = (statements) => {
      const texts = statements as unknown as { getQuery?(): { sql: string }; toSQL?(): { sql: string } }[];
      sent.push(texts.map((one) => one.getQuery?.().sql ?? one.toSQL?.().sql ?? ""));
      return Promise.reject(new Error("cut off"));
    };
    await expect(act({ ...ctx, db: failing }, "deleteSite", { id: siteId })).rejects.toThrow("cut off");
    expect(sent.at(-1)?.filter((text) => /INSERT INTO activity/.test(text))).toHaveLength(1);
    expect(sent.at(-1)?.some((text) => /update "sites"/i.test(text))).toBe(true);
  });

  it("by a deploy webhook is the webhook's, in the account of the site", async () => {
    const key = await account();
    const { siteId } = await runningSite(key, await readyAgent());
    const { url } = (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body;
    expect((await call(new URL(url).pathname, { method: "POST" })).status).toBe(202);
    const { data } = await activityOf(key, `?resource=${siteId}&actor=webhook`);
    expect(data).toMatchObject([{ operation: "triggerWebhook", resourceId: siteId, outcome: "done" }]);
  });

  it("by an operator is listed with the account whose it is", async () => {
    const key = await account();
    await createSite(key);
    const id = (await activityOf(key)).data[0]?.accountId;
    await api(await operator(), "PATCH", `/accounts/${id}`, { plan: "pro" });
    expect((await activityOf(key)).data[0]).toMatchObject({
      actor: "operator",
      operation: "patchAccount",
      resourceId: id,
      accountId: id,
      arguments: { plan: "pro" },
    });
  });

  it("by the service itself, or by a host, is recorded as theirs, once", async () => {
    const key = await account();
    const host = await readyAgent();
    const { siteId } = await runningSite(key, host);
    const deploymentId = (await site(key, siteId)).currentDeployment?.id;
    for (let count = 0; count < 2; count++) {
      host.send({ type: "crashed", siteId, deploymentId, error: "It exits again and again." });
      await host.next("crashAck");
    }
    const { data } = await activityOf(key);
    expect(data.map(({ actor, operation }) => [actor, operation])).toEqual([
      ["host", "reportSiteCrash"],
      ["system", "settleInvoice"],
      ["key", "createSite"],
    ]);
    expect(data[0]).toMatchObject({ resourceId: siteId, actorId: expect.stringMatching(/^host_/) as string });
    expect(data[1]?.resourceId).toMatch(/^invoice_/);
  });
});

describe("every call of the assistant's tools", () => {
  it("is one row, also where it only reads, is refused or makes no sense, and a change is another", async () => {
    const key = await funded();
    const { siteId } = await runningSite(key, await readyAgent(), { name: "seen" });
    const entries = [{ key: "TOKEN", value: "canary", secret: true }];
    scripted(
      {
        calls: [
          { name: "get_site", args: { site: "seen" } },
          { name: "get_site", args: { site: "none" } },
          { name: "get_site", args: { place: "canary" } },
          { name: "get_site", args: "{" },
          // Neither a tool's name nor that of an operation.
          { name: "deleteAccount", args: { password: "canary" } },
          { name: "set_env_vars", args: { site: "seen", entries } },
          { name: "stop_site", args: { site: "seen" } },
        ],
      },
      { text: "Seen." },
    );
    const { conversationId } = (await say(key, "Look")).body;
    const before = (await activityOf(key, "?actor=assistant")).data.toReversed();
    expect(before.map(({ operation, outcome, resourceId }) => [operation, outcome, resourceId])).toEqual([
      ["get_site", "done", null],
      ["get_site", "not_found", null],
      ["get_site", "invalid_request", null],
      ["get_site", "invalid_request", null],
      ["unknown_tool", "not_found", null],
      ["patchSite", "done", siteId],
      ["set_env_vars", "done", null],
      ["stop_site", "asked", null],
    ]);
    for (const { actorId, requestId } of before)
      expect([actorId, requestId]).toEqual([conversationId, expect.stringMatching(/^[\da-f-]{36}$/)]);
    expect(before[0]?.arguments).toEqual({ site: "seen" });
    expect(before[6]?.arguments).toMatchObject({ site: "seen", entries: [{ key: "TOKEN", value: "…" }] });
    expect(JSON.stringify(before)).not.toContain("canary");
    await say(key, "yes", { conversationId });
    const calls = (await activityOf(key, "?only=calls&limit=1")).data;
    expect(calls).toMatchObject([{ operation: "stop_site", outcome: "done", arguments: { site: "seen" } }]);
    const changes = (await activityOf(key, `?only=changes&actor=assistant`)).data;
    expect(changes.map(({ operation }) => operation)).toEqual(["patchSite", "patchSite"]);
    // Whoever asks for a site's changes is not told each look at it.
    expect((await activityOf(key, `?resource=${siteId}&actor=assistant`)).data).toEqual(changes);
  });

  it("is told from an operation by its name", () => {
    expect(Object.keys(tools).filter((name) => !name.includes("_"))).toEqual([]);
    expect([...Object.keys(operations), ...automaticActions].filter((name) => name.includes("_"))).toEqual(
      [],
    );
  });

  it("costs a row, and an ordinary read none", async () => {
    const key = await funded();
    const rows = async () =>
      (await bindings.DB.prepare("SELECT count(*) AS count FROM activity").first<{ count: number }>())
        ?.count ?? 0;
    const before = await rows();
    await api(key, "GET", "/sites");
    await api(key, "GET", "/account");
    expect(await rows()).toBe(before);
    scripted({ calls: [{ name: "list_sites", args: {} }] }, { text: "None." });
    await say(key, "What do I have?");
    expect(await rows()).toBe(before + 1);
  });
});

describe("the list", () => {
  it("is the account's own, by page, by resource and by actor", async () => {
    const [key, other] = [await account(), await account()];
    const { siteId } = await createSite(key);
    await createSite(key);
    expect((await activityOf(other)).data).toEqual([]);
    const first = await activityOf(key, "?limit=1");
    const second = await activityOf(key, `?limit=1&cursor=${first.nextCursor}`);
    expect([second.data[0]?.resourceId, second.nextCursor]).toEqual([siteId, null]);
    expect((await activityOf(key, `?resource=${siteId}`)).data).toHaveLength(1);
    expect((await activityOf(key, "?actor=assistant")).data).toEqual([]);
    expect((await activityOf(other, `?resource=${siteId}`)).data).toEqual([]);
  });

  it("of changes alone is not read through all calls between two of them", async () => {
    const statements: string[] = [];
    const DB = {
      prepare(text: string) {
        statements.push(text);
        return bindings.DB.prepare(text);
      },
    } as D1Database;
    const actor = {
      type: "key",
      accountId: "acc_none",
      role: "user",
      plan: "free",
      keyId: "key_none",
    } as const;
    await listActivity(
      contextOf({ ...bindings, DB }, actor, () => undefined),
      { limit: 8, only: "changes" },
    );
    const [text = ""] = statements;
    const { results } = await bindings.DB.prepare(`EXPLAIN QUERY PLAN ${text}`)
      .bind(...Array<null>(text.split("?").length - 1).fill(null))
      .all<{ detail: string }>();
    expect(results[0]?.detail).toBe("SEARCH activity USING INDEX activity_changes (account_id=?)");
  });

  it("of all accounts is the operator's", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const path = `/activity/all?resource=${siteId}`;
    expect((await api(key, "GET", path)).status).toBe(403);
    const { body } = await api<Page<Activity>>(await operator(), "GET", path);
    expect(body.data).toMatchObject([{ operation: "createSite", resourceId: siteId }]);
  });

  it("goes back a year", async () => {
    const key = await account();
    await createSite(key);
    const ctx = contextOf(bindings, { type: "system" }, () => undefined);
    const in364Days = new Date(Date.now() + 364 * 86_400_000);
    await forgetOldActivity({ ...ctx, now: () => in364Days });
    expect((await activityOf(key)).data).toHaveLength(1);
    await forgetOldActivity({ ...ctx, now: () => new Date(in364Days.getTime() + 2 * 86_400_000) });
    expect((await activityOf(key)).data).toEqual([]);
  });
});

/** Names of arguments that are recorded as they are. A new argument belongs here or among the secret ones. */
const harmless = new Set(
  `
  1 12 24 3 6
  accent acceptSmaller accountId address action active add allow amount amountCents apply artifact
  backupId backups basicAuth billingTerm branch buildCommand builder
  clientName code command confirmedBy connected context conversationId cpuMilli credits cron cursor
  databaseId deleteVolumes deployType deploymentId discounts diskGb dockerfile dockerfilePath domain drainSeconds dryRun
  enabled encrypted envVariables
  failures force from
  githubUrl
  headers healthCheck healthCheckPath hourUtc hsts httpsOnly
  image includeSubdomains ingress installCommand intervalSeconds ipv4 ipv6
  keep keptImages key kind kinds
  languageVersion length lfs lifecycle limit loseCredits loseVolumes
  maintenance match maxAge maxAgeSeconds maxBodyMb memoryMb message mountPath
  name
  outputDir
  packId packageId pair path pids plan port preload primaryDomain publicAccess
  reason rebuild redirectTo redirects ref region registryUsername releaseCommand remove replicas resolution restartPolicy rewrites role rootDir
  schedule scope settings singlePage siteId skipFinalBackup startCommand startTimeoutSeconds stickySessions stopSignal stopTimeoutSeconds submodules
  timeoutSeconds title to type
  username
  variable verify version volumes
  withEnv write
  auth backup check db deployment entries filter invoice keys linked method minutes on policy resource rules run search
  secret since site status tail text volume window
  brand country imprintUrl logo percent privacyUrl seller signUp supportUrl tax termsUrl vatId`
    .trim()
    .split(/\s+/),
);

function namesIn(schema: unknown, names: Set<string>): void {
  if (Array.isArray(schema)) for (const one of schema) namesIn(one, names);
  else if (typeof schema === "object" && schema !== null)
    for (const [word, value] of Object.entries(schema)) {
      if (word === "properties") for (const name of Object.keys(value as object)) names.add(name);
      namesIn(value, names);
    }
}

describe("arguments", () => {
  const changing = Object.entries<Operation>(operations).filter(
    ([, { method, access }]) => method !== "get" && access !== "none",
  );
  it.each(changing)("of %s are known as secret or as harmless", (_, { body, query }) => {
    const names = new Set<string>();
    for (const schema of [body, query])
      if (schema) namesIn(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }), names);
    const unknown = [...names].filter((name) => !secretArguments.has(name) && !harmless.has(name));
    expect(unknown).toEqual([]);
  });

  it.each(Object.keys(tools) as ToolName[])("of the tool %s are known as secret or as harmless", (name) => {
    const names = new Set<string>();
    namesIn(z.toJSONSchema(tools[name].input, { io: "input", unrepresentable: "any" }), names);
    const unknown = [...names].filter((one) => !secretArguments.has(one) && !harmless.has(one));
    expect(unknown).toEqual([]);
  });

  it("are recorded without what is secret, and cut where they are long", () => {
    const recorded = shownArguments({
      id: "site_1",
      envVariables: [{ key: "TOKEN", value: "canary" }],
      settings: { gitToken: "canary", port: 3000 },
      statement: "SELECT 'canary'",
      dockerfile: "x".repeat(1000),
    });
    expect(JSON.stringify(recorded)).not.toContain("canary");
    expect(recorded).toMatchObject({ envVariables: [{ key: "TOKEN" }], settings: { port: 3000 } });
    expect(JSON.stringify(recorded).length).toBeLessThan(500);
  });
});
