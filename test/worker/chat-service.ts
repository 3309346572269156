import { vi } from "vitest";
import type { ChatReply } from "../../protocol/api/chat.ts";
import { tools, type ToolName } from "../../protocol/api/tools.ts";
import { ScriptedModel, type Said } from "../support/scripted-model.ts";
import { account, api, bindings, operator } from "./service.ts";

/** What the web answers to the Worker's requests: the first host that this is the name of. */
export type Web = Record<string, (request: Request) => Response | Promise<Response>>;

/** The web outside of the Worker; restored by `vi.restoreAllMocks`. Every other host cannot be reached. */
export const visited = (web: Web) =>
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const answer = web[new URL(request.url).hostname];
    if (!answer) throw new TypeError(`${request.url} cannot be reached`);
    return answer(request);
  });

/** A model that follows this script; restored by `vi.restoreAllMocks`. */
export function scripted(turns: Said[], web: Web = {}): ScriptedModel {
  const model = new ScriptedModel(turns);
  visited({ ...web, "model.test": (request) => model.answer(request) });
  return model;
}

export const accountIdOf = async (key: string) =>
  (await bindings.DB.prepare("SELECT account_id AS id FROM api_keys WHERE start = ?")
    .bind(key.slice(0, 10))
    .first<{ id: `acc_${string}` }>())!.id;

/** A key of a new account with credits. */
export async function funded(amount = 20): Promise<string> {
  const key = await account();
  await api(await operator(), "POST", "/credits/grants", { accountId: await accountIdOf(key), amount });
  return key;
}

export type Used = { reply: ChatReply; result: unknown };

/**
 * Has the model call one tool in an answer to a person's message, and the person confirm it where it asks.
 * @returns the reply, and the tool's result as the model was given it
 */
export async function useTool<Name extends ToolName>(
  key: string,
  name: Name,
  args: object,
  { confirmed = true, web = {} }: { confirmed?: boolean; web?: Web } = {},
): Promise<Used> {
  const model = scripted(
    [
      { calls: [{ name: "open_tools", args: { group: tools[name].group } }] },
      { calls: [{ name, args }] },
      { text: "Here you are." },
    ],
    web,
  );
  try {
    const asked = await say(key, { message: "Please." });
    const confirm = asked.pendingAction?.id;
    if (confirm === undefined || !confirmed) return { reply: asked, result: resultIn(model) };
    const reply = await say(key, { message: "yes", conversationId: asked.conversationId, confirm });
    return { reply, result: confirmedIn(model) };
  } finally {
    vi.restoreAllMocks();
  }
}

async function say(key: string, body: object): Promise<ChatReply> {
  const answer = await api<ChatReply>(key, "POST", "/chat", body);
  if (answer.status !== 200)
    throw new Error(`POST /chat answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

const dataIn = (text: string): unknown => {
  const { untrusted_data: data } = JSON.parse(text) as { untrusted_data: string };
  return JSON.parse(data) as unknown;
};
const resultIn = (model: ScriptedModel) =>
  dataIn(model.asked.at(-1)?.messages.findLast(({ role }) => role === "tool")?.content ?? "");
const confirmedIn = (model: ScriptedModel) => {
  const told = model.asked.at(-1)?.messages.at(-1)?.content ?? "";
  const results = dataIn(told.slice(told.indexOf("{"))) as { answered: unknown }[];
  return results[0]?.answered;
};
