import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { ChatReply } from "../../protocol/api/chat.ts";
import { tools, type ToolName } from "../../protocol/api/tools.ts";
import { converse } from "../../worker/assistant/converse.ts";
import { pendingForMs, type PendingAction } from "../../worker/assistant/pending.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { assistantActor, funded, say, scripted, use, withoutChatLimit } from "./assistant.ts";
import { api, bindings, operator } from "./service.ts";
import { answering, argumentsAbout, recordOf, wholeAccount } from "./whole-account.ts";

withoutChatLimit();

const destructive = (Object.keys(tools) as ToolName[]).filter((name) => "destructive" in tools[name]);

let account: Awaited<ReturnType<typeof wholeAccount>>;
let stranger: string;
let ctx: Ctx;
let args: Record<ToolName, object>;
beforeAll(async () => {
  account = await wholeAccount(true);
  stranger = await funded(1000);
  const grant = { accountId: account.accountId, amount: 1000 };
  await api(await operator(), "POST", "/credits/grants", grant);
  answering(account.host);
  args = argumentsAbout(account.ids);
  const actor = assistantActor(account.accountId, account.ids.key);
  ctx = contextOf(bindings, actor, () => undefined);
});

afterAll(() => account.host.close());

const record = () => recordOf([account.accountId, ...Object.values(account.ids)]);

/** The model calls the tool, and waits for the person. */
async function asked(
  name: ToolName,
  conversationId?: string,
): Promise<{ reply: ChatReply; confirm: string }> {
  scripted(use(name, args[name]), { text: "yes" });
  const reply = (await say(account.key, `Use ${name}`, conversationId ? { conversationId } : {})).body;
  expect([name, reply.pendingAction?.tool, reply.toolCalls]).toEqual([name, name, []]);
  return { reply, confirm: reply.pendingAction?.id ?? "" };
}

/** What the person says next, which is no word for what waits. */
async function says(message: string, more: object): Promise<void> {
  const { status, body } = await say(account.key, message, more);
  expect([status, body.toolCalls]).toEqual([200, []]);
}

it("25 tools are destructive", () => {
  expect(destructive).toHaveLength(25);
});

describe.each(destructive)("%s", (name) => {
  it("does nothing in a conversation without the person's word, or with an old, foreign, altered or late one", async () => {
    const before = await record();

    // None: the model asks again and says itself what the person should.
    const first = await asked(name);
    const { conversationId } = first.reply;
    const more = { conversationId };
    await asked(name, conversationId);
    scripted({ text: "yes" });
    await says("What would it cost?", more);
    await says("yes", more);

    // Old: of what was withdrawn by another request.
    await asked(name, conversationId);
    scripted({ text: "No." });
    await says("yes", { ...more, confirm: first.confirm });

    // Foreign: in another conversation, and from another account.
    const { confirm } = await asked(name, conversationId);
    scripted({ text: "No." });
    await says("yes", { confirm });
    expect((await say(stranger, "yes", { ...more, confirm })).status).toBe(403);
    expect((await say(stranger, "yes", { confirm })).body.toolCalls).toEqual([]);

    // Altered: by a character, in its case, and as an argument of the model's own.
    for (const altered of [
      `${confirm.slice(0, -1)}${confirm.endsWith("A") ? "B" : "A"}`,
      confirm.toUpperCase(),
    ]) {
      await asked(name, conversationId);
      scripted({ text: "No." });
      await says("yes", { ...more, confirm: altered });
    }
    const own = await asked(name, conversationId);
    for (const given of [{ confirm: true }, { confirm: own.confirm }, { confirmed: "yes" }]) {
      scripted(use(name, { ...args[name], ...given }), { text: "Done." });
      const { body } = await say(account.key, "Go on with it", more);
      expect([body.toolCalls, body.pendingAction]).toEqual([[{ tool: name, ok: false }], null]);
    }

    // Late.
    const late = await asked(name, conversationId);
    scripted({ text: "No." });
    vi.useFakeTimers({ now: Date.now() + pendingForMs + 1000, toFake: ["Date"] });
    try {
      await says("yes", { ...more, confirm: late.confirm });
    } finally {
      vi.useRealTimers();
    }

    expect(await record()).toEqual(before);
  });

  it("does nothing in command mode either", async () => {
    const before = await record();
    const purse = { prices: { rates: null, least: 1 }, credits: 1 };
    const command = async (message: string, pending?: PendingAction, confirm?: string) =>
      converse(
        ctx,
        null,
        { summary: null, history: [], groups: [], pending },
        { message, confirm },
        purse,
        () => undefined,
      );
    const typed = Object.entries(args[name]).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
    const { toolCalls, memory } = await command(`${name} ${typed.join(" ")}`);
    const { pending } = memory;
    expect([toolCalls, pending?.steps.map(({ tool }) => tool)]).toEqual([[], [name]]);
    const expired = pending && { ...pending, expiresAtMs: ctx.now().getTime() };
    for (const [message, waits, confirm] of [
      ["yes", undefined, pending?.id],
      ["yes", pending, "cfm_none"],
      ["yes", expired, pending?.id],
      ["yes please, but not now", pending, undefined],
      [`${name} ${typed.join(" ")} confirm=true`, pending, undefined],
    ] as const) {
      const done = await command(message, waits, confirm);
      expect(done.toolCalls.filter(({ ok }) => ok)).toEqual([]);
    }
    expect(await record()).toEqual(before);
  });
});
