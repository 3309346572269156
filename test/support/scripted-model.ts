/** The model's response in one turn: text, tool calls, or a deliberate error. */
export type Said = {
  text?: string;
  calls?: { name: string; args: unknown }[];
  /** Choices of chunks as a server sends them, instead of the above. */
  choices?: object[];
  /** The stream ends in the middle. */
  isCut?: boolean;
  /** Nothing comes after its beginning, until the client gives up. */
  stalls?: true;
  /** It is said once this has come about. */
  after?: Promise<unknown>;
  status?: number;
  /** Of the error that has this status. */
  error?: { code?: string | number; type?: string; status?: string; details?: object[] };
  /** The error comes in a list, as Google's servers send it. */
  isListed?: boolean;
  /** Default: 90 of the prompt and 10 of the answer. */
  tokens?: { prompt: number; completion: number };
  /** What it used is told in a chunk that has no choices, not even an empty list. */
  usageAlone?: true;
  /** What it used is told in name only. */
  isUncounted?: true;
};

type Request = {
  messages: { role: string; content: string; tool_call_id?: string; tool_calls?: object[] }[];
  tools?: { function: { name: string } }[];
  max_completion_tokens?: number;
  reasoning_effort?: string;
};

/**
 * A server of OpenAI's Chat Completions (streaming) that follows a script, one turn per request; after its end it
 * repeats the last turn. It records its requests.
 */
export class ScriptedModel {
  readonly asked: Request[] = [];
  /** The answer to requests for a summary, which are no turn of the script. */
  summary: Said = { text: "A summary." };
  readonly summarized: Request[] = [];
  private readonly turns: Said[];

  constructor(turns: Said[]) {
    this.turns = turns;
  }

  async answer(request: globalThis.Request): Promise<Response> {
    const asked = (await request.json()) as Request;
    if (asked.messages[0]?.content.startsWith("Summarize")) {
      this.summarized.push(asked);
      return this.say(this.summary);
    }
    const { signal } = request;
    this.asked.push(asked);
    const refusal = refusalOf(asked.messages);
    if (refusal) return Response.json({ error: { message: refusal } }, { status: 400 });
    const said = this.turns[Math.min(this.asked.length, this.turns.length) - 1] ?? { text: "Hello." };
    await said.after;
    return said.stalls ? stalled(signal) : this.say(said);
  }

  private say(said: Said): Response {
    if (said.status) {
      const body = { error: { message: "scripted", ...said.error } };
      return Response.json(said.isListed ? [body] : body, { status: said.status });
    }
    return new Response(streamOf(said), { headers: { "Content-Type": "text/event-stream" } });
  }

  /** What the model was told of its last tool call; a text where it was cut. */
  get lastResult(): unknown {
    return resultIn(this.asked.at(-1)?.messages.at(-1)?.content ?? "null");
  }

  /** What the model was told of the first action that the person confirmed. */
  get confirmedResult(): unknown {
    const told = this.asked.at(-1)?.messages.findLast(({ role }) => role === "user")?.content ?? "";
    const [ran] = resultIn(told.slice(told.indexOf('{"untrusted_data"'))) as { answered: unknown }[];
    return ran?.answered;
  }

  /** Everything that the model was ever shown. */
  get prompts(): string {
    return JSON.stringify([this.asked, this.summarized]);
  }
}

/** As strict templates refuse on vLLM and llama.cpp: Qwen's the one, Mistral's and Gemma's the other. */
function refusalOf(messages: Request["messages"]): string | null {
  if (messages.some(({ role }, index) => role === "system" && index > 0))
    return "System message must be at the beginning.";
  const said = messages.filter(({ role, tool_calls: calls }) => /user|assistant/.test(role) && !calls);
  return said.some(({ role }, index) => (role === "user") !== (index % 2 === 0))
    ? "Conversation roles must alternate user/assistant/user/assistant/..."
    : null;
}

function resultIn(content: string): unknown {
  const { untrusted_data: data } = JSON.parse(content) as { untrusted_data: string };
  try {
    return JSON.parse(data) as unknown;
  } catch {
    return data;
  }
}

const usageOf = ({ tokens: { prompt, completion } = { prompt: 90, completion: 10 } }: Said) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
});

/** In chunks that end in the middle of lines, as networks deliver them. */
function streamOf(said: Said): ReadableStream<Uint8Array> {
  const chunks = said.choices ?? [
    ...(said.text ?? "").split(/(?<= )/).map((content) => ({ delta: { content } })),
    ...(said.calls ?? []).flatMap(({ name, args }, index) => {
      const text = typeof args === "string" ? args : JSON.stringify(args);
      const half = Math.ceil(text.length / 2);
      return [
        { delta: { tool_calls: [{ index, id: `call_${index}`, function: { name, arguments: "" } }] } },
        { delta: { tool_calls: [{ index, function: { arguments: text.slice(0, half) } }] } },
        { delta: { tool_calls: [{ index, function: { arguments: text.slice(half) } }] } },
      ];
    }),
    ...(said.isCut ? [] : [{ delta: {}, finish_reason: said.calls ? "tool_calls" : "stop" }]),
  ];
  const events = chunks.map(
    (choice) => `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`,
  );
  if (!said.isCut)
    events.push(
      `data: ${JSON.stringify({ ...(!said.usageAlone && { choices: [] }), usage: said.isUncounted ? {} : usageOf(said) })}\n\n`,
      "data: [DONE]\n\n",
    );
  const bytes = new TextEncoder().encode(events.join(""));
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, (at += 17)));
    },
  });
}

function stalled(signal: AbortSignal): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(": wait\n\n"));
      signal.addEventListener("abort", () => controller.error(signal.reason));
    },
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}
