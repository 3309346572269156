import type OpenAI from "openai";
import type { Config } from "../config.ts";
import { requestTokens, type TokenUse } from "../domain/chat-price.ts";

export type ModelToolCall = {
  id: string;
  name: string;
  arguments: string;
  /** Gemini refuses the results of a call without its signature, which is in here. */
  extra?: unknown;
};
export type ModelMessage =
  | { role: "system" | "user"; content: string }
  | { role: "assistant"; content: string; toolCalls?: ModelToolCall[]; reasoning?: string }
  | { role: "tool"; content: string; toolCallId: string };
export type ModelTool = { name: string; description: string; parameters: Record<string, unknown> };
export type ModelTurn = {
  text: string;
  /** The model's thoughts, which nobody is shown; DeepSeek and Kimi refuse the results of calls without them. */
  reasoning: string;
  toolCalls: ModelToolCall[];
  /** It was longer than an answer may be, so that its last call is not whole. */
  isTooLong: boolean;
  /** null: the server does not report it. */
  used: TokenUse | null;
};

/** The model's server does not take the request, and would not take it a moment later. */
export class ModelRefused extends Error {
  readonly status: number;
  constructor(cause: Error, status: number) {
    super(`The model's server refused the request: ${cause.message}`, { cause });
    this.status = status;
  }
}

/** A language model, whoever serves it. */
export type Model = {
  /** @param onText is given the answer as it comes. @throws ModelRefused, or Error where it cannot be reached, stalls or is cut off */
  respond(messages: ModelMessage[], tools: ModelTool[], onText: (text: string) => void): Promise<ModelTurn>;
};

/** Longer answers no model that is well. */
const turnTimeoutMs = 60_000;
const maxTextLength = 32_000;
/** Timeout, conflict and too many requests, which another try may be without. */
const passing = [408, 409, 429];
/** In the code or type of a 429 that no wait ends: `insufficient_quota`, `exceeded_current_quota_error`, `billing_hard_limit_reached`. */
const usedUp = /quota|balance|billing/i;
/** In the details of a 429 of Google's: `GenerateRequestsPerDayPerProjectPerModel-FreeTier`. */
const usedUpForToday = /PerDay/;
/** Of ids and of names of tools; ours are shorter. */
const maxNameLength = 100;

/** The model behind any server that speaks OpenAI's Chat Completions; null: none is configured. */
export function modelOf(config: Config): Model | null {
  const { MODEL_URL, MODEL_NAME, MODEL_KEY, MODEL_REASONING_EFFORT } = config;
  if (MODEL_URL === undefined || MODEL_NAME === undefined) return null;
  return {
    async respond(messages, tools, onText) {
      // Loaded on first use: nothing else needs it.
      const { default: Client, APIError } = await import("openai");
      const client = new Client({
        baseURL: MODEL_URL,
        apiKey: MODEL_KEY ?? "none",
        maxRetries: 1,
        fetch: fetchUnlisted,
      });
      const signal = AbortSignal.timeout(turnTimeoutMs);
      const answer = client.chat.completions.create(
        {
          model: MODEL_NAME,
          messages: messages.map(onTheWire),
          stream: true,
          max_completion_tokens: requestTokens.completionTokens,
          ...(MODEL_REASONING_EFFORT && { reasoning_effort: MODEL_REASONING_EFFORT }),
          stream_options: { include_usage: true },
          ...(tools.length > 0 && {
            tools: tools.map((tool) => ({ type: "function" as const, function: tool })),
          }),
        },
        { signal },
      );
      const stream = await answer.catch((error: unknown) => {
        if (!(error instanceof APIError)) throw error;
        const { status, code, type, error: body } = error as Refused;
        const isUsedUp =
          status === 429 &&
          (usedUp.test([code, type].join(" ")) || usedUpForToday.test(JSON.stringify(body?.details)));
        if (status === undefined || status >= 500 || (passing.includes(status) && !isUsedUp)) throw error;
        throw new ModelRefused(error, status);
      });
      return collect(stream, onText);
    },
  };
}

type Refused = { status?: number; code?: unknown; type?: unknown; error?: { details?: unknown } };

/** Google's servers put an error into a list, of which the client would read nothing. */
async function fetchUnlisted(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init);
  if (response.ok) return response;
  const body = (await response.text()).replace(/^\s*\[([^]*)\]\s*$/, "$1");
  return new Response(body, response);
}

type Chunk = OpenAI.ChatCompletionChunk;
type Choice = Chunk["choices"][number];
/** As servers send it: DeepInfra and Fireworks tell what was used without choices, and Mistral's models write in parts. */
type Received = Pick<Chunk, "usage"> & {
  choices?: (Pick<Choice, "finish_reason"> & {
    delta?: Omit<Choice["delta"], "content" | "tool_calls"> & {
      content?: string | Part[] | null;
      reasoning_content?: string | null;
      tool_calls?: (CallPart & { extra_content?: unknown })[];
    };
  })[];
};
type CallPart = NonNullable<Choice["delta"]["tool_calls"]>[number];
type Part = { type?: string; text?: string };

/** Without the parts that are the model's thoughts. */
const textIn = (content: string | Part[] | null | undefined): string =>
  typeof content === "string"
    ? content
    : (content ?? []).map(({ type, text }) => (type === "text" ? text : "")).join("");

async function collect(stream: AsyncIterable<Received>, onText: (text: string) => void): Promise<ModelTurn> {
  const turn: ModelTurn = { text: "", reasoning: "", toolCalls: [], isTooLong: false, used: null };
  const add = (text: string) => {
    turn.text += text;
    if (turn.text.length > maxTextLength) throw new Error("The model's answer is endless");
    onText(text);
  };
  let ended: string | null = null;
  const byIndex = new Map<number | undefined, ModelToolCall>();
  for await (const { choices, usage } of stream) {
    if (usage && isCounted(usage))
      turn.used = { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens };
    const [choice] = choices ?? [];
    ended = choice?.finish_reason ?? ended;
    const { content, refusal, reasoning_content: reasoning, tool_calls: calls } = choice?.delta ?? {};
    const text = textIn(content);
    if (text) add(text);
    if (refusal) add(refusal);
    turn.reasoning += reasoning ?? "";
    if (turn.reasoning.length > maxTextLength) throw new Error("The model's thoughts are endless");
    for (const { index, id: given, function: called, extra_content: extra } of calls ?? []) {
      const id = (given ?? "").slice(0, maxNameLength);
      let known = byIndex.get(index);
      // Some servers send no index, others the same one for several calls, or another id with each part of one.
      const hasOtherId = typeof index !== "number" || (id !== "" && id !== (known?.id || id));
      const isOther = hasOtherId && called?.name;
      if (!known || isOther) {
        known = { id: "", name: "", arguments: "" };
        byIndex.set(index, known);
        turn.toolCalls.push(known);
      }
      known.id ||= id;
      known.extra ??= extra;
      // Whole with each part of the call, as MiniMax and Kimi are served, or once.
      if (called?.name !== known.name)
        known.name = (known.name + (called?.name ?? "")).slice(0, maxNameLength);
      known.arguments += called?.arguments ?? "";
      if (known.arguments.length > maxTextLength) throw new Error("The model's arguments are endless");
    }
  }
  if (ended === null) throw new Error("The model's answer was cut off");
  turn.isTooLong = ended === "length";
  for (const [at, call] of turn.toolCalls.entries()) call.id ||= `call_${at}`;
  if (turn.toolCalls.length > 0 || turn.text.trim() === "") return turn;
  if (ended === "length" || ended === "content_filter") add("\n\n(The answer was cut off.)");
  return turn;
}

/** Some servers report zeros, or nothing, instead of leaving it out; a prompt always has tokens. */
const isCounted = ({ prompt_tokens: prompt, completion_tokens: completion }: OpenAI.CompletionUsage) =>
  Number.isSafeInteger(prompt) && prompt > 0 && Number.isSafeInteger(completion) && completion >= 0;

function onTheWire(message: ModelMessage): OpenAI.ChatCompletionMessageParam {
  if (message.role === "tool")
    return { role: "tool", content: message.content, tool_call_id: message.toolCallId };
  if (message.role !== "assistant") return message;
  return {
    role: "assistant",
    content: message.content,
    ...(message.reasoning && { reasoning_content: message.reasoning }),
    ...(message.toolCalls?.length && {
      tool_calls: message.toolCalls.map(({ id, extra, ...called }) => ({
        id,
        type: "function" as const,
        function: called,
        ...(extra !== undefined && { extra_content: extra }),
      })),
    }),
  };
}
