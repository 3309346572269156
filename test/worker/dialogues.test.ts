import { expect, it } from "vitest";
import { tools, type ToolName } from "../../protocol/api/tools.ts";
import type { Said } from "../support/scripted-model.ts";
import { answerNext, jobOf, open, runningDatabase, say, scene, scripted, use } from "./assistant.ts";
import { api, createSite, deployResult, fail, finish, pay, runningSite, site, siteUrl } from "./service.ts";

/** What the model says, as a script: the tools that it uses, and its answer. */
function answering(calls: [name: ToolName, input: object][], text: string) {
  const turns: Said[] = calls.flatMap(([name, input]) => [open(tools[name].group), use(name, input)]);
  return scripted(...turns, { text });
}

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
