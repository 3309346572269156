import { expect, it } from "vitest";
import { tools, type ToolName } from "../../protocol/api/tools.ts";
import type { Said, ScriptedModel } from "../support/scripted-model.ts";
import type { PackForOperator } from "../../protocol/api/packs.ts";
import { operations } from "../../protocol/api/operations.ts";
import { SourceInspection } from "../../protocol/api/sources.ts";
import { answerNext, funded, open, ownerOf, say, scene, scripted, serving, use } from "./assistant.ts";
import {
  api,
  bindings,
  createSite,
  deployResult,
  fail,
  finish,
  jobOf,
  operator,
  pay,
  ready,
  runningDatabase,
  runningSite,
  site,
  siteUrl,
} from "./service.ts";

/** What the model says, as a script: the tools that it uses, and its answer. */
function answering(calls: [name: ToolName, input: object][], text: string) {
  const turns: Said[] = calls.flatMap(([name, input]) => [open(tools[name].group), use(name, input)]);
  return scripted(...turns, { text });
}

/** The last result that the model was told. */
const told = (model: ScriptedModel): string =>
  (JSON.parse(model.asked.at(-1)?.messages.at(-1)?.content ?? "{}") as { untrusted_data: string })
    .untrusted_data;

/** One customer, with a site that runs. */
async function customer() {
  const { key, host } = await scene();
  const { siteId } = await runningSite(key, host, { name: "shop" });
  let conversationId: string | undefined;
  const says = async (message: string) => {
    const { body } = await say(key, message, conversationId ? { conversationId } : {});
    ({ conversationId } = body);
    return body;
  };
  const redeployed = async () => {
    await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
    return jobOf(host, "site.deploy");
  };
  return { key, host, siteId, says, redeployed };
}

it("“My site is down.” “It was stopped; shall I start it?” “Yes.”", async () => {
  const { key, host, siteId, says } = await customer();
  await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
  const stop = await jobOf(host, "site.stop");
  await finish(host, stop.job, stop.attempt);
  const model = answering([["get_site", { site: "shop" }]], "The shop is stopped. Shall I start it?");
  await says("My site is down");
  expect(model.prompts).toContain("STOPPED");
  answering([["start_site", { site: "shop" }]], "It is starting.");
  expect((await says("Yes, start it")).toolCalls).toEqual([{ tool: "start_site", ok: true }]);
  await jobOf(host, "site.start");
});

it("“Why did the deployment fail?” “The build has no script; your old version is still there.”", async () => {
  const { key, host, siteId, says, redeployed } = await customer();
  const { job, attempt } = await redeployed();
  await fail(host, job, attempt, "The build failed: npm ERR! missing script: build.");
  const model = answering([["explain_failed_deployment", { site: "shop" }]], "There is no build script.");
  expect((await says("Why did it fail?")).message).toBe("There is no build script.");
  expect(model.prompts).toContain("missing script: build");
  expect((await site(key, siteId)).status).toBe("RUNNING");
});

it("“Go back to the version before.” “This would happen …” “Yes.”", async () => {
  const { host, says, redeployed } = await customer();
  const { job, attempt } = await redeployed();
  await finish(host, job, attempt, { ...deployResult, buildKey: "second" });
  answering([["rollback_site", { site: "shop" }]], "I would go back.");
  expect((await says("Go back to the version before")).message).toContain("Roll the site shop back");
  scripted({ text: "It is going back." });
  expect((await says("yes")).toolCalls).toEqual([{ tool: "rollback_site", ok: true }]);
  await jobOf(host, "site.deploy");
});

it("“Deploy the newest commit.” “It is on its way.”", async () => {
  const { host, says } = await customer();
  answering([["deploy_site", { site: "shop" }]], "It is on its way.");
  await says("Deploy the newest commit");
  await jobOf(host, "site.deploy");
});

it("“What is my deploy webhook?” is answered with it, on the person's screen alone", async () => {
  const { key, siteId, says } = await customer();
  const { url } = (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body;
  const model = answering([["get_deploy_webhook", { site: "shop" }]], "Here it is.");
  expect((await says("What is my deploy webhook?")).message).toContain(url);
  expect(model.prompts).not.toContain(url.slice(-20));
});

it("“Make me a site of this image.” “Pay here.” — and it is deployed once it is paid", async () => {
  const { key, host, says } = await customer();
  const input = { name: "blog", deployType: "image", image: "nginx", port: 80, billingTerm: 1 };
  const model = answering([["create_site", input]], "Pay at the address above.");
  await says("Make me a site of nginx called blog");
  const [, token = ""] = new RegExp(`${siteUrl}/invoice/(inv_[\\w-]+)`).exec(model.prompts) ?? [];
  await pay(token);
  await jobOf(host, "site.deploy");
  expect((await api(key, "GET", "/sites")).status).toBe(200);
});

it("“What is the password of my database?” “Shall I show it?” “Yes.”", async () => {
  const { key, host, says } = await customer();
  const { name, spec } = await runningDatabase(key, host);
  const password = spec.logins[0]?.password ?? "";
  const model = answering([["get_connection_string", { db: name }]], "Shall I show it here?");
  expect((await says("What is the password of my database?")).message).not.toContain(password);
  expect((await says("yes")).message).toContain(password);
  expect(model.prompts).not.toContain(password);
});

it("“Set the variable COLOUR to blue.” “It counts from the next restart.” “Restart it.”", async () => {
  const { host, says } = await customer();
  answering([["set_env_vars", { site: "shop", entries: [{ key: "COLOUR", value: "blue" }] }]], "It is set.");
  await says("Set COLOUR to blue");
  answering([["restart_site", { site: "shop" }]], "It restarts.");
  await says("Restart it");
  const { job } = await jobOf(host, "site.restart");
  expect(job.args.run.env).toMatchObject([{ key: "COLOUR", value: "blue" }]);
});

it("“Show me the errors in my log.” “Here they are.”", async () => {
  const { host, says } = await customer();
  const model = answering([["get_site_logs", { site: "shop", search: "Error" }]], "The disk is full.");
  const saying = says("Show me the errors in my log");
  const at = "2026-01-01T00:00:01.000000001Z";
  const lines = ["fine", "Error: ENOSPC"].map((text) => ({ at, stream: "stderr" as const, text }));
  await answerNext(host, { kind: "logs", lines });
  await saying;
  expect(model.prompts).toContain("Error: ENOSPC");
  expect(model.prompts).not.toContain('"fine"');
});

it("“What do you cost, and how much have I left?” “So many credits.” “Buy more.”", async () => {
  const { says } = await customer();
  const model = answering([["get_credit_balance", {}]], "You have some.");
  const { balance, creditsUsed } = await says("How much have I left?");
  expect([balance, creditsUsed]).toEqual([19, 1]);
  expect(model.prompts).toContain("balance");
});

it("“Stop the shop.” “This would happen …” “No, leave it.” — and “yes” means nothing any more", async () => {
  const { key, siteId, says } = await customer();
  answering([["stop_site", { site: "shop" }]], "Shall I?");
  expect((await says("Stop the shop")).pendingAction).not.toBeNull();
  scripted({ text: "I leave it." });
  await says("No, leave it");
  expect((await says("yes")).toolCalls).toEqual([]);
  expect((await site(key, siteId)).status).toBe("RUNNING");
});

it("“Delete the shop.” “With all of this.” “Yes.” — and it is gone", async () => {
  const { key, host, siteId, says } = await customer();
  answering([["delete_site", { site: "shop" }]], "Shall I?");
  expect((await says("Delete the shop")).message).toContain("Delete the site shop permanently");
  scripted({ text: "It is being deleted." });
  await says("yes");
  const { job, attempt } = await jobOf(host, "site.delete");
  await finish(host, job, attempt);
  expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
});

it("“Clean up every night.” “It is scheduled.”", async () => {
  const { key, siteId, says } = await customer();
  const nightly = { name: "clean", cron: "0 3 * * *", command: "npm run clean" };
  answering([["set_cron_job", { site: "shop", ...nightly }]], "It is scheduled.");
  await says("Run npm run clean every night at three");
  const { body } = await api<{ data: object[] }>(key, "GET", `/sites/${siteId}/schedules`);
  expect(body.data).toMatchObject([nightly]);
});

it("“What do I have to pay?” “This, here.”", async () => {
  const { key, says } = await customer();
  const { invoiceToken } = await createSite(key, { name: "unpaid" });
  const model = answering([["list_invoices", {}]], "One invoice, for unpaid.");
  await says("What do I have to pay?");
  expect(model.prompts).toContain(`${siteUrl}/invoice/${invoiceToken}`);
});

it("“Add the domain shop.example.com.” “Set this record.” “Is it done?” “Not yet.”", async () => {
  const { key, siteId, says } = await customer();
  const domain = `${siteId.replace("_", "-")}.example.com`;
  const model = answering([["add_domain", { site: "shop", domain }]], "Set the TXT record.");
  await says(`Add the domain ${domain}`);
  expect(model.prompts).toContain(`_berth-challenge.${domain}`);
  const looking = answering([["list_domains", { site: "shop" }]], "Not yet.");
  await says("Is it done?");
  expect(looking.prompts).toContain("PENDING_VERIFICATION");
  expect((await site(key, siteId)).domains).toMatchObject([{ domain, status: "PENDING_VERIFICATION" }]);
});

it("“Move to a bigger pack.” “Which?” “Large.” “Pay here.” — and it is larger once it is paid", async () => {
  const { key, siteId, says } = await customer();
  const { body: large } = await api<PackForOperator>(await operator(), "POST", "/packs", {
    kind: "site",
    name: "Large",
    amountCents: 90_000,
    memoryMb: 512,
    cpuMilli: 500,
    diskGb: 10,
  });
  const listing = answering([["list_packs", { kind: "site" }]], "There is Large.");
  await says("Move the shop to a bigger pack");
  expect(listing.prompts).toContain(large.id);
  const model = answering([["change_pack", { site: "shop", packId: large.id }]], "Pay at the address above.");
  await says("Large, please");
  const [, token = ""] = new RegExp(`${siteUrl}/invoice/(inv_[\\w-]+)`).exec(model.prompts) ?? [];
  expect((await site(key, siteId)).packId).not.toBe(large.id);
  await pay(token);
  expect((await site(key, siteId)).packId).toBe(large.id);
});

it("“Restore yesterday.” “There is no backup.” “Then make one every night.”", async () => {
  const { key, host, says } = await customer();
  const { name, databaseId } = await runningDatabase(key, host);
  const model = answering([["list_backups", { db: name }]], "There is none yet.");
  await says("Restore yesterday's backup of my database");
  expect(told(model)).toBe("[]");
  const settings = { schedule: "daily" as const, hourUtc: 2, keep: 14 };
  answering([["set_backup_schedule", { db: name, settings }]], "Every night at two.");
  await says("Then make one every night at two, and keep two weeks");
  const { body } = await api<{ backups: object }>(key, "GET", `/databases/${databaseId}`);
  expect(body.backups).toMatchObject(settings);
});

it("“My database hangs.” “This session holds the lock; end it?” “Yes.”", async () => {
  const { key, host, says } = await customer();
  const { name } = await runningDatabase(key, host);
  const session = { durationMs: 60_000, state: "active" };
  const insight = {
    sizeMb: 1,
    connections: { used: 2, max: 32 },
    cacheHitRatio: 1,
    uptimeSeconds: 60,
    activeQueries: [
      { ...session, id: "41", statement: "UPDATE orders", waitsFor: null, blockedBy: [] },
      { ...session, id: "42", statement: "SELECT 1", waitsFor: "Lock: tuple", blockedBy: ["41"] },
    ],
    slowQueries: [],
  };
  answering(
    [
      ["list_active_queries", { db: name }],
      ["kill_query", { db: name, query: "41" }],
    ],
    "Session 41 blocks another.",
  );
  const saying = says("My database hangs");
  for (let count = 0; count < 2; count++) await answerNext(host, { kind: "insight", insight });
  expect((await saying).message).toContain("Sessions that wait for its locks: 1");
  scripted({ text: "It is ended." });
  const agreeing = says("yes");
  await answerNext(host, { kind: "insight", insight });
  expect(await answerNext(host, { kind: "endSession", ended: true })).toMatchObject({ session: "41" });
  expect((await agreeing).toolCalls).toEqual([{ tool: "kill_query", ok: true }]);
});

it("“What fills my disk?” “The images.” “Keep fewer.”", async () => {
  const { key, host, siteId, says } = await customer();
  const model = answering([["get_disk_usage", { site: "shop" }]], "Five images of 300 MB.");
  const saying = says("What fills the disk of the shop?");
  const images = ["dep_1", "dep_2"].map((deploymentId) => ({ deploymentId, sizeMb: 300 }));
  const found = {
    id: siteId as `site_${string}`,
    countedMb: 1,
    writtenMb: 1,
    volumes: [],
    images,
    logMb: 2,
    buildCacheMb: null,
  };
  await answerNext(host, { kind: "disk", found: [found] });
  await saying;
  expect(model.prompts).toContain("dep_2");
  answering(
    [["update_site_settings", { site: "shop", settings: { keptImages: 1 } }]],
    "Only one from now on.",
  );
  await says("Keep one only");
  expect(await site(key, siteId)).toMatchObject({ keptImages: 1 });
});

it("“Is everything all right?” “The blog is not.”", async () => {
  const { key, host, says } = await customer();
  const { siteId } = await runningSite(key, host, { name: "blog" });
  await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
  const { job, attempt } = await jobOf(host, "site.deploy");
  await fail(host, job, attempt, "Nothing listens on port 3000.");
  const model = answering([["list_unhealthy_resources", {}]], "The latest deployment of blog failed.");
  await says("Is everything all right?");
  expect(model.prompts).toContain("its latest deployment failed");
  expect(told(model)).not.toContain("shop");
});

it("“Does github.com/owner/app run here?” “Yes, with Node.” — and nothing is made", async () => {
  const { key, host, says } = await customer();
  const found = SourceInspection.parse(operations.inspectSource.examples.answer);
  const model = answering([["detect_framework", { githubUrl: "github.com/owner/app" }]], "It does.");
  const saying = says("Does github.com/owner/app run here?");
  await answerNext(host, { kind: "source", found });
  await saying;
  expect(model.prompts).toContain(found.language);
  expect((await api<{ data: object[] }>(key, "GET", "/sites")).body.data).toHaveLength(1);
});

it("“Run the migration.” “This would run …” “Yes.” “What did it print?”", async () => {
  const { host, says } = await customer();
  host.send(ready(10, { freeCommands: 10 }));
  answering([["run_command", { site: "shop", command: "npm run migrate" }]], "Shall I?");
  expect((await says("Run the migration")).message).toContain("npm run migrate");
  scripted({ text: "It runs." });
  await says("Yes, please.");
  const { job, attempt } = await jobOf(host, "site.command");
  expect(job.args.command).toBe("npm run migrate");
  await finish(host, job, attempt, { exitCode: 3, error: "It ended with 3." });
  const model = answering([["get_job_output", { site: "shop" }]], "It ended with 3.");
  await says("What did it print?");
  expect(told(model)).toContain('"exitCode":3');
});

it("“I lost my laptop.” “Revoke its key?” “Yes.” — and it opens nothing any more", async () => {
  const { key, says } = await customer();
  const { contextOf } = await import("../../worker/compose.ts");
  const { newApiKey } = await import("../../worker/services/keys/create.ts");
  const { apiKeys } = await import("../../worker/db/schema.ts");
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const laptop = await newApiKey(ctx, await ownerOf(key), "laptop", "setup");
  await ctx.db.insert(apiKeys).values(laptop.row);
  const model = answering(
    [
      ["list_api_keys", {}],
      ["revoke_api_key", { key: laptop.row.id }],
    ],
    "Revoke it?",
  );
  expect((await says("I lost my laptop")).message).toContain("laptop");
  expect((await api(laptop.key, "GET", "/sites")).status).toBe(200);
  scripted({ text: "Done." });
  await says("yes");
  expect((await api(laptop.key, "GET", "/sites")).status).toBe(401);
  expect(model.prompts).not.toContain(laptop.key);
});

it("“Close the shop for today.” “Visitors would see …” “Yes.” “Open it again.” — without another question", async () => {
  const { host, key, siteId, says } = await customer();
  answering([["set_maintenance_mode", { site: "shop", on: true, message: "Back at noon" }]], "Shall I?");
  expect((await says("Close the shop for today")).message).toContain("503");
  scripted({ text: "It is closed." });
  await says("go ahead");
  const shown = await jobOf(host, "site.route");
  await finish(host, shown.job, shown.attempt);
  expect((await site(key, siteId)).ingress.maintenance).toEqual({ message: "Back at noon" });
  answering([["set_maintenance_mode", { site: "shop", on: false }]], "It is open.");
  expect((await says("Open it again")).pendingAction).toBeNull();
  await jobOf(host, "site.route");
});

it("“Give it a random session secret.” “It is set.” — and nobody has seen it", async () => {
  const { host, siteId, key, says } = await customer();
  const model = answering([["generate_secret", { site: "shop", key: "SESSION_SECRET" }]], "It is set.");
  const { message, conversationId } = await says("Give it a random SESSION_SECRET");
  await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
  const { job } = await jobOf(host, "site.restart");
  const secret = job.args.run.env.find((one) => one.key === "SESSION_SECRET")?.value ?? "";
  expect(secret.length).toBeGreaterThanOrEqual(16);
  const { body } = await api(key, "GET", `/chat/conversations/${conversationId}`);
  for (const text of [message, model.prompts, JSON.stringify(body)]) expect(text).not.toContain(secret);
});

it("“Can visitors reach me?” “They get a 502.”", async () => {
  const { key, siteId, says } = await customer();
  serving(new URL((await site(key, siteId)).url).host, () => new Response("bad", { status: 502 }));
  const model = answering([["probe_url", { site: "shop" }]], "They get a 502.");
  await says("Can visitors reach the shop?");
  expect(told(model)).toContain('"status":502');
});

it("“Stop both sites.” “1. … 2. …” “Yes.” — one word for both, and the second only after the first", async () => {
  const { key, host, siteId, says } = await customer();
  const { siteId: blogId } = await runningSite(key, host, { name: "blog" });
  const both = { calls: ["shop", "blog"].map((name) => ({ name: "stop_site", args: { site: name } })) };
  scripted(open("sites"), both, { text: "Both?" });
  const { message, pendingAction } = await says("Stop both sites");
  expect(message).toMatch(/1\. Stop the site shop[^]*2\. Stop the site blog/);
  // The first has changed meanwhile, so that the plan is not what was agreed to.
  await api(key, "PATCH", `/sites/${siteId}`, { settings: { port: 4321 } });
  scripted({ text: "It has changed." });
  const { toolCalls } = await says("yes");
  expect([pendingAction === null, toolCalls]).toEqual([false, [{ tool: "stop_site", ok: false }]]);
  for (const id of [siteId, blogId]) expect((await site(key, id)).status).toBe("RUNNING");
  scripted(open("sites"), both, { text: "Both?" });
  await says("Try again");
  scripted({ text: "Both stop." });
  expect((await says("yes")).toolCalls).toHaveLength(2);
  for (let count = 0; count < 2; count++) {
    const { job, attempt } = await jobOf(host, "site.stop");
    await finish(host, job, attempt);
  }
  for (const id of [siteId, blogId]) expect((await site(key, id)).status).toBe("STOPPED");
});

it("“Show me the log.” “Your host is away.” — the message is answered, and counts once", async () => {
  const { host, says } = await customer();
  host.close();
  const model = answering([["get_site_logs", { site: "shop" }]], "Your host is away. Try again later.");
  const { toolCalls, balance, creditsUsed } = await says("Show me the log");
  expect([toolCalls, balance, creditsUsed]).toEqual([[{ tool: "get_site_logs", ok: false }], 19, 1]);
  expect(model.prompts).toContain("The host is offline");
});

it("“Stop the shop.” — the credits end before the yes, and nothing happens; it counts once there are more", async () => {
  const { host } = await scene();
  const key = await funded(1);
  const { siteId } = await runningSite(key, host, { name: "shop" });
  answering([["stop_site", { site: "shop" }]], "Shall I?");
  const { conversationId, balance } = (await say(key, "Stop the shop")).body;
  expect(balance).toBe(0);
  const model = scripted({ text: "It stops." });
  expect((await say(key, "yes", { conversationId })).status).toBe(402);
  expect(model.asked).toEqual([]);
  expect((await site(key, siteId)).status).toBe("RUNNING");
  await api(await operator(), "POST", "/credits/grants", { accountId: await ownerOf(key), amount: 5 });
  const agreed = await say(key, "yes", { conversationId });
  expect(agreed.body.toolCalls).toEqual([{ tool: "stop_site", ok: true }]);
  await jobOf(host, "site.stop");
});
