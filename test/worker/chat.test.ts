import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Activity } from "../../protocol/api/activity.ts";
import type { ChatPrice, Conversation, ConversationWithMessages } from "../../protocol/api/chat.ts";
import type { Page } from "../../protocol/api/common.ts";
import type { CreditPackage, Credits } from "../../protocol/api/credits.ts";
import type { Invoice } from "../../protocol/api/invoices.ts";
import { tools, type ToolName } from "../../protocol/api/tools.ts";
import { modelOf } from "../../worker/adapters/model.ts";
import { converse } from "../../worker/assistant/converse.ts";
import { pendingForMs } from "../../worker/assistant/pending.ts";
import { systemPrompt } from "../../worker/assistant/prompt.ts";
import { runConfirmed, runTool } from "../../worker/assistant/run-tool.ts";
import { holdCredits } from "../../worker/billing/credits/hold.ts";
import { voidExpiredHolds } from "../../worker/billing/credits/void-hold.ts";
import { contextOf } from "../../worker/compose.ts";
import { configOf } from "../../worker/config.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { forgetOldConversations } from "../../worker/services/chat/conversations.ts";
import type { Said } from "../support/scripted-model.ts";
import { assistantActor, funded, open, ownerOf, say, scripted, use, withoutChatLimit } from "./assistant.ts";
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
  uniqueName,
} from "./service.ts";

withoutChatLimit();

const balanceOf = async (key: string) => (await api<Credits>(key, "GET", "/credits")).body.balance;

/** The assistant of the account of this key, as the conversation makes it. */
async function assistantOf(key: string): Promise<Ctx> {
  return contextOf(bindings, assistantActor(await ownerOf(key)), () => undefined);
}

describe("a message", () => {
  it("is answered by the model, costs its price once, and is in the ledger", async () => {
    const key = await funded(5);
    scripted({ text: "All of your sites run." });
    const { status, body } = await say(key, "How are my sites?");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      message: "All of your sites run.",
      balance: 4,
      creditsUsed: 1,
      toolCalls: [],
      pendingAction: null,
    });
    const { body: credits } = await api<Credits>(key, "GET", "/credits");
    expect(credits).toMatchObject({ balance: 4, transactions: [{ type: "chat", amount: -1 }, {}] });
  });

  it("is offered one group of tools at a time, and gives results as data that is marked as such", async () => {
    const key = await funded();
    const { siteId } = await createSite(key, { name: "shop" });
    const model = scripted(open("sites"), use("list_sites", {}), { text: "You have one site: shop." });
    const { body } = await say(key, "What do I have?");
    expect(body).toMatchObject({
      message: "You have one site: shop.",
      toolCalls: [{ tool: "list_sites", ok: true }],
    });
    const offeredTools = model.asked.map(({ tools: given }) => given?.map((one) => one.function.name) ?? []);
    expect(offeredTools[0]).toEqual(["open_tools"]);
    expect(offeredTools[1]).toContain("stop_site");
    expect(offeredTools[1]).not.toContain("run_write_query");
    const result = model.asked[2]?.messages.at(-1);
    expect(JSON.parse(result?.content ?? "{}")).toEqual({
      untrusted_data: expect.stringContaining(siteId) as string,
    });
  });

  it("about what is not paid for says where it is paid", async () => {
    const key = await funded();
    const { invoiceToken } = await createSite(key, { name: "unpaid" });
    const model = scripted(open("deployments"), use("deploy_site", { site: "unpaid" }), {
      text: "Pay first.",
    });
    expect((await say(key, "Deploy it")).body.toolCalls).toEqual([{ tool: "deploy_site", ok: false }]);
    const address = new RegExp(`pay at http\\S+/invoice/${invoiceToken}, then`);
    expect(model.lastResult).toEqual({ error: expect.stringMatching(address) as string });
  });

  it("costs nothing where the model fails, and says so", async () => {
    for (const broken of [{ status: 500 }, { text: "Half of an", isCut: true }]) {
      const key = await funded(3);
      scripted(broken);
      const { status, body } = await say(key, "Hello");
      expect([status, body.creditsUsed, body.balance]).toEqual([200, 0, 3]);
      expect(body.message).toMatch(/did not answer.* Nothing was changed\./);
      vi.restoreAllMocks();
    }
  });

  it("says who can help where the model's server refuses: for its key, credit or name the operator alone", async () => {
    const key = await funded(3);
    const refusals = [
      ...[401, 402, 404].map((status) => ({ status })),
      ...[
        { code: "insufficient_quota" },
        { type: "exceeded_current_quota_error" },
        { code: "billing_hard_limit_reached" },
      ].map((error) => ({ status: 429, error })),
    ];
    for (const refusal of refusals) {
      const { status } = refusal;
      scripted(refusal);
      const { message, creditsUsed } = (await say(key, "Hello")).body;
      expect([creditsUsed, message]).toEqual([
        0,
        expect.stringContaining(`refused the request (HTTP ${status})`),
      ]);
      expect(message).toMatch(
        /Nothing was changed\. Trying again does not help: only the operator of this service can help/,
      );
    }
    scripted({ status: 400 });
    expect((await say(key, "Hello")).body.message).toMatch(
      /\(HTTP 400\).* Say it in other words, or in a new conversation/,
    );
    for (const error of [{}, { type: "tokens", code: "rate_limit_exceeded" }]) {
      scripted({ status: 429, error });
      expect((await say(key, "Hello")).body.message).toMatch(/did not answer.* Try again in a moment\.$/);
    }
  });

  it("tells a quota of Gemini that the day has used up from one that the next minute renews", async () => {
    const key = await funded(3);
    const said = async (quotaId: string) => {
      scripted({
        status: 429,
        isListed: true,
        error: {
          code: 429,
          status: "RESOURCE_EXHAUSTED",
          details: [{ "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [{ quotaId }] }],
        },
      });
      return (await say(key, "Hello")).body.message;
    };
    expect(await said("GenerateRequestsPerDayPerProjectPerModel-FreeTier")).toMatch(
      /refused the request \(HTTP 429\).*only the operator of this service can help/,
    );
    expect(await said("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")).toMatch(
      /did not answer.* Try again in a moment\.$/,
    );
  });

  it("costs nothing where the model says nothing at all, for whatever reason it ends", async () => {
    for (const finish_reason of ["stop", "length", "content_filter"]) {
      const key = await funded(3);
      scripted({ choices: [{ delta: { content: " " } }, { delta: {}, finish_reason }] });
      const { body } = await say(key, "Hello");
      expect([finish_reason, body.creditsUsed, body.balance]).toEqual([finish_reason, 0, 3]);
      expect(body.message).toMatch(
        finish_reason === "length"
          ? /used up the 1024 tokens of an answer by thinking.* Nothing was changed\. .*MODEL_REASONING_EFFORT/
          : /did not answer.* Nothing was changed\./,
      );
    }
  });

  it("is thought about by the model as much as the operator wants", async () => {
    const model = scripted({ text: "Hello." });
    for (const MODEL_REASONING_EFFORT of [undefined, "low"] as const)
      await modelOf({ ...configOf(bindings), MODEL_REASONING_EFFORT })?.respond(
        [{ role: "user", content: "Hello" }],
        [],
        () => undefined,
      );
    expect(model.asked.map((asked) => asked.reasoning_effort)).toEqual([undefined, "low"]);
  });

  it("is what the model wrote before its tools where it ends without a word after them", async () => {
    const key = await funded(3);
    scripted(
      { text: "Your sites:", ...use("list_sites", {}) },
      { choices: [{ delta: {}, finish_reason: "stop" }] },
    );
    const { body } = await say(key, "Hello");
    expect([body.message, body.creditsUsed]).toEqual(["Your sites:", 1]);
  });

  it("says where the model's answer was cut off, and what it refuses", async () => {
    const key = await funded(3);
    scripted({ choices: [{ delta: { content: "Your site" } }, { delta: {}, finish_reason: "length" }] });
    expect((await say(key, "Hello")).body.message).toBe("Your site\n\n(The answer was cut off.)");
    scripted({
      choices: [{ delta: { refusal: "I cannot do that." } }, { delta: {}, finish_reason: "stop" }],
    });
    expect((await say(key, "Hello")).body.message).toBe("I cannot do that.");
  });

  it("has each tool called that the model names: without an index, in pieces with or without its name, and under one index with two ids", async () => {
    const part = (one: object, name?: string, text?: string) => ({
      delta: { tool_calls: [{ ...one, function: { name, arguments: text } }] },
    });
    const [sites, balance] = ["list_sites", "get_credit_balance"];
    for (const parts of [
      [part({ id: "" }, sites, "{}"), part({ id: "" }, balance, "{}")],
      [part({ id: "a" }, sites, "{"), part({}, undefined, "}"), part({ id: "b" }, balance, "{}")],
      [part({ index: 0, id: "a" }, sites, "{}"), part({ index: 0, id: "b" }, balance, "{}")],
      [
        part({ index: 0, id: "a" }, sites, "{"),
        part({ index: 1, id: "b" }, balance, "{"),
        part({ index: 0, id: "a" }, undefined, "}"),
        part({ index: 1 }, undefined, "}"),
      ],
      [
        part({ index: 0, id: "a" }, sites, "{"),
        part({ index: 0, id: "x" }, undefined, "}"),
        part({ index: 1, id: "b" }, balance, "{}"),
      ],
      [
        part({ index: 0, id: "a" }, sites, "{"),
        part({ index: 0, id: "a" }, sites, "}"),
        part({ index: 1, id: "b" }, balance, "{}"),
      ],
    ]) {
      const key = await funded();
      const model = scripted(
        { choices: [...parts, { delta: {}, finish_reason: "tool_calls" }] },
        { text: "Done." },
      );
      expect((await say(key, "Go")).body.toolCalls).toEqual([
        { tool: sites, ok: true },
        { tool: balance, ok: true },
      ]);
      const ids = model.asked[1]?.messages.flatMap(({ tool_call_id: id }) => id ?? []);
      expect(new Set(ids).size).toBe(2);
    }
  });

  it("is answered by models that tell what they used without choices, and whose text comes in parts", async () => {
    const key = await funded(3);
    scripted({
      choices: [
        { delta: { content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm." }] }] } },
        { delta: { content: [{ type: "text", text: "All" }] } },
        { delta: { content: " is well." }, finish_reason: "stop" },
      ],
      usageAlone: true,
    });
    const { body } = await say(key, "Hello");
    expect([body.message, body.creditsUsed]).toEqual(["All is well.", 1]);
  });

  it("gives a model back its thoughts and signatures beside the results of its tools, and shows them to nobody", async () => {
    const key = await funded(3);
    const call = {
      index: 0,
      id: "a",
      function: { name: "list_sites", arguments: "{}" },
      extra_content: { google: { thought_signature: "c2lnbmVk" } },
    };
    const model = scripted(
      {
        choices: [
          { delta: { reasoning_content: "The person " } },
          { delta: { reasoning_content: "wants a list." } },
          { delta: { tool_calls: [call] } },
          { delta: {}, finish_reason: "tool_calls" },
        ],
      },
      { text: "You have none." },
    );
    expect((await say(key, "What do I have?")).body.message).toBe("You have none.");
    const { index: _index, ...called } = call;
    expect(model.asked[1]?.messages.find(({ role }) => role === "assistant")).toMatchObject({
      reasoning_content: "The person wants a list.",
      tool_calls: [{ ...called, type: "function" }],
    });
  });

  it("after whose tool the model fails is asked again of the model, and not of the tool", async () => {
    const key = await funded(3);
    const { siteId } = await runningSite(key, await readyAgent(), { name: "to-set" });
    const variables = async () => (await site(key, siteId)).envVariables.map(({ key: name }) => name);
    const versions = async () =>
      (await bindings.DB.prepare("SELECT count(*) AS count FROM site_env_versions WHERE site_id = ?")
        .bind(siteId)
        .first<{ count: number }>())!.count;
    const setting = (name: string) =>
      use("set_env_vars", { site: "to-set", entries: [{ key: name, value: "1" }] });
    const model = scripted(open("environment"), setting("ONE"), { status: 500 }, { text: "It is set." });
    const { body } = await say(key, "Set ONE");
    expect([body.message, body.toolCalls, body.creditsUsed, model.asked.length]).toEqual([
      "It is set.",
      [{ tool: "set_env_vars", ok: true }],
      1,
      4,
    ]);
    expect([await variables(), await versions()]).toEqual([["ONE"], 1]);
    // Where it does not come back, what was done is said, and costs nothing.
    scripted(open("environment"), setting("TWO"), { status: 500 });
    const failed = (await say(key, "Set TWO")).body;
    expect([failed.creditsUsed, failed.toolCalls]).toEqual([0, [{ tool: "set_env_vars", ok: true }]]);
    expect(failed.message).toContain("What was done before stays: set_env_vars.");
    expect([await variables(), await versions()]).toEqual([["ONE", "TWO"], 2]);
  });

  it("costs nothing where the model begins to answer and stalls", async () => {
    const key = await funded(3);
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    scripted({ stalls: true });
    vi.spyOn(AbortSignal, "timeout").mockImplementation(() => timeout(50));
    const { status, body } = await say(key, "Hello");
    expect([status, body.creditsUsed, body.balance]).toEqual([200, 0, 3]);
    expect(body.message).toContain("did not answer");
  });

  it("goes on after arguments that are not valid JSON, tools that do not exist and calls without end", async () => {
    const key = await funded();
    const model = scripted(
      { calls: [{ name: "list_sites", args: "{" }] },
      { calls: [{ name: "rm_rf", args: {} }] },
      use("get_site", { site: 7 }),
      { text: "Done." },
    );
    const { body } = await say(key, "Go");
    expect(body.message).toBe("Done.");
    expect(model.prompts).toContain("not valid JSON");
    expect(model.prompts).toContain("There is no tool rm_rf");
    vi.restoreAllMocks();
    const endless = scripted(use("get_credit_balance", {}));
    expect((await say(key, "Again")).body.message).toContain("more steps than one message allows");
    expect(endless.asked.length).toBeLessThanOrEqual(8);
  });

  it("is answered with tools whose arguments a weak model writes as texts, or as null where it has none", async () => {
    const key = await funded();
    const { siteId } = await createSite(key, { name: "weak" });
    scripted(
      use("list_sites", { status: null, limit: "2" }),
      { calls: [{ name: "get_credit_balance", args: "null" }] },
      use("set_env_vars", { site: "weak", entries: '[{"key":"A","value":"7"}]', apply: "" }),
      use("list_sites", { limit: "many" }),
      { text: "Done." },
    );
    expect((await say(key, "Go")).body.toolCalls.map(({ ok }) => ok)).toEqual([true, true, true, false]);
    expect((await site(key, siteId)).envVariables).toMatchObject([{ key: "A", value: "7" }]);
  });

  it("makes one invoice or backup, however often the model repeats the call that makes it", async () => {
    const key = await funded();
    const { data } = (await api<Page<CreditPackage>>(null, "GET", "/credits/packages")).body;
    const [packageId, other] = data.map(({ id }) => id);
    const buy = { name: "create_credit_invoice", args: { packageId } };
    const model = scripted(
      open("billing"),
      { calls: [buy, buy] },
      { calls: [buy, { ...buy, args: { packageId: other } }, buy] },
      { text: "Pay there." },
    );
    const { toolCalls } = (await say(key, "Buy credits, and then other ones")).body;
    expect(toolCalls).toEqual([buy, buy].map(({ name: tool }) => ({ tool, ok: true })));
    const invoices = (await api<Page<Invoice>>(key, "GET", "/invoices?status=unpaid")).body.data;
    expect(invoices.map(({ resource }) => resource?.id)).toEqual([other, packageId]);
    const { id: invoiceId } = invoices[1]!;
    expect(model.lastResult).toEqual({
      done_already_in_this_message: expect.objectContaining({ invoiceId }) as object,
    });
  });

  it("whose tool call is longer than an answer may be tells the model so, which else writes it again", async () => {
    const cut = {
      index: 0,
      id: "a",
      function: { name: "create_site", arguments: '{"dockerfile":"FROM node\\nRUN ec' },
    };
    const model = scripted(
      { choices: [{ delta: { tool_calls: [cut] } }, { delta: {}, finish_reason: "length" }] },
      { text: "Make it a repository." },
    );
    await say(await funded(3), "Create a site");
    expect(model.lastResult).toEqual({ error: expect.stringContaining("cut off within these") as string });
  });

  it("is refused without credits; of fifty at once on a balance for one, one is answered", async () => {
    const key = await account();
    scripted({ text: "Hello." });
    expect(await say(key, "Hello")).toMatchObject({ status: 402, body: { error: "payment_required" } });
    await api(await operator(), "POST", "/credits/grants", { accountId: await ownerOf(key), amount: 1 });
    const answers = await Promise.all(Array.from({ length: 50 }, () => say(key, "Hello")));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 402)).toHaveLength(49);
    expect(await balanceOf(key)).toBe(0);
  });
});

describe("what is destructive", () => {
  it("is done only after the person's own word, once, and for exactly what was asked", async () => {
    const key = await funded();
    const { siteId } = await runningSite(key, await readyAgent(), { name: "to-stop" });
    scripted(open("sites"), use("stop_site", { site: "to-stop" }), { text: "I would stop it." });
    const asked = (await say(key, "Stop my site to-stop")).body;
    expect(asked.pendingAction).toMatchObject({
      tool: "stop_site",
      summary: expect.stringContaining("503") as string,
    });
    expect(asked.message).toContain("Stop the site to-stop: visitors receive 503");
    expect(await wantedOf(siteId)).toBe("RUNNING");
    vi.restoreAllMocks();
    // The model alone cannot confirm: neither by asking again nor by an argument.
    scripted(use("stop_site", { site: "to-stop", confirm: true }), { text: "Stopped!" });
    const { conversationId } = asked;
    const pushed = (await say(key, "Tell me a joke", { conversationId })).body;
    expect(pushed.toolCalls).toEqual([{ tool: "stop_site", ok: false }]);
    expect(await wantedOf(siteId)).toBe("RUNNING");
    // What waited is taken back by any other message.
    expect((await say(key, "yes", { conversationId })).body.toolCalls).not.toContainEqual({
      tool: "stop_site",
      ok: true,
    });
    expect(await wantedOf(siteId)).toBe("RUNNING");
    vi.restoreAllMocks();
    // Neither a strange id nor one of before is the one that waits.
    for (const confirm of ["cfm_none", asked.pendingAction?.id ?? ""]) {
      scripted(use("stop_site", { site: "to-stop" }), { text: "Shall I?" });
      expect((await say(key, "Stop to-stop", { conversationId })).body.pendingAction).not.toBeNull();
      vi.restoreAllMocks();
      // The model is not asked what a word to nothing means, and what waits goes on to.
      const unasked = scripted({ text: "Done!" });
      const { body } = await say(key, "yes", { conversationId, confirm });
      expect([body.toolCalls, body.creditsUsed, unasked.asked]).toEqual([[], 0, []]);
      expect(body.message).toContain("Stop the site to-stop");
      expect(body.pendingAction).not.toBeNull();
      vi.restoreAllMocks();
    }
    expect(await wantedOf(siteId)).toBe("RUNNING");
  });

  it("runs by the id of the pending action, is recorded as the assistant's, and cannot be replayed", async () => {
    const key = await funded();
    const { siteId } = await runningSite(key, await readyAgent(), { name: "by-id" });
    scripted(
      open("sites"),
      use("stop_site", { site: "by-id" }),
      { text: "Shall I?" },
      { text: "It is being stopped." },
    );
    const { conversationId, pendingAction } = (await say(key, "Stop by-id")).body;
    const confirm = pendingAction?.id;
    const done = (await say(key, "Do as I said", { conversationId, confirm })).body;
    expect(done.toolCalls).toEqual([{ tool: "stop_site", ok: true }]);
    expect(await wantedOf(siteId)).toBe("STOPPED");
    const { body } = await api<Page<Activity>>(key, "GET", `/activity?resource=${siteId}&actor=assistant`);
    expect(body.data).toMatchObject([
      { operation: "patchSite", arguments: { action: "stop" }, actorId: conversationId },
    ]);
    const calls = (await api<Page<Activity>>(key, "GET", "/activity?actor=assistant&only=calls")).body.data;
    expect(calls.map(({ operation, outcome, actorId }) => [operation, outcome, actorId])).toEqual([
      ["stop_site", "done", conversationId],
      ["stop_site", "asked", conversationId],
    ]);
    expect((await say(key, "Do as I said", { conversationId, confirm })).body.toolCalls).toEqual([]);
  });

  it("is not done by a word that comes too late, in another conversation, or from another account", async () => {
    const [key, other] = [await funded(), await funded()];
    const { siteId } = await runningSite(key, await readyAgent(), { name: "waits" });
    const turns = [open("sites"), use("stop_site", { site: "waits" }), { text: "Shall I?" }];
    const ask = async () => {
      scripted(...turns);
      const { conversationId, pendingAction } = (await say(key, "Stop waits")).body;
      vi.restoreAllMocks();
      scripted({ text: "Nothing waits for that." });
      return { conversationId, confirm: pendingAction?.id ?? "" };
    };
    const { conversationId, confirm } = await ask();
    expect((await say(key, "yes", { confirm })).body.toolCalls).toEqual([]);
    expect((await say(other, "yes", { confirm })).body.toolCalls).toEqual([]);
    expect((await say(other, "yes", { conversationId, confirm })).status).toBe(403);
    vi.useFakeTimers({ now: Date.now() + pendingForMs + 1000, toFake: ["Date"] });
    try {
      expect((await say(key, "yes", { conversationId, confirm })).body.toolCalls).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
    expect(await wantedOf(siteId)).toBe("RUNNING");
    vi.restoreAllMocks();
    // The same word in time and in its place is what does it.
    const right = await ask();
    expect((await say(key, "yes", right)).body.toolCalls).toEqual([{ tool: "stop_site", ok: true }]);
    expect(await wantedOf(siteId)).toBe("STOPPED");
  });

  it("is not done by a plain yes that was said before the person could see what was asked", async () => {
    const key = await funded();
    await createSite(key, { name: "unseen" });
    scripted({ text: "Hello." });
    const { conversationId } = (await say(key, "Hello")).body;
    const asking = held({ text: "Shall I?" });
    const model = scripted(open("sites"), use("delete_site", { site: "unseen" }), asking.turn, {
      text: "Nothing waits for that.",
    });
    const asked = say(key, "Delete unseen", { conversationId });
    await expect.poll(() => model.asked.length).toBe(3);
    const early = say(key, "yes", { conversationId });
    // It waits behind the message before: its credits are held.
    await expect.poll(async () => (await api<ChatPrice>(key, "GET", "/chat/price")).body.balance).toBe(15);
    asking.go();
    expect((await asked).body.pendingAction).not.toBeNull();
    expect((await early).body.toolCalls).toEqual([]);
    expect((await api<Page<unknown>>(key, "GET", "/sites")).body.data).toHaveLength(1);
  });

  it("is not done where its resource has changed since the person was asked", async () => {
    const key = await funded();
    const { siteId } = await runningSite(key, await readyAgent(), { name: "changed" });
    const ctx = await assistantOf(key);
    const asked = await runTool(ctx, "stop_site", { site: "changed" });
    if (asked.status !== "asks") throw new Error(`It answered ${asked.status}`);
    await api(key, "PATCH", `/sites/${siteId}`, { settings: { port: 4321 } });
    expect(await runConfirmed(ctx, asked.step)).toMatchObject({ status: "refused" });
    expect(await wantedOf(siteId)).toBe("RUNNING");
  });

  describe("in several steps", () => {
    const maintenance = (name: string) => use("set_maintenance_mode", { site: name, on: true });
    const migration = (name: string) => use("run_command", { site: name, command: "npm run migrate" });
    const commandsOf = async (key: string, siteId: string) =>
      (await api<Page<unknown>>(key, "GET", `/sites/${siteId}/commands`)).body.data.length;
    const isInMaintenance = async (key: string, siteId: string) =>
      (await site(key, siteId)).ingress.maintenance !== null;

    it("is one confirmation: each is done, also where the one before has changed the same resource", async () => {
      const key = await funded();
      const { siteId } = await runningSite(key, await readyAgent(), { name: "migrated" });
      scripted(
        open("sites"),
        maintenance("migrated"),
        open("jobs"),
        migration("migrated"),
        { text: "Shall I?" },
        { text: "Both are done." },
      );
      const { conversationId, pendingAction } = (await say(key, "Put it away and migrate")).body;
      expect(pendingAction?.tool).toBe("set_maintenance_mode, run_command");
      expect([await isInMaintenance(key, siteId), await commandsOf(key, siteId)]).toEqual([false, 0]);
      const { body } = await say(key, "yes", { conversationId });
      expect([body.message, body.toolCalls]).toEqual([
        "Both are done.",
        [
          { tool: "set_maintenance_mode", ok: true },
          { tool: "run_command", ok: true },
        ],
      ]);
      expect([await isInMaintenance(key, siteId), await commandsOf(key, siteId)]).toEqual([true, 1]);
    });

    it("is done once where the model, which is told to wait, asks for it again", async () => {
      const key = await funded();
      const { siteId } = await runningSite(key, await readyAgent(), { name: "insisted-on" });
      const wanted = migration("insisted-on");
      const twice = { calls: [...(wanted.calls ?? []), ...(wanted.calls ?? [])] };
      scripted(
        open("jobs"),
        wanted,
        twice,
        maintenance("insisted-on"),
        { text: "Shall I?" },
        { text: "Done." },
      );
      const { conversationId, pendingAction } = (await say(key, "Migrate, and put it away")).body;
      expect(pendingAction?.tool).toBe("run_command, set_maintenance_mode");
      const { body } = await say(key, "yes", { conversationId });
      expect(body.toolCalls).toEqual([
        { tool: "run_command", ok: true },
        { tool: "set_maintenance_mode", ok: true },
      ]);
      expect(await commandsOf(key, siteId)).toBe(1);
    });

    it("is not begun where one is about what somebody else has changed since, and the answer says which", async () => {
      const key = await funded();
      const host = await readyAgent();
      const { siteId } = await runningSite(key, host, { name: "kept" });
      const { siteId: other } = await runningSite(key, host, { name: "moved-on" });
      scripted(
        open("sites"),
        maintenance("kept"),
        maintenance("moved-on"),
        { text: "Shall I?" },
        { text: "Hm." },
      );
      const { conversationId } = (await say(key, "Put both away")).body;
      await api(key, "PATCH", `/sites/${other}`, { settings: { port: 4321 } });
      const { body } = await say(key, "yes", { conversationId });
      expect(body.toolCalls).toEqual([{ tool: "set_maintenance_mode", ok: false }]);
      expect(body.message).toBe(
        "Hm.\n\nNot all of what you confirmed was done:\n1. set_maintenance_mode: not begun.\n2. set_maintenance_mode: The resource has changed since you were asked to confirm: request the action again.",
      );
      expect([await isInMaintenance(key, siteId), await isInMaintenance(key, other)]).toEqual([false, false]);
    });

    it("ends with the first that is refused, and the answer says which were done, whatever the model says", async () => {
      const key = await funded();
      const { siteId } = await runningSite(key, await readyAgent(), { name: "halfway" });
      const nightly = { name: "nightly", cron: "@daily", command: "npm run clean" };
      await api(key, "POST", `/sites/${siteId}/schedules`, nightly);
      const deletion = (named: string) => use("delete_cron_job", { site: named, name: "nightly" });
      const model = scripted(
        open("sites"),
        use("set_maintenance_mode", { site: "halfway", on: true }),
        open("jobs"),
        deletion("halfway"),
        deletion(siteId),
        migration("halfway"),
        { text: "Shall I?" },
        { text: "All is done." },
      );
      const { conversationId } = (await say(key, "Do all of it")).body;
      const { body } = await say(key, "yes", { conversationId });
      expect(body.toolCalls.map(({ ok }) => ok)).toEqual([true, true, false]);
      expect(body.message).toMatch(
        /^All is done\.\n\nNot all of what you confirmed was done:\n1\. set_maintenance_mode: done\.\n2\. delete_cron_job: done\.\n3\. delete_cron_job: .*nightly.*\n4\. run_command: not begun\.$/,
      );
      expect(model.prompts).toContain("not begun");
      expect([await isInMaintenance(key, siteId), await commandsOf(key, siteId)]).toEqual([true, 0]);
    });
  });

  it("is not done to what has its name by now", async () => {
    const key = await funded();
    const host = await readyAgent();
    const { siteId } = await runningSite(key, host, { name: "named" });
    const nightly = { name: "nightly", cron: "@daily", command: "npm run clean" };
    const scheduled = async () =>
      (await api<{ id: string }>(key, "POST", `/sites/${siteId}/schedules`, nightly)).body.id;
    const first = await scheduled();
    const ctx = await assistantOf(key);
    const asked = async (tool: "delete_cron_job" | "rotate_deploy_webhook", input: object) => {
      const outcome = await runTool(ctx, tool, input);
      if (outcome.status !== "asks") throw new Error(`It answered ${outcome.status}`);
      return outcome.step;
    };
    const cron = await asked("delete_cron_job", { site: "named", name: "nightly" });
    await api(key, "PATCH", `/schedules/${first}`, { command: "npm run pay" });
    expect(await runConfirmed(ctx, cron)).toMatchObject({ status: "refused" });
    const again = await asked("delete_cron_job", { site: "named", name: "nightly" });
    await api(key, "DELETE", `/schedules/${first}`);
    const second = await scheduled();
    expect(await runConfirmed(ctx, again)).toMatchObject({ status: "refused" });
    const { body } = await api<Page<unknown>>(key, "GET", `/sites/${siteId}/schedules`);
    expect(body.data).toMatchObject([{ id: second, ...nightly }]);

    const { siteId: pending } = await createSite(key, { name: "hooked-twice" });
    const hook = await asked("rotate_deploy_webhook", { site: "hooked-twice" });
    expect((await api(key, "DELETE", `/sites/${pending}`)).status).toBe(202);
    const { siteId: other } = await createSite(key, { name: "hooked-twice" });
    const { url } = (await api<{ url: string }>(key, "GET", `/sites/${other}/webhook`)).body;
    expect(await runConfirmed(ctx, hook)).toMatchObject({ status: "refused" });
    expect((await api<{ url: string }>(key, "GET", `/sites/${other}/webhook`)).body.url).toBe(url);
  });

  it("of another account is out of reach of every tool, by name and by id", async () => {
    const [own, other] = [await funded(), await funded()];
    const name = uniqueName("victim");
    const { siteId, invoiceId } = await runningSite(other, await readyAgent(), { name });
    const { body: made } = await api<{ databaseId: string }>(other, "POST", "/databases", {
      name: uniqueName("data"),
      type: "redis",
    });
    const { body: deployments } = await api<Page<{ id: string }>>(
      other,
      "GET",
      `/sites/${siteId}/deployments`,
    );
    const { body: run } = await api<{ id: string }>(other, "POST", `/sites/${siteId}/commands`, {
      command: "true",
    });
    const backup = (await assistantOf(other)).newId("backup");
    const theirKey = await bindings.DB.prepare("SELECT id FROM api_keys WHERE start = ?")
      .bind(other.slice(0, 10))
      .first<string>("id");
    await bindings.DB.prepare(
      `INSERT INTO backups (id, database_id, account_id, status, "trigger", name, database_name, type, image, pack_id, created_at)
        SELECT ?, id, account_id, 'VERIFIED', 'api', name, database_name, type, image, pack_id, 0 FROM databases WHERE id = ?`,
    )
      .bind(backup, made.databaseId)
      .run();
    const everything = async () => {
      const lists = ["/backups", "/databases", "/invoices"];
      const found = await Promise.all(lists.map(async (path) => (await api(other, "GET", path)).body));
      return JSON.stringify([await site(other, siteId), ...found]);
    };
    const before = await everything();
    const ctx = await assistantOf(own);
    const values: Record<string, unknown> = {
      db: made.databaseId,
      deployment: deployments.data[0]?.id,
      backup,
      volume: "data",
      invoice: invoiceId,
      key: theirKey,
      run: run.id,
      settings: { port: 1 },
      entries: [{ key: "A", value: "b" }],
      keys: ["A"],
      domain: "www.example.com",
      query: "SELECT 1",
      cron: "@daily",
      command: "true",
      path: "/data",
      name: "other",
      replicas: 1,
      packId: "pack_001k0000000000000000000002",
      type: "redis",
      version: 1,
    };
    for (const tool of Object.keys(tools) as ToolName[]) {
      const { shape } = tools[tool].input;
      const about = ["site", "db", "deployment", "backup", "invoice", "key", "run"].filter(
        (field) => field in shape,
      );
      if (about.length === 0 || tool === "create_site") continue;
      for (const target of [siteId, name]) {
        const input = Object.fromEntries(
          Object.keys(shape)
            .filter((field) => field === "site" || field in values)
            .filter((field) => !(field === "db" && "site" in shape && tool !== "link_database"))
            .filter((field) => !(field === "site" && "run" in shape))
            .map((field) => [
              field,
              field === "site" ? target : field === "key" && tool === "generate_secret" ? "A" : values[field],
            ]),
        );
        expect([tool, await runTool(ctx, tool, input)]).toMatchObject([tool, { status: "refused" }]);
      }
    }
    expect(await everything()).toBe(before);
  });
});

const wantedOf = async (siteId: string) =>
  (
    await bindings.DB.prepare("SELECT wanted FROM sites WHERE id = ?")
      .bind(siteId)
      .first<{ wanted: string }>()
  )?.wanted;

describe("secrets", () => {
  it("such as the deploy webhook are shown to the person who asks, and never to the model or in the history", async () => {
    const key = await funded();
    const { siteId } = await createSite(key, { name: "hooked" });
    const { url } = (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body;
    const model = scripted(open("deployments"), use("get_deploy_webhook", { site: "hooked" }), {
      text: "Here it is.",
    });
    const { body } = await say(key, "What is the deploy webhook of hooked?");
    expect(body.message).toContain(url);
    await say(key, "Thanks", { conversationId: body.conversationId });
    expect(model.prompts).not.toContain(url.slice(-20));
    const kept = await api<ConversationWithMessages>(
      key,
      "GET",
      `/chat/conversations/${body.conversationId}`,
    );
    expect(JSON.stringify(kept.body)).not.toContain(url.slice(-20));
  });

  it("in what others wrote reach no prompt: addresses lose their passwords, keys of ours all but their prefix", async () => {
    const key = await funded();
    const { siteId } = await createSite(key, {
      name: "canary",
      startCommand: `serve postgres://u:canary-password@db/x ${key}`,
    });
    const { url } = (await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`)).body;
    const value = `redis://:canary-password@cache\n${key}\n${url}`;
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "NOTE", value }] });
    const model = scripted(
      open("sites"),
      use("get_site", { site: "canary" }),
      use("list_env_vars", { site: "canary" }),
      { text: "Seen." },
    );
    await say(key, "Show canary");
    expect(model.prompts).toContain("…@cache");
    expect(model.prompts).not.toContain("canary-password");
    expect(model.prompts).not.toContain(key);
    expect(model.prompts).not.toContain(url.split("/").at(-1));
  });
});

describe("a conversation", () => {
  it("remembers what was said, and is its account's alone", async () => {
    const [key, other] = [await funded(), await funded()];
    const model = scripted({ text: "Nice to meet you, Ada." }, { text: "You are Ada." });
    const { conversationId } = (await say(key, "I am Ada.")).body;
    await say(key, "Who am I?", { conversationId });
    expect(model.asked[1]?.messages.map(({ content }) => content)).toEqual([
      expect.stringContaining(systemPrompt),
      "I am Ada.",
      "Nice to meet you, Ada.",
      "Who am I?",
    ]);
    expect((await say(other, "Who am I?", { conversationId })).status).toBe(403);
    expect((await say(key, "Hello", { conversationId: "conv_001m80000000000000000000000" })).status).toBe(
      404,
    );
    expect((await api(other, "GET", `/chat/conversations/${conversationId}`)).status).toBe(403);
  });

  it("takes messages that come at once one after the other, each after what was said before", async () => {
    const key = await funded();
    const model = scripted({ text: "Hello." });
    const { conversationId } = (await say(key, "Hello")).body;
    const numbers = ["one", "two", "three"];
    await Promise.all(numbers.map((number) => say(key, `Number ${number}`, { conversationId })));
    const { body } = await api<ConversationWithMessages>(key, "GET", `/chat/conversations/${conversationId}`);
    expect(body.messages.map(({ role }) => role)).toEqual(
      Array.from({ length: 4 }, () => ["user", "assistant"]).flat(),
    );
    const said = body.messages.flatMap(({ role, text }) => (role === "user" ? [text] : []));
    expect(said.toSorted()).toEqual(["Hello", ...numbers.map((number) => `Number ${number}`)].toSorted());
    const last = model.asked
      .at(-1)
      ?.messages.flatMap(({ role, content }) => (role === "user" ? [content] : []));
    expect(last).toEqual(said);
  });

  it("is gone thirty days after its last message, from the list and from its object", async () => {
    const key = await funded();
    scripted({ text: "Hello." });
    const { conversationId } = (await say(key, "Hello")).body;
    const list = async () => (await api<Page<Conversation>>(key, "GET", "/chat/conversations")).body.data;
    await expect.poll(async () => (await list()).length).toBe(1);
    const conversation = bindings.CONVERSATION.get(bindings.CONVERSATION.idFromName(conversationId));
    const dueMs = await runInDurableObject(conversation, (_, { storage }) => storage.getAlarm());
    const days = ((dueMs ?? 0) - Date.now()) / 86_400_000;
    expect([days > 29.9, days <= 30]).toEqual([true, true]);
    const accountId = await ownerOf(key);
    expect(await conversation.history(accountId)).toMatchObject({ messages: [{ text: "Hello" }, {}] });
    await runDurableObjectAlarm(conversation);
    expect(await conversation.history(accountId)).toMatchObject({ refused: { code: "not_found" } });
    const at = (daysFromNow: number) => ({
      ...contextOf(bindings, { type: "system" }, () => undefined),
      now: () => new Date(Date.now() + daysFromNow * 86_400_000),
    });
    await forgetOldConversations(at(29));
    expect(await list()).toHaveLength(1);
    await forgetOldConversations(at(31));
    expect(await list()).toEqual([]);
  });

  it("is listed, renamed, read with its messages, and deleted", async () => {
    const key = await funded();
    scripted({ text: "Hello." });
    const { conversationId } = (await say(key, "  Why did it\nfail? ")).body;
    const list = async () => (await api<Page<Conversation>>(key, "GET", "/chat/conversations")).body.data;
    await expect.poll(async () => (await list()).map(({ title }) => title)).toEqual(["Why did it fail?"]);
    const path = `/chat/conversations/${conversationId}`;
    expect((await api<Conversation>(key, "PATCH", path, { title: "The failure" })).body.title).toBe(
      "The failure",
    );
    expect((await api<ConversationWithMessages>(key, "GET", path)).body.messages).toMatchObject([
      { role: "user", text: "  Why did it\nfail? ", toolCalls: [] },
      { role: "assistant", text: "Hello.", toolCalls: [] },
    ]);
    // What was read is kept with the answer that it was read for.
    scripted(open("sites"), use("list_sites", {}), use("get_site", { site: "nowhere" }), { text: "None." });
    await say(key, "What do I have?", { conversationId });
    const { messages } = (await api<ConversationWithMessages>(key, "GET", path)).body;
    expect(messages.at(-1)?.toolCalls).toEqual([
      { tool: "list_sites", ok: true },
      { tool: "get_site", ok: false },
    ]);
    expect((await api(key, "DELETE", path)).status).toBe(200);
    expect([(await api(key, "GET", path)).status, await list()]).toEqual([404, []]);
  });
});

async function eventsOf(response: Response): Promise<{ id: number; event: string; data: unknown }[]> {
  return (await response.text())
    .split("\n\n")
    .map(
      (block) =>
        Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/).slice(0, 2))) as Record<
          string,
          string
        >,
    )
    .filter(({ event }) => event !== undefined)
    .map(({ id, event, data }) => ({
      id: Number(id),
      event: event ?? "",
      data: JSON.parse(data ?? "null") as unknown,
    }));
}
const streamed = (key: string, body: object, headers: Record<string, string> = {}) =>
  call("/api/v1/chat/stream", {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

/** A turn of the model that waits for `go`. */
function held(turn: Said): { turn: Said; go: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { turn: { ...turn, after: promise }, go: resolve };
}

describe("a streamed answer", () => {
  it("tells text and tools as they come and ends with the whole reply", async () => {
    const key = await funded(2);
    scripted(open("sites"), use("list_sites", {}), { text: "You have no sites." });
    const response = await streamed(key, { message: "What do I have?" });
    expect(response.headers.get("Content-Type")).toBe("text/event-stream");
    const events = await eventsOf(response);
    expect(events.filter(({ event }) => event === "tool").map(({ data }) => data)).toEqual([
      { tool: "list_sites", status: "running" },
      { tool: "list_sites", status: "done" },
    ]);
    const text = events
      .filter(({ event }) => event === "delta")
      .map(({ data }) => (data as { text: string }).text);
    expect(text.join("")).toBe("You have no sites.");
    expect(events.at(-1)).toMatchObject({
      event: "done",
      data: { message: "You have no sites.", creditsUsed: 1, balance: 1 },
    });
  });

  it("is streamed as the message holds it: rounds apart, without blanks at its ends", async () => {
    const key = await funded();
    scripted(
      { text: "\n\nLet me look. \n", ...open("sites") },
      { text: " ", ...use("list_sites", {}) },
      { text: "You have none.\n" },
      { text: "\n", ...use("delete_site", { site: (await createSite(key)).siteId }) },
      { text: " Shall I? " },
    );
    const [first, second] = [
      await eventsOf(await streamed(key, { message: "Look" })),
      await eventsOf(await streamed(key, { message: "Delete it" })),
    ];
    const textOf = (events: typeof first) =>
      events
        .flatMap(({ event, data }) => (event === "delta" ? (data as { text: string }).text : []))
        .join("");
    expect(first.at(-1)?.data).toMatchObject({ message: "Let me look.\n\nYou have none." });
    expect(textOf(first)).toBe("Let me look.\n\nYou have none.");
    expect(textOf(second)).toBe("Shall I?");
    expect(second.at(-1)?.data).toMatchObject({
      message: expect.stringMatching(/^Shall I\?\n\nDelete the site /) as string,
    });
  });

  it("of a first message says first which conversation it is, which is listed and gone on with before the model answers", async () => {
    const key = await funded();
    const answer = held({ text: "Hello." });
    scripted(answer.turn);
    const stream = await streamed(key, { message: "Good day" });
    const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
    let heard = "";
    while (!heard.includes("data: ")) heard += (await reader.read()).value ?? "";
    const { conversationId } = JSON.parse(/event: conversation\ndata: (.*)/.exec(heard)?.[1] ?? "{}") as {
      conversationId: string;
    };
    expect((await api<Page<Conversation>>(key, "GET", "/chat/conversations")).body.data).toMatchObject([
      { id: conversationId, title: "Good day" },
    ]);
    const path = `/chat/conversations/${conversationId}`;
    expect((await api<ConversationWithMessages>(key, "GET", path)).body.messages).toMatchObject([
      { role: "user", text: "Good day" },
    ]);
    await reader.cancel();
    const headers = { Authorization: `Bearer ${key}`, "Last-Event-ID": /id: (\d+)/.exec(heard)?.[1] ?? "" };
    const resumed = await call(`/api/v1${path}/events`, { headers });
    answer.go();
    expect((await eventsOf(resumed)).map(({ event }) => event)).toEqual(["delta", "done"]);
  });

  it("that nobody reads comes to its end, is charged once and kept, and is gone on with from the last event seen", async () => {
    const key = await funded(2);
    scripted({ text: "One two three four five." });
    const response = await streamed(key, { message: "Count" });
    await response.body?.cancel();
    await expect.poll(() => balanceOf(key)).toBe(1);
    const { body } = await api<Page<Conversation>>(key, "GET", "/chat/conversations");
    const path = `/api/v1/chat/conversations/${body.data[0]?.id}/events`;
    const resumed = await call(path, { headers: { Authorization: `Bearer ${key}`, "Last-Event-ID": "2" } });
    const events = await eventsOf(resumed);
    expect([events[0]?.id, events.at(-1)?.event]).toEqual([3, "done"]);
    expect(await balanceOf(key)).toBe(1);
  });

  it("is heard by the reader of its own message alone, who waits for it behind those before, and asks for what it asks", async () => {
    const key = await funded();
    const names = ["shop", "staging"];
    for (const name of names) await createSite(key, { name });
    scripted({ text: "Hello." });
    const { conversationId } = (await say(key, "Hello")).body;
    const first = held(use("delete_site", { site: "shop" }));
    const second = held(use("delete_site", { site: "staging" }));
    const model = scripted(
      open("sites"),
      use("list_sites", {}),
      first.turn,
      { text: "Shall I delete it?" },
      second.turn,
      { text: "Shall I delete staging?" },
      { text: "It is deleted." },
    );
    const stopped = await streamed(key, { message: "Delete shop", conversationId });
    await expect.poll(() => model.asked.length).toBe(3);
    await stopped.body?.cancel();
    const waiting = await streamed(key, { message: "Delete staging", conversationId });
    const path = `/api/v1/chat/conversations/${conversationId}/events`;
    const resumed = (lastEventId: object) =>
      call(path, { headers: { Authorization: `Bearer ${key}`, ...lastEventId } });
    // Cut off before it heard anything, and while the answer of the message before was written.
    const [cutEarly, cutLate] = [await resumed({}), await resumed({ "Last-Event-ID": "4" })];
    first.go();
    const heardLate = await eventsOf(cutLate);
    expect([heardLate[0]?.id, heardLate.at(-1)?.data]).toMatchObject([
      5,
      { pendingAction: { summary: expect.stringContaining("Delete the site shop") as string } },
    ]);
    second.go();
    const heard = await eventsOf(waiting);
    expect(await eventsOf(cutEarly)).toEqual(heard);
    expect(heard.map(({ event }) => event)).toContain("action");
    expect(JSON.stringify(heard)).not.toContain("shop");
    expect(heard.at(-1)?.data).toMatchObject({
      pendingAction: { summary: expect.stringContaining("Delete the site staging") as string },
    });
    expect((await say(key, "yes", { conversationId })).body.toolCalls).toEqual([
      { tool: "delete_site", ok: true },
    ]);
    const { body } = await api<Page<{ name: string }>>(key, "GET", "/sites");
    expect(body.data.map(({ name }) => name)).toEqual(["shop"]);
  });

  it("that a restart of the service cut off ends with an error for whoever goes on with it", async () => {
    const key = await funded(5);
    scripted({ text: "Hello." });
    const { conversationId } = (await say(key, "Hello")).body;
    const model = scripted(held({ text: "One two three." }).turn);
    const stream = await streamed(key, { message: "Count", conversationId });
    await expect.poll(() => model.asked.length).toBe(1);
    const object = bindings.CONVERSATION.get(bindings.CONVERSATION.idFromName(conversationId));
    await runInDurableObject(object, (_, state) => state.abort("killed")).catch(() => undefined);
    await stream.text().catch(() => undefined);
    const headers = { Authorization: `Bearer ${key}`, "Last-Event-ID": "4" };
    const resumed = await call(`/api/v1/chat/conversations/${conversationId}/events`, { headers });
    expect(await eventsOf(resumed)).toMatchObject([
      { event: "error", data: { reason: expect.stringContaining("was restarted") as string } },
    ]);
    scripted({ text: "One two three." });
    expect((await say(key, "Count", { conversationId })).body.message).toBe("One two three.");
  });

  it("asked for again under its Idempotency-Key is neither given nor charged twice: it is in the conversation", async () => {
    const key = await funded(2);
    const model = scripted({ text: "One." }, { text: "Two." });
    const ask = () => streamed(key, { message: "Count" }, { "Idempotency-Key": "count" });
    expect((await eventsOf(await ask())).at(-1)?.event).toBe("done");
    const again = await ask();
    expect([again.status, await again.json()]).toMatchObject([
      409,
      { reason: expect.stringContaining("It is not executed again") },
    ]);
    expect([model.asked.length, await balanceOf(key)]).toEqual([1, 1]);
    const { body } = await api<Page<Conversation>>(key, "GET", "/chat/conversations");
    expect(body.data).toHaveLength(1);
  });
});

describe("a conversation that is deleted while an answer is written", () => {
  const keptIn = (conversationId: string) =>
    runInDurableObject(
      bindings.CONVERSATION.get(bindings.CONVERSATION.idFromName(conversationId)),
      async (_, { storage }) => ({
        alarm: await storage.getAlarm(),
        values: [...storage.kv.list()],
        rows: ["messages", "tool_calls", "events"].flatMap((table) =>
          storage.sql.exec(`SELECT * FROM ${table}`).toArray(),
        ),
      }),
    );
  const nothing = { alarm: null, values: [], rows: [] };
  const rowsOf = async (conversationId: string) =>
    (await bindings.DB.prepare("SELECT id FROM conversations WHERE id = ?").bind(conversationId).all())
      .results;

  it("does not come back: its readers are told, no further tool runs, and what the model did until then is paid", async () => {
    const key = await funded(7);
    const { siteId } = await createSite(key, { name: "left-alone" });
    scripted({ text: "Hello." });
    const { conversationId } = (await say(key, "Hello")).body;
    await expect.poll(() => rowsOf(conversationId)).toHaveLength(1);
    const next = held(use("set_env_vars", { site: "left-alone", entries: [{ key: "A", value: "1" }] }));
    const model = scripted(
      open("environment"),
      use("rotate_deploy_webhook", { site: "left-alone" }),
      next.turn,
      { text: "It is set." },
    );
    const [reader, waiting] = [
      await streamed(key, { message: "Set A", conversationId }),
      await streamed(key, { message: "And B", conversationId }),
    ];
    const queued = say(key, "And C", { conversationId });
    await expect.poll(async () => (await api<ChatPrice>(key, "GET", "/chat/price")).body.balance).toBe(0);
    await expect.poll(() => model.asked.length).toBe(3);
    expect((await api(key, "DELETE", `/chat/conversations/${conversationId}`)).status).toBe(200);
    for (const heard of [await eventsOf(reader), await eventsOf(waiting)])
      expect(heard.at(-1)).toMatchObject({ event: "error", data: { error: "Not found" } });
    next.go();
    // It is refused when those before have come to their end.
    expect((await queued).status).toBe(404);
    expect([model.asked.length, (await site(key, siteId)).envVariables]).toEqual([3, []]);
    expect([await keptIn(conversationId), await rowsOf(conversationId)]).toEqual([nothing, []]);
    expect((await say(key, "Hello?", { conversationId })).status).toBe(404);
    expect((await api<ChatPrice>(key, "GET", "/chat/price")).body.balance).toBe(5);
  });

  it("with its account leaves nothing either", async () => {
    const key = await funded(5);
    scripted({ text: "Hello." });
    const { conversationId } = (await say(key, "Hello")).body;
    await expect.poll(() => rowsOf(conversationId)).toHaveLength(1);
    const answer = held({ text: "You live in Berlin." });
    const model = scripted(answer.turn);
    const asked = say(key, "Where do I live?", { conversationId });
    await expect.poll(() => model.asked.length).toBe(1);
    // As `services/accounts/remove.ts` does before it tells the conversation, which may come late.
    const id = await ownerOf(key);
    await bindings.DB.batch([
      bindings.DB.prepare("UPDATE accounts SET deleted_at = 1 WHERE id = ?").bind(id),
      bindings.DB.prepare("DELETE FROM conversations WHERE account_id = ?").bind(id),
    ]);
    answer.go();
    expect((await asked).status).toBe(404);
    expect([await keptIn(conversationId), await rowsOf(conversationId)]).toEqual([nothing, []]);
  });
});

describe("a message that waits behind others", () => {
  afterEach(() => vi.useRealTimers());
  const minutes = (count: number) => vi.setSystemTime(Date.now() + count * 60_000);
  const system = () => contextOf(bindings, { type: "system" }, () => undefined);
  const freeBalance = async (key: string) => (await api<ChatPrice>(key, "GET", "/chat/price")).body.balance;

  /** Messages of one conversation whose answers come when they are let go; each holds two credits. */
  async function line(key: string, texts: string[]) {
    scripted({ text: "Hello." });
    const { conversationId } = (await say(key, "Hello")).body;
    const turns = texts.map((text) => held({ text }));
    const model = scripted(...turns.map(({ turn }) => turn));
    vi.useFakeTimers({ now: Date.now(), toFake: ["Date"] });
    const before = await freeBalance(key);
    const replies: ReturnType<typeof say>[] = [];
    for (const text of texts) {
      replies.push(say(key, text, { conversationId }));
      await expect.poll(() => freeBalance(key)).toBe(before - 2 * replies.length);
    }
    return { conversationId, turns, model, replies };
  }

  it("longer than its credits are held is paid once like any other", async () => {
    const key = await funded(20);
    const { turns, model, replies } = await line(key, ["One.", "Two.", "Three."]);
    minutes(20);
    turns[0]?.go();
    await expect.poll(() => model.asked.length).toBe(2);
    // The second was renewed when its turn began; the third still waits, and what was held for it is given back.
    minutes(20);
    await voidExpiredHolds(system());
    expect(await freeBalance(key)).toBe(16);
    for (const { go } of turns) go();
    const answers = await Promise.all(replies);
    // What the others hold is still in the balance, as in GET /credits.
    expect(answers.map(({ status, body }) => [status, body.message, body.creditsUsed, body.balance])).toEqual(
      [
        [200, "One.", 1, 18],
        [200, "Two.", 1, 17],
        [200, "Three.", 1, 16],
      ],
    );
    expect([await freeBalance(key), await balanceOf(key)]).toEqual([16, 16]);
  });

  it("is refused when its turn comes, as at its arrival, where its credits are gone by then", async () => {
    const key = await funded(7);
    const { conversationId, turns, replies, model } = await line(key, ["One.", "Two."]);
    const stream = await streamed(key, { message: "Three.", conversationId });
    minutes(40);
    await voidExpiredHolds(system());
    const accountId = await ownerOf(key);
    const expiresAt = new Date(Date.now() + 60_000);
    await holdCredits(system(), { id: uniqueName("other"), accountId, amount: 6, expiresAt });
    for (const { go } of turns) go();
    expect(await replies[1]).toMatchObject({
      status: 402,
      body: { error: "payment_required", balance: 0, needed: 1 },
    });
    expect(await eventsOf(stream)).toMatchObject([
      { event: "error", data: { error: "payment_required", balance: 0, needed: 1 } },
    ]);
    expect(model.asked).toHaveLength(1);
    const path = `/chat/conversations/${conversationId}`;
    const { messages } = (await api<ConversationWithMessages>(key, "GET", path)).body;
    expect(messages.map(({ text }) => text)).toEqual(["Hello", "Hello.", "One.", "One."]);
  });
});

describe("without a model", () => {
  const memory = () => ({ summary: null, history: [], groups: [], pending: undefined });
  const purse = { prices: { rates: null, least: 1 }, credits: 1 };
  const command = async (key: string, message: string, pending?: never, confirm?: string) =>
    converse(
      await assistantOf(key),
      null,
      { ...memory(), pending },
      { message, confirm },
      purse,
      () => undefined,
    );

  it("tools are called by name, and help names all of them", async () => {
    const key = await account();
    await createSite(key, { name: "typed" });
    const { message } = await command(key, "help");
    for (const name of Object.keys(tools)) expect(message).toContain(name);
    expect((await command(key, "help stop_site")).message).toContain("site");
    expect((await command(key, "list_sites limit=5")).message).toContain('"name": "typed"');
    expect((await command(key, 'get_site site="typed"')).toolCalls).toEqual([{ tool: "get_site", ok: true }]);
    expect((await command(key, "get_site typed")).message).toContain("key=value");
    expect((await command(key, "make_coffee")).message).toContain("There is no tool");
  });

  it("whoever misses a tool's name reads the tools that come near, and all only where none does", async () => {
    const key = await account();
    const named = async (message: string) => {
      const { message: said } = await command(key, message);
      expect(said).toContain("There is no tool");
      return Object.keys(tools).filter((name) => new RegExp(`\\b${name}\\b`).test(said));
    };
    expect(await named("List my site")).toEqual(["list_sites"]);
    expect(await named("restart shop")).toEqual(["restart_site", "restart_database"]);
    expect((await command(key, "delete a site")).message).toContain("\n  site");
    for (const unclear of ["hello", "what is wrong with my site?"])
      expect(await named(unclear)).toEqual(Object.keys(tools));
  });

  it("a no says that nothing was done and costs nothing", async () => {
    const key = await account();
    await createSite(key, { name: "kept-on" });
    const { pending } = (await command(key, "delete_site site=kept-on")).memory;
    expect(await command(key, "No.", pending as never)).toMatchObject({
      message: "Nothing was done, and nothing waits for your confirmation any more.",
      isComplete: false,
      toolCalls: [],
      memory: { pending: undefined },
    });
    expect((await api<Page<unknown>>(key, "GET", "/sites")).body.data).toHaveLength(1);
  });

  it("values are JSON as deep as a tool takes it, with brackets and quotes in their texts", async () => {
    const key = await account();
    const { siteId } = await createSite(key, { name: "deep" });
    const settings = { lifecycle: { drainSeconds: 7 }, startCommand: 'sh -c "echo ]}{["' };
    const typed = `update_site_settings   site="deep"\n settings=${JSON.stringify(settings, null, 1)} `;
    expect((await command(key, typed)).toolCalls).toEqual([{ tool: "update_site_settings", ok: true }]);
    expect(await site(key, siteId)).toMatchObject(settings);
    for (const wrong of [
      'get_site site="deep',
      "get_site site=[",
      'get_site site="deep"x',
      "get_site =deep",
      "get_site site",
    ])
      expect([wrong, (await command(key, wrong)).message]).toEqual([
        wrong,
        expect.stringContaining("key=value"),
      ]);
  });

  it("texts in quotes are as they were pasted, with their line breaks and backslashes", async () => {
    const key = await account();
    const dockerfile = 'FROM nginx\n\nRUN a \\\n  && grep "^\\d\t" /b\n';
    // Only the quotes in it are escaped.
    const pasted = `"${dockerfile.replaceAll('"', '\\"')}"`;
    const typed = `create_site name=pasted deployType=dockerfile port=80 dockerfile=${pasted}`;
    expect((await command(key, typed)).toolCalls).toEqual([{ tool: "create_site", ok: true }]);
    const [made] = (await api<Page<{ id: string }>>(key, "GET", "/sites")).body.data;
    const id = made?.id ?? "";
    expect(await site(key, id)).toMatchObject({ dockerfile });
    const settings = `{"dockerfile": ${pasted.replace("nginx", "caddy")}}`;
    await command(key, `update_site_settings site=pasted settings=${settings}`);
    expect(await site(key, id)).toMatchObject({ dockerfile: dockerfile.replace("nginx", "caddy") });
  });

  it("what is destructive asks as well, and a plain yes does it", async () => {
    const key = await account();
    await createSite(key, { name: "typed-away" });
    const asked = await command(key, "delete_site site=typed-away");
    expect(asked.message).toContain("Delete the site typed-away permanently");
    const done = await command(key, "yes", asked.memory.pending as never);
    expect(done.toolCalls).toEqual([{ tool: "delete_site", ok: true }]);
    expect((await api<Page<unknown>>(key, "GET", "/sites")).body.data).toEqual([]);
  });

  it("a word of consent to nothing is answered for nothing, and one to something else leaves what waits", async () => {
    const key = await account();
    await createSite(key, { name: "typed-on" });
    const nothing =
      "Nothing is waiting for your confirmation: it was answered, withdrawn, or is older than ten minutes.";
    for (const confirm of [undefined, "cfm_none"])
      expect(await command(key, "yes", undefined, confirm)).toMatchObject({
        message: nothing,
        isComplete: false,
        toolCalls: [],
      });
    const { pending } = (await command(key, "delete_site site=typed-on")).memory;
    const other = await command(key, "yes", pending as never, "cfm_none");
    expect([other.isComplete, other.toolCalls, other.memory.pending]).toEqual([false, [], pending]);
    expect(other.message).toContain("Delete the site typed-on permanently");
    const late = { ...pending, expiresAtMs: 0 };
    expect(await command(key, "yes", late as never, pending?.id)).toMatchObject({
      message: nothing,
      memory: { pending: undefined },
    });
  });

  it("a value is taken as it is written where its JSON is none that the tool takes", async () => {
    const key = await account();
    const { siteId } = await createSite(key, { name: "404" });
    for (const typed of ["get_site site=404", 'get_site site="404"'])
      expect((await command(key, typed)).message).toContain(siteId);
    const { message } = await command(key, "search_log_history text=500 limit=1.5");
    expect(message).toMatch(/site: .*limit: /);
    expect(message).not.toContain("text: ");
  });

  it("a long result loses its middle, as the newest lines of a log are its last", async () => {
    const key = await account();
    const { siteId } = await createSite(key, { name: "long" });
    const envVariables = Array.from({ length: 90 }, (_, at) => ({ key: `KEY_${at}`, value: "x".repeat(90) }));
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables });
    const { message } = await command(key, "list_env_vars site=long");
    for (const part of ["KEY_0", "KEY_89", " […] "]) expect(message).toContain(part);
    expect(message).toMatch(/Cut to 8000 of \d+ characters at \[…\]: ask for less\.$/);
  });
});
