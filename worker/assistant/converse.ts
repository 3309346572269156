import type { ToolGroup } from "../../protocol/api/tools.ts";
import type { Model, ModelMessage, ModelToolCall } from "../adapters/model.ts";
import type { Ctx } from "../ctx.ts";
import { logError } from "../log-error.ts";
import { readCommand } from "./command-mode.ts";
import {
  agreedTo,
  newPendingId,
  pendingForMs,
  summaryOf,
  type PendingAction,
  type PendingStep,
} from "./pending.ts";
import { isGroup, offered, openTools, systemPrompt } from "./prompt.ts";
import { runConfirmed, runTool, type ToolOutcome } from "./run-tool.ts";
import { untrusted } from "./untrusted.ts";

/** The state that a conversation keeps between messages. */
export type Memory = {
  /** The person's and the assistant's texts, oldest first. */
  history: { role: "user" | "assistant"; text: string }[];
  groups: ToolGroup[];
  pending: PendingAction | undefined;
};
export type Asked = { message: string; confirm?: string | undefined };

export type ChatEvent =
  | { type: "delta"; text: string }
  | { type: "tool"; tool: string; status: "running" | "done" | "refused" | "asks" };

export type Interaction = {
  message: string;
  /** Texts for the person's screen alone. Secrets among them are shown once and never stored. */
  shown: string[];
  toolCalls: { tool: string; ok: boolean }[];
  memory: Pick<Memory, "groups" | "pending">;
  /** false: the model or the service failed; the message is not charged. */
  isComplete: boolean;
};

const maxRounds = 8;
const maxToolCalls = 24;
const maxOpenGroups = 3;
/** Limit on earlier messages in a prompt, in characters; older ones are left out. */
const maxHistoryLength = 12_000;

/** Handles one message and everything that follows from it. The actor of `ctx` is the account's assistant. */
export async function converse(
  ctx: Ctx,
  model: Model | null,
  memory: Memory,
  asked: Asked,
  emit: (event: ChatEvent) => void,
): Promise<Interaction> {
  const turn = new Turn(ctx, emit, memory);
  const agreed = agreedTo(memory.pending, asked, ctx.now().getTime());
  // Any other message withdraws the pending action.
  const results = agreed ? await turn.confirmed(agreed) : null;
  if (!model) return turn.end(commandAnswer(results ?? (await turn.command(asked.message))), true);
  try {
    return turn.end(await turn.dialogue(model, memory, asked, results), true);
  } catch (error) {
    logError({ assistant: "model" }, error);
    const done = results?.map(({ tool, outcome }) => `${tool}: ${outcome.status}`).join(", ");
    return turn.end(
      `The model behind the assistant did not answer, so this message costs nothing.${done ? ` The actions that you confirmed were carried out before that: ${done}.` : " It made no changes other than those named here."} Try again in a moment.`,
      false,
    );
  }
}

type Ran = { tool: string; outcome: ToolOutcome };

class Turn {
  private readonly toolCalls: { tool: string; ok: boolean }[] = [];
  private readonly shown: string[] = [];
  private readonly steps: PendingStep[] = [];
  private readonly groups: ToolGroup[];
  private readonly ctx: Ctx;
  private readonly emit: (event: ChatEvent) => void;

  constructor(ctx: Ctx, emit: (event: ChatEvent) => void, { groups }: Memory) {
    this.ctx = ctx;
    this.emit = emit;
    this.groups = [...groups];
  }

  /** Runs the confirmed steps in order; stops at the first refusal. */
  async confirmed({ steps }: PendingAction): Promise<Ran[]> {
    const ran: Ran[] = [];
    for (const step of steps) {
      if (ran.some(({ outcome }) => outcome.status !== "done")) break;
      ran.push({ tool: step.tool, outcome: await this.run(step.tool, () => runConfirmed(this.ctx, step)) });
    }
    return ran;
  }

  async command(message: string): Promise<Ran[] | string> {
    const command = readCommand(message);
    if ("answer" in command) return command.answer;
    const { tool, input } = command;
    return [{ tool, outcome: await this.run(tool, () => runTool(this.ctx, tool, input)) }];
  }

  /** Rounds of the model and its tools until it answers without a tool call. @throws Error if the model fails */
  async dialogue(model: Model, memory: Memory, asked: Asked, results: Ran[] | null): Promise<string> {
    const messages: ModelMessage[] = [
      { role: "system", content: systemPrompt },
      ...recent(memory.history),
      { role: "user", content: asked.message },
    ];
    if (results)
      messages.push({
        role: "system",
        content: `The person confirmed. Results: ${untrusted(results.map(({ tool, outcome }) => ({ tool, answered: forModel(outcome) })))}`,
      });
    let text = "";
    for (let round = 0; round < maxRounds; round++) {
      const turn = await model.respond(messages, offered(this.groups), (delta) =>
        this.emit({ type: "delta", text: delta }),
      );
      text += turn.text;
      if (turn.toolCalls.length === 0) return text;
      messages.push({ role: "assistant", content: turn.text, toolCalls: turn.toolCalls });
      for (const call of turn.toolCalls)
        messages.push({ role: "tool", toolCallId: call.id, content: await this.answer(call) });
    }
    return `${text}\n\nThat took more steps than one message allows. Say how to continue.`.trim();
  }

  end(message: string, isComplete: boolean): Interaction {
    const pending: PendingAction | undefined =
      this.steps.length === 0
        ? undefined
        : {
            id: newPendingId(this.ctx),
            steps: this.steps,
            expiresAtMs: this.ctx.now().getTime() + pendingForMs,
          };
    // Code states what would happen, whatever the model claims.
    const asks = pending ? `\n\n${summaryOf(pending)}\nConfirm with “yes” within ten minutes.` : "";
    return {
      message: `${message}${asks}`.trim(),
      shown: this.shown,
      toolCalls: this.toolCalls,
      memory: { groups: this.groups.slice(-maxOpenGroups), pending },
      isComplete,
    };
  }

  private async answer(call: ModelToolCall): Promise<string> {
    let input: unknown;
    try {
      input = call.arguments.trim() === "" ? {} : JSON.parse(call.arguments);
    } catch {
      return JSON.stringify({ error: "The arguments are not valid JSON." });
    }
    if (call.name === openTools) return this.open(input);
    if (this.toolCalls.length >= maxToolCalls)
      return JSON.stringify({ error: "Too many calls for one message: answer with the results so far." });
    return untrusted(forModel(await this.run(call.name, () => runTool(this.ctx, call.name, input))));
  }

  private open(input: unknown): string {
    const group = (input as { group?: unknown } | null)?.group;
    if (!isGroup(group)) return JSON.stringify({ error: "There is no such group." });
    if (!this.groups.includes(group)) this.groups.push(group);
    return JSON.stringify({ opened: group });
  }

  private async run(tool: string, work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
    this.emit({ type: "tool", tool, status: "running" });
    const outcome = await work();
    this.emit({ type: "tool", tool, status: outcome.status });
    if (outcome.status === "asks") this.steps.push(outcome.step);
    else this.toolCalls.push({ tool, ok: outcome.status === "done" });
    if (outcome.status === "done" && outcome.shown !== null) this.shown.push(outcome.shown);
    return outcome;
  }
}

/** An outcome as shown to the model, without what is for the person's screen alone. */
function forModel(outcome: ToolOutcome): unknown {
  if (outcome.status === "done") return outcome.result;
  if (outcome.status === "refused") return { error: outcome.error };
  return { not_done_yet: true, the_person_is_asked: outcome.step.summary };
}

/** The newest texts that fit the budget. */
function recent(history: Memory["history"]): ModelMessage[] {
  const messages: ModelMessage[] = [];
  let length = 0;
  for (const { role, text } of history.toReversed()) {
    length += text.length;
    if (length > maxHistoryLength) break;
    messages.unshift({ role, content: text });
  }
  return messages;
}

const commandAnswer = (ran: Ran[] | string): string =>
  typeof ran === "string"
    ? ran
    : ran.map(({ tool, outcome }) => `${tool}: ${shownOutcome(outcome)}`).join("\n\n");

function shownOutcome(outcome: ToolOutcome): string {
  if (outcome.status === "refused") return outcome.error;
  if (outcome.status === "asks") return "this needs your confirmation.";
  const text = JSON.stringify(outcome.result, null, 2) ?? "done";
  return text.length > 8000 ? `${text.slice(0, 8000)}…` : text;
}
