import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, it } from "vitest";
import type { Credits } from "../../protocol/api/credits.ts";
import type { ChatPrice } from "../../protocol/api/chat.ts";
import type { ToolGroup } from "../../protocol/api/tools.ts";
import type { ScriptedModel } from "../support/scripted-model.ts";
import { answerNext, funded, open, say, scene, scripted, use } from "./assistant.ts";
import { api, bindings, createSite, runningSite } from "./service.ts";

/** All that a request brings to the model, counted with a model's own table. */
const tokensOf = (model: ScriptedModel): number[] =>
  [...model.asked, ...model.summarized].map(
    ({ messages, tools }) => encode(JSON.stringify({ messages, tools })).length,
  );

const noise = (length: number): string =>
  Buffer.from(Array.from({ length }, (_, at) => (at * 7919 * (at % 251) + 31) & 255)).toString("base64");
const line = (text: string) => ({ at: "2026-01-01T00:00:01.000000001Z", stream: "stdout" as const, text });

describe("a request to the model", () => {
  it.each([
    ["English", "Why does my site answer 502 since the last deployment? ".repeat(140)],
    ["Chinese", "为什么我的网站自上次部署以来一直返回错误".repeat(380)],
    ["pictures", "🔥🚀👩‍👩‍👧‍👦".repeat(500)],
    ["base64", noise(5900)],
    ["rare characters", String.fromCodePoint(0x1e900).repeat(3900)],
  ])(
    "stays below 8,000 tokens: a message as long as can be in %s, many results, and a long history",
    async (_, message) => {
      const { key, host } = await scene();
      await runningSite(key, host, { name: "loud" });
      const text = message.slice(0, 7990);
      const many = Array.from({ length: 6 }, () => ({ name: "get_site_logs", args: { site: "loud" } }));
      scripted({ text: "Hello." });
      const { conversationId } = (await say(key, "Hello")).body;
      for (let turn = 0; turn < 2; turn++) {
        const model = scripted(
          open("databases"),
          open("sites"),
          open("logs"),
          { text: "Let me see. ".repeat(300), calls: many },
          { calls: [{ name: "get_site_logs", args: { site: "x".repeat(20_000) } }] },
          { text: "It is ".repeat(2000) },
        );
        model.summary = { text };
        const saying = say(key, text, { conversationId });
        for (let count = 0; count < many.length; count++)
          await answerNext(host, {
            kind: "logs",
            lines: Array.from({ length: 40 }, (__, at) => line(`${at} ${noise(300)}`)),
          });
        const { status, body } = await saying;
        expect([status, body.toolCalls.length]).toEqual([200, 7]);
        expect(Math.max(...tokensOf(model))).toBeLessThan(8000);
        expect(model.asked.every((asked) => asked.max_completion_tokens === 1024)).toBe(true);
      }
    },
  );

  it("stays below 8,000 tokens after as many calls at once as a model may write, of which no more than 24 are made", async () => {
    const key = await funded();
    const { siteId } = await createSite(key, { name: "looked-at" });
    const calls = Array.from({ length: 40 }, () => ({ name: "get_site", args: { site: siteId } }));
    const model = scripted(open("logs"), { calls }, use("get_site", { site: siteId }), { text: "All." });
    const { body } = await say(key, "Look at all of my sites");
    expect(Math.max(...tokensOf(model))).toBeLessThan(8000);
    // That which opened their group is one of them.
    expect([body.message, body.toolCalls.length]).toEqual(["All.", 23]);
    expect(model.asked.at(-1)?.messages.at(-1)?.content).toContain("Too many calls for one message");
  });

  it("says what time it is, without which no model finds the last hour", async () => {
    const model = scripted({ text: "There are none." });
    await say(await funded(), "Show the errors from the last hour.");
    const [, told = ""] = /\nIt is (\S+)\.$/.exec(model.asked[0]?.messages[0]?.content ?? "") ?? [];
    expect(Math.abs(Date.now() - Date.parse(told))).toBeLessThan(5 * 60_000);
  });

  it("without the middle of a long message says so to the model, and the answer to the person", async () => {
    const key = await funded();
    const steps = Array.from({ length: 200 }, (_, at) => `RUN echo step number ${at} done`).join("\n");
    const model = scripted({ text: "I see." });
    const { message } = (await say(key, `Create a site of this Dockerfile:\n${steps}`)).body;
    const told = model.asked[0]?.messages.at(-1)?.content ?? "";
    expect(told).not.toContain("number 130 ");
    expect(told).toMatch(/number 199 done\n\n\(The person wrote more than this: .*\)$/);
    expect(message).toMatch(/^I see\.\n\nYour message is longer than the model can be given/);
    expect((await say(key, "And this?")).body.message).toBe("I see.");
  });

  it("holds the newest results whole, and of older ones that they were left out", async () => {
    const { key, host } = await scene();
    await runningSite(key, host, { name: "loud" });
    const model = scripted(
      open("logs"),
      ...Array.from({ length: 5 }, () => use("get_site_logs", { site: "loud" })),
      { text: "Done." },
    );
    const saying = say(key, "Look at it five times");
    for (let count = 0; count < 5; count++)
      await answerNext(host, { kind: "logs", lines: [line(`mark${count} ${"a word ".repeat(600)}`)] });
    await saying;
    const results = model.asked.at(-1)?.messages.filter(({ role }) => role === "tool") ?? [];
    expect(results).toHaveLength(6);
    expect(results.at(-1)?.content).toContain("mark4");
    expect(results[1]?.content).toMatch(/Left out|Cut/);
    for (const { content } of results) expect(JSON.parse(content)).toBeInstanceOf(Object);
  });
});

describe("a long conversation", () => {
  const long = "The shop sells chairs and tables, and I would like to know about its deployments. ".repeat(
    20,
  );

  it("is summarized by the model, and goes on from the summary, which is marked as data", async () => {
    const key = await funded();
    scripted({ text: "I see. ".repeat(100) }).summary = { isCut: true };
    const { conversationId } = (await say(key, long)).body;
    for (let count = 0; count < 3; count++) await say(key, `${count} ${long}`, { conversationId });
    const model = scripted({ text: "You sell chairs." });
    model.summary = { text: "They sell CHAIRS." };
    expect((await say(key, "What do I sell?", { conversationId })).body.message).toBe("You sell chairs.");
    expect(model.summarized).toHaveLength(1);
    const { messages } = model.asked[0] ?? { messages: [] };
    const summary = messages.find(({ content }) => content.includes("They sell CHAIRS."));
    expect(summary?.content).toContain('{"untrusted_data":');
    expect(Math.max(...tokensOf(model))).toBeLessThan(8000);
    // What is summarized is not sent again, and not summarized again.
    const next = scripted({ text: "Yes." });
    await say(key, "Sure?", { conversationId });
    expect(next.summarized).toEqual([]);
    expect(next.prompts).toContain("They sell CHAIRS.");
    expect(next.prompts).not.toContain("0 The shop");
  });

  it.each([
    ["is written", { text: "A summary without a word of it." }],
    ["fails", { text: "Half", isCut: true }],
  ])("keeps what waits for a confirmation while its summary %s", async (_, summary) => {
    const { key, host } = await scene();
    const { siteId } = await runningSite(key, host, { name: "to-stop" });
    scripted({ text: "I see. ".repeat(100) });
    const { conversationId } = (await say(key, long)).body;
    for (let count = 0; count < 2; count++) await say(key, long, { conversationId });
    scripted(open("sites"), use("stop_site", { site: "to-stop" }), { text: long.repeat(4) });
    expect((await say(key, "Stop to-stop", { conversationId })).body.pendingAction).not.toBeNull();
    const model = scripted({ text: "Stopping." });
    model.summary = summary;
    const done = (await say(key, "yes", { conversationId })).body;
    expect(model.summarized).toHaveLength(1);
    expect([done.message, done.toolCalls]).toEqual(["Stopping.", [{ tool: "stop_site", ok: true }]]);
    expect(Math.max(...tokensOf(model))).toBeLessThan(8000);
    const { wanted } = (await bindings.DB.prepare("SELECT wanted FROM sites WHERE id = ?")
      .bind(siteId)
      .first<{ wanted: string }>())!;
    expect(wanted).toBe("STOPPED");
  });
});

describe("the price of a message", () => {
  const balance = async (key: string) => (await api<Credits>(key, "GET", "/credits")).body.balance;

  it("is told before, and is that of the tokens that the model used, in reply, balance and ledger", async () => {
    const key = await funded(10);
    const { body: price } = await api<ChatPrice>(key, "GET", "/chat/price");
    expect(price).toEqual({
      model: "scripted",
      leastCredits: 1,
      mostCredits: 2,
      neededCredits: 1,
      per1000Tokens: { prompt: 0.01, completion: 0.1 },
      balance: 10,
    });
    scripted({ text: "Short." });
    expect((await say(key, "Hello")).body).toMatchObject({ creditsUsed: 1, balance: 9 });
    scripted({ text: "Long.", tokens: { prompt: 60_000, completion: 5000 } });
    expect((await say(key, "Hello")).body).toMatchObject({ creditsUsed: 2, balance: 7 });
    // A server that claims more than any message can take is not paid more than was held.
    scripted({ text: "Greedy.", tokens: { prompt: 9_000_000, completion: 9_000_000 } });
    expect((await say(key, "Hello")).body).toMatchObject({ creditsUsed: 2, balance: 5 });
    // One that names no numbers is paid what its texts come to.
    scripted({ text: "Uncounted.", isUncounted: true });
    expect((await say(key, "Hello")).body).toMatchObject({ creditsUsed: 1, balance: 4 });
    scripted({ text: "0123456789".repeat(3000), tokens: { prompt: 0, completion: 0 } });
    expect((await say(key, "Hello")).body).toMatchObject({ creditsUsed: 2, balance: 2 });
    const { transactions } = (await api<Credits>(key, "GET", "/credits")).body;
    expect(transactions.map(({ amount }) => amount)).toEqual([-2, -1, -2, -2, -1, 10]);
  });

  it("ends a message where the credits end, after what they paid", async () => {
    const key = await funded(1);
    await createSite(key, { name: "last" });
    const model = scripted(
      { ...open("sites"), tokens: { prompt: 50_000, completion: 4000 } },
      { ...use("list_sites", {}), tokens: { prompt: 50_000, completion: 4000 } },
    );
    const { body } = await say(key, "What do I have?");
    expect(body).toMatchObject({ creditsUsed: 1, balance: 0 });
    expect(body.message).toContain("Your credits pay no further step");
    expect(model.asked).toHaveLength(1);
    expect(await balance(key)).toBe(0);
  });
});

it("every group can be opened after every other, and the newest is always offered", async () => {
  const key = await funded();
  const all: ToolGroup[] = ["sites", "databases", "deployments", "backups", "environment", "logs"];
  const model = scripted(...all.map(open), { text: "Done." });
  await say(key, "Open them all");
  expect(Math.max(...tokensOf(model))).toBeLessThan(8000);
  const last = model.asked.at(-1)?.tools?.map((tool) => tool.function.name) ?? [];
  expect(last).toContain("get_site_logs");
});
