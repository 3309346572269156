import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import type { Answer, Question } from "../../protocol/agent/running.ts";
import type { ChatReply } from "../../protocol/api/chat.ts";
import type { Id } from "../../protocol/ids.ts";
import { readsOnly, tools, type ToolGroup, type ToolInput, type ToolName } from "../../protocol/api/tools.ts";
import { catalogue } from "../../worker/assistant/catalogue.ts";
import { Revealed } from "../../worker/assistant/tool.ts";
import { limits } from "../../worker/middleware/limit.ts";
import { ScriptedModel, type Said } from "../support/scripted-model.ts";
import { holdToSchema } from "../support/tool-output.ts";
import { account, api, bindings, operator, readyAgent, type Agent } from "./service.ts";

/** Tools whose results were held to their schemas in the test that runs. */
const held = new Set<string>();
// Whoever calls a tool in a test: a result that is not as its schema says is an error of the tool.
for (const [name, tool] of Object.entries(catalogue) as [ToolName, (typeof catalogue)["get_site"]][]) {
  const run = tool.run.bind(tool);
  tool.run = async (ctx, input) => {
    const result = await run(ctx, input);
    const told: unknown = result instanceof Revealed ? result.result : result;
    holdToSchema(name, JSON.parse(JSON.stringify(told)));
    held.add(name);
    return result;
  };
}

/** As many messages to the assistant as this file likes; `rate-limit.test.ts` holds the limit. */
export function withoutChatLimit(): void {
  const names = ["chatFree", "chatFreeDaily"] as const;
  const kept = names.map((name) => limits[name].limit);
  for (const name of names) Object.assign(limits[name], { limit: 100_000 });
  afterAll(() => {
    for (const [at, name] of names.entries()) Object.assign(limits[name], { limit: kept[at] });
  });
}

type Server = (request: Request) => Response | Promise<Response>;
/** Servers outside besides the model, by host name. */
const servers = new Map<string, Server>();
export const serving = (host: string, server: Server): unknown => servers.set(host, server);

afterEach(() => {
  vi.restoreAllMocks();
  servers.clear();
  for (const host of hosts.splice(0)) host.close();
});

/** The model says this from now on, one turn per request; everything else outside stays as it is. */
export function scripted(...turns: Said[]): ScriptedModel {
  const model = new ScriptedModel(turns);
  vi.restoreAllMocks();
  const outside = globalThis.fetch.bind(globalThis);
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const { host } = new URL(request.url);
    return host === "model.test" ? model.answer(request) : (servers.get(host) ?? outside)(request);
  });
  return model;
}

/** The assistant of an account, as its conversation makes it. */
export const assistantActor = (accountId: Id<"account">, credential: string = "key_test") => ({
  type: "assistant" as const,
  accountId,
  role: "user" as const,
  plan: "free" as const,
  conversationId: "conv_test" as const,
  credential: credential as "key_test",
});

export const open = (group: ToolGroup): Said => ({ calls: [{ name: "open_tools", args: { group } }] });
export const use = (name: ToolName, args: object): Said => ({ calls: [{ name, args }] });

export const ownerOf = async (key: string) =>
  (await bindings.DB.prepare("SELECT account_id AS id FROM api_keys WHERE start = ?")
    .bind(key.slice(0, 10))
    .first<{ id: `acc_${string}` }>())!.id;

/** The key of a new account with so many credits. */
export async function funded(amount = 20): Promise<string> {
  const key = await account();
  await api(await operator(), "POST", "/credits/grants", { accountId: await ownerOf(key), amount });
  return key;
}

/** Of the test that runs. */
const hosts: Agent[] = [];

/** An account with credits, and the only host, which is ready; `lasts`: for all tests of the file. */
export async function scene({ lasts = false } = {}) {
  await bindings.DB.prepare("UPDATE hosts SET status = 'REMOVED'").run();
  const [key, host] = [await funded(), await readyAgent()];
  if (!lasts) hosts.push(host);
  return { key, host };
}

export const say = (key: string, message: string, more: object = {}) =>
  api<ChatReply>(key, "POST", "/chat", { message, ...more });

type Used = {
  /** What the model was told; a text where it was cut. */
  result: unknown;
  /** The last reply. */
  reply: ChatReply;
  /** What the person was asked to confirm. */
  asked: string | null;
};

/** Tools that were carried out through `POST /chat` in the test that runs. */
const carriedOut = new Set<string>();

/** What the account's assistant has changed and called, as the record has it, oldest first. */
async function recordedFor(key: string) {
  const { results } = await bindings.DB.prepare(
    "SELECT operation, outcome FROM activity WHERE actor = 'assistant' AND account_id = ? ORDER BY rowid",
  )
    .bind(await ownerOf(key))
    .all<{ operation: string; outcome: string }>();
  const isCall = ({ operation }: { operation: string }) => Object.hasOwn(tools, operation);
  return {
    changes: results.filter((row) => !isCall(row)),
    calls: results.filter(isCall).map(({ operation, outcome }) => [operation, outcome]),
  };
}

/**
 * Has the model call a tool in a message to `POST /chat`, and confirms it as the person if that is asked, who then says it
 * again. A destructive tool that does not ask, another one that does, one that acts before the word or twice for one, and
 * a call that is not on record fail the test.
 */
export async function useTool<Name extends ToolName>(
  key: string,
  name: Name,
  input: ToolInput<Name>,
  /** Where it depends on the arguments. */
  { asks }: { asks?: boolean } = {},
): Promise<Used> {
  const spec: { group: ToolGroup; destructive?: true } = tools[name];
  const model = scripted(open(spec.group), use(name, input), { text: "There it is." });
  const before = await recordedFor(key);
  const first = await say(key, `Use ${name}`);
  expect([first.status, first.body]).toMatchObject([200, {}]);
  const asked = first.body.pendingAction?.summary ?? null;
  expect([name, asked !== null]).toEqual([name, asks ?? spec.destructive === true]);
  const { conversationId, pendingAction } = first.body;
  if (pendingAction === null) {
    const ended = first.body.toolCalls.map(({ tool, ok }) => [tool, ok ? "done" : expect.any(String)]);
    const { changes, calls } = await recordedFor(key);
    expect(calls.slice(before.calls.length)).toEqual(ended);
    // What claims to read changes nothing.
    if (readsOnly(name)) expect([name, changes]).toEqual([name, before.changes]);
    return carried(first.body, { result: model.lastResult, asked });
  }
  const waiting = await recordedFor(key);
  // Nothing happens before the person's word.
  expect([name, waiting.changes]).toEqual([name, before.changes]);
  expect(waiting.calls.slice(before.calls.length)).toEqual([[name, "asked"]]);
  const { body } = await say(key, "yes", { conversationId });
  const result = model.confirmedResult;
  const done = await recordedFor(key);
  const ended = body.toolCalls.map(({ tool, ok }) => [tool, ok ? "done" : expect.any(String)]);
  expect(done.calls.slice(waiting.calls.length)).toEqual(ended);
  // The word counts once.
  scripted({ text: "It is done already." });
  const again = await say(key, "yes", { conversationId, confirm: pendingAction.id });
  expect([name, again.status, again.body.toolCalls]).toEqual([name, 200, []]);
  expect([name, await recordedFor(key)]).toEqual([name, done]);
  return carried(body, { result, asked });
}

function carried(reply: ChatReply, used: Omit<Used, "reply">): Used {
  for (const { tool, ok } of reply.toolCalls) if (ok) carriedOut.add(tool);
  return { ...used, reply };
}

type ToolOf<Group extends ToolGroup> = {
  [Name in ToolName]: (typeof tools)[Name]["group"] extends Group ? Name : never;
}[ToolName];
type Effect = [guarantee: string, test: () => Promise<void>];

/**
 * The tests of a group's tools: each must have its effect through `POST /chat` (`useTool`). A tool without a test does
 * not compile, and fails.
 */
export function effectsOf<Group extends ToolGroup>(
  group: Group,
  effects: Record<ToolOf<Group>, Effect>,
): void {
  withoutChatLimit();
  describe(`the tools of ${group}`, () => {
    it("have a test each", () => {
      const names = (Object.keys(tools) as ToolName[]).filter((name) => tools[name].group === group);
      expect(Object.keys(effects).toSorted()).toEqual(names.toSorted());
    });
    it.each(Object.entries<Effect>(effects).map(([name, [guarantee, test]]) => ({ name, guarantee, test })))(
      "$name: $guarantee",
      async ({ name, test }) => {
        carriedOut.clear();
        held.clear();
        await test();
        expect([...carriedOut]).toContain(name);
        expect([...held]).toContain(name);
      },
    );
  });
}

/** Answers the next question that the host is asked, and returns it. */
export async function answerNext(host: Agent, answer: Answer): Promise<Question> {
  const { requestId, question } = await host.next("ask");
  host.send({ type: "answer", requestId, answer, last: true });
  return question;
}
