import { readsOnly, type ToolGroup } from "../../protocol/api/tools.ts";
import { jsonIn } from "../../protocol/json.ts";
import { isNo, isYes } from "../../protocol/yes.ts";
import {
  ModelRefused,
  type Model,
  type ModelMessage,
  type ModelTool,
  type ModelToolCall,
  type ModelTurn,
} from "../adapters/model.ts";
import type { Ctx } from "../ctx.ts";
import { affords, plus, requestTokens, type ChatPrices, type TokenUse } from "../domain/chat-price.ts";
import { logError } from "../log-error.ts";
import { readCommand } from "./command-mode.ts";
import { siteMeant } from "./resources.ts";
import {
  agreedTo,
  newPendingId,
  pendingForMs,
  summaryOf,
  type PendingAction,
  type PendingStep,
} from "./pending.ts";
import { fittingGroups, isGroup, offered, openTools, ownTokens } from "./prompt.ts";
import { budget, isTooLong, newest, promptOf, summaryPromptOf, type Said } from "./prompt-budget.ts";
import {
  changedSince,
  inputOf,
  isTool,
  refuseCall,
  runTool,
  runUnchanged,
  specOf,
  type ToolOutcome,
} from "./run-tool.ts";
import { cutNote, cutTo, tokenEstimate, withoutMiddle } from "./token-estimate.ts";
import { untrusted } from "./untrusted.ts";

/** The state that a conversation keeps between messages. */
export type Memory = {
  /** What was said before `history`, in a model's words. */
  summary: string | null;
  /** The person's and the assistant's texts that no summary has, oldest first. */
  history: Said[];
  groups: ToolGroup[];
  pending: PendingAction | undefined;
};
type Asked = {
  message: string;
  confirm?: string | undefined;
  /** Aborted: nobody wants the answer any more, so that no further tool is run. */
  signal?: AbortSignal;
};
/** What a message may cost. */
type Purse = { prices: ChatPrices; credits: number };

export type ChatEvent =
  | { type: "delta"; text: string }
  | { type: "tool"; tool: string; status: "running" | "done" | "refused" | "asks" };

type Interaction = {
  message: string;
  /** Texts for the person's screen alone. Secrets among them are shown once and never stored. */
  shown: string[];
  toolCalls: { tool: string; ok: boolean }[];
  memory: Pick<Memory, "groups" | "pending" | "summary">;
  /** How many texts of the history, oldest first, are in the summary now. */
  summarized: number;
  used: TokenUse;
  /** false: the model or the service failed, or nothing waited for the person's word; the message is not charged. */
  isComplete: boolean;
};

const maxRounds = 8;
const maxToolCalls = 24;
const tooManyCalls = JSON.stringify({
  error: "Too many calls for one message: answer with the results so far.",
});
/** Of a result that is shown to the person, in characters. */
const maxShownLength = 8000;
/** Longer histories are summarized but for their newest part. */
const history = { maxTokens: 1500, keptTokens: 600 };

/** Handles one message and everything that follows from it. The actor of `ctx` is the account's assistant. */
export async function converse(
  ctx: Ctx,
  model: Model | null,
  memory: Memory,
  asked: Asked,
  purse: Purse,
  emit: (event: ChatEvent) => void,
): Promise<Interaction> {
  const turn = new Turn(ctx, emit, memory, purse, asked.signal);
  const nowMs = ctx.now().getTime();
  const agreed = agreedTo(memory.pending, asked, nowMs);
  // A model may have asked what a plain yes answers.
  const isWord = asked.confirm !== undefined || (!model && isYes(asked.message));
  if (!agreed && isWord) return turn.confirmedNothing(memory.pending, nowMs);
  // Any other message withdraws the pending action.
  if (!model && !agreed && isNo(asked.message))
    return turn.end("Nothing was done, and nothing waits for your confirmation any more.", false);
  const results = agreed ? await turn.confirmed(agreed) : null;
  if (!model) return turn.end(commandAnswer(results ?? (await turn.command(asked.message))), true);
  try {
    return turn.end(await turn.dialogue(model, memory, asked, results), true);
  } catch (error) {
    logError({ assistant: "model" }, error);
    const done = turn.changes();
    const { what, advice } = failureOf(error);
    return turn.end(
      `The model behind the assistant ${what}, so this message costs nothing. ${done.length > 0 ? `What was done before stays: ${done.join(", ")}.` : "Nothing was changed."} ${advice}`,
      false,
    );
  }
}

class OnlyThought extends Error {}

/** Statuses that may be about this request alone: its words or its length. */
const aboutRequest = [400, 413, 422];

function failureOf(error: unknown): { what: string; advice: string } {
  if (error instanceof OnlyThought)
    return {
      what: `used up the ${requestTokens.completionTokens} tokens of an answer by thinking`,
      advice:
        "Ask for less at once. The operator of this service can let it think less (MODEL_REASONING_EFFORT).",
    };
  if (!(error instanceof ModelRefused)) return { what: "did not answer", advice: "Try again in a moment." };
  const { status } = error;
  const operator = "only the operator of this service can help; the reason is in its log.";
  return {
    what: `refused the request (HTTP ${status})`,
    advice: aboutRequest.includes(status)
      ? `Say it in other words, or in a new conversation. If that is refused as well, ${operator}`
      : `Trying again does not help: ${operator}`,
  };
}

type Ran = { tool: string; outcome: ToolOutcome };
const notBegun: ToolOutcome = { status: "refused", error: "not begun.", code: "conflict" };
const isDone = ({ status }: ToolOutcome): boolean => status === "done";

/** Why something is refused may quote what was read, such as a row, but not of what the account has not. */
const hasAnswered = (outcome: ToolOutcome): boolean =>
  outcome.status !== "refused" || (outcome.code !== "not_found" && outcome.code !== "forbidden");

class Turn {
  private readonly toolCalls: { tool: string; ok: boolean }[] = [];
  private readonly shown: string[] = [];
  private readonly steps: PendingStep[] = [];
  /** What this message has made, by the calls that would make another one. */
  private readonly made = new Map<string, ToolOutcome>();
  /** Of this message: the model may do as strangers say from now on. */
  private hasReadStrangers = false;
  private groups: ToolGroup[];
  private summary: string | null;
  private summarized = 0;
  private fate = "";
  /** What the model has written of the message, and the blanks after it. */
  private written = "";
  private blanks = "";
  private used: TokenUse = { promptTokens: 0, completionTokens: 0 };
  private readonly ctx: Ctx;
  private readonly emit: (event: ChatEvent) => void;
  private readonly purse: Purse;
  private readonly signal: AbortSignal | undefined;

  constructor(
    ctx: Ctx,
    emit: (event: ChatEvent) => void,
    { groups, summary }: Memory,
    purse: Purse,
    signal: AbortSignal | undefined,
  ) {
    this.signal = signal;
    this.ctx = ctx;
    this.emit = emit;
    this.purse = purse;
    this.groups = fittingGroups(groups, budget.tools);
    this.summary = summary;
  }

  /** Runs the confirmed steps in order: none if one is about what has changed since, and none after the first refusal. */
  async confirmed({ steps }: PendingAction): Promise<Ran[]> {
    // All of them before any is run: what one step changes is no reason to refuse the next.
    // One after the other: a host answers only a few questions about a database at once.
    const refusals: (ToolOutcome | null)[] = [];
    for (const step of steps) refusals.push(await changedSince(this.ctx, step));
    let goesOn = refusals.every((refusal) => refusal === null);
    const ran: Ran[] = [];
    for (const [index, step] of steps.entries()) {
      const refusal = refusals[index];
      let outcome: ToolOutcome = notBegun;
      if (refusal) outcome = await this.run(step.tool, () => Promise.resolve(refusal));
      else if (goesOn) outcome = await this.run(step.tool, () => runUnchanged(this.ctx, step));
      goesOn &&= isDone(outcome) && !this.isOver();
      ran.push({ tool: step.tool, outcome });
    }
    this.fate = fateOf(ran);
    return ran;
  }

  async command(message: string): Promise<Ran[] | string> {
    const command = readCommand(message);
    if ("answer" in command) return command.answer;
    const { tool } = command;
    const input = "input" in command ? command.input : { site: await siteMeant(this.ctx, message) };
    if (input["site"] === null) return `Name one of your sites, such as: ${tool} site=my-site`;
    return [{ tool, outcome: await this.run(tool, () => runTool(this.ctx, tool, input)) }];
  }

  /** Rounds of the model and its tools until it answers without a tool call. @throws Error if the model fails */
  async dialogue(model: Model, memory: Memory, asked: Asked, results: Ran[] | null): Promise<string> {
    const left = await this.summarize(model, memory.history);
    const confirmed =
      results && untrusted(results.map(({ tool, outcome }) => ({ tool, answered: forModel(outcome) })));
    if (isTooLong(asked.message))
      this.fate +=
        "\n\nYour message is longer than the model can be given: it has not read the middle. Send less at a time.";
    const exchange: ModelMessage[] = [];
    for (let round = 0; round < maxRounds && !this.isOver(); round++) {
      if (round > 0 && !this.affordsMore())
        return `${this.written}\n\nYour credits pay no further step. Buy more, or ask for less at once.`.trim();
      const turn = await this.ask(
        model,
        promptOf({
          now: this.ctx.now(),
          groups: this.groups,
          summary: this.summary,
          history: left,
          message: asked.message,
          confirmed,
          exchange,
        }),
        offered(this.groups),
        (delta) => this.write(delta),
      );
      if (turn.toolCalls.length === 0) {
        if (this.written === "" && this.steps.length === 0)
          throw turn.isTooLong
            ? new OnlyThought("The model's thoughts took all the tokens of an answer")
            : new Error("The model's answer is empty");
        return this.written;
      }
      this.blanks = "\n\n";
      const room = maxToolCalls - exchange.filter(({ role }) => role === "tool").length;
      const { text, reasoning } = turn;
      // The results of more would not fit into a prompt.
      const toolCalls = turn.toolCalls.slice(0, Math.max(1, room));
      exchange.push({ role: "assistant", content: text, reasoning, toolCalls });
      for (const call of toolCalls) {
        if (this.isOver()) return this.written;
        const content = room > 0 ? await this.answer(call, turn.isTooLong) : tooManyCalls;
        exchange.push({ role: "tool", toolCallId: call.id, content });
      }
    }
    return `${this.written}\n\nThat took more steps than one message allows. Say how to continue.`.trim();
  }

  /** Adds to the message what the model writes: the blanks before it only once it goes on. */
  private write(text: string): void {
    const all = this.blanks + text;
    const until = all.trimEnd();
    this.blanks = all.slice(until.length);
    const more = this.written === "" ? until.trimStart() : until;
    if (more === "") return;
    this.written += more;
    this.emit({ type: "delta", text: more });
  }

  /** Puts the older part of a long history into the summary. @returns the part that remains */
  private async summarize(model: Model, said: Said[]): Promise<Said[]> {
    if (newest(said, history.maxTokens).length === said.length) return said;
    const kept = newest(said, history.keptTokens).length;
    const older = said.slice(0, said.length - kept);
    try {
      const { text } = await this.ask(model, summaryPromptOf(this.summary, older), [], () => undefined);
      if (text.trim() === "") return said;
      this.summary = cutTo(text.trim(), budget.summary);
      this.summarized = older.length;
      return said.slice(older.length);
    } catch (error) {
      // Without it the oldest texts are left out of this prompt, and it is tried again with the next message.
      logError({ assistant: "summary" }, error);
      return said;
    }
  }

  private async ask(
    model: Model,
    messages: ModelMessage[],
    tools: ModelTool[],
    onText: (text: string) => void,
  ): Promise<ModelTurn> {
    const turn = await model.respond(messages, tools, onText);
    this.used = plus(this.used, turn.used ?? estimatedUse(messages, tools, turn));
    return turn;
  }

  private isOver(): boolean {
    return this.signal?.aborted === true;
  }

  private affordsMore(): boolean {
    return affords(this.purse.prices, this.purse.credits, this.used);
  }

  /** The tools that have changed something, or may have. */
  changes(): string[] {
    return this.toolCalls.flatMap(({ tool, ok }) => (ok && !(isTool(tool) && readsOnly(tool)) ? [tool] : []));
  }

  /** A word to what does not wait; what does goes on to. */
  confirmedNothing(pending: PendingAction | undefined, nowMs: number): Interaction {
    const waits = pending && pending.expiresAtMs > nowMs ? pending : undefined;
    const message = waits
      ? "That is not what waits for your confirmation. This is:"
      : "Nothing is waiting for your confirmation: it was answered, withdrawn, or is older than ten minutes.";
    return this.end(message, false, waits);
  }

  end(message: string, isComplete: boolean, waits?: PendingAction): Interaction {
    const steps = this.steps.filter((step, at) => this.steps.findIndex((one) => isSame(one, step)) === at);
    const pending: PendingAction | undefined =
      steps.length === 0
        ? waits
        : {
            id: newPendingId(this.ctx),
            steps,
            expiresAtMs: this.ctx.now().getTime() + pendingForMs,
          };
    // Code states what was done and what would happen, whatever the model claims.
    const asks = pending
      ? `\n\n${summaryOf(pending)}\nConfirm with “yes” within ten minutes of the question.`
      : "";
    return {
      message: `${message}${this.fate}${asks}`.trim(),
      shown: this.shown,
      toolCalls: this.toolCalls,
      memory: { groups: this.groups, pending, summary: this.summary },
      summarized: this.summarized,
      used: this.used,
      isComplete,
    };
  }

  private async answer({ name, arguments: given }: ModelToolCall, isTooLong: boolean): Promise<string> {
    const input = given.trim() === "" ? {} : jsonIn(given);
    if (name === openTools) return this.open(input);
    const made =
      isTool(name) && specOf(name).makesAnother ? JSON.stringify([name, inputOf(name, input).data]) : null;
    const known = made === null ? undefined : this.made.get(made);
    if (known) return untrusted({ done_already_in_this_message: forModel(known) });
    const outcome = await this.run(name, () =>
      input === undefined
        ? refuseCall(
            this.ctx,
            name,
            "invalid_request",
            isTooLong
              ? `Your answer was cut off within these arguments, at ${requestTokens.completionTokens} tokens: do less with one call, or tell the person that it is too long for you.`
              : "The arguments are not valid JSON.",
          )
        : runTool(this.ctx, name, input, { allAsk: this.hasReadStrangers }),
    );
    if (made !== null && isDone(outcome)) this.made.set(made, outcome);
    return untrusted(forModel(outcome));
  }

  private open(input: unknown): string {
    const group = (input as { group?: unknown } | null)?.group;
    if (!isGroup(group)) return JSON.stringify({ error: "There is no such group." });
    this.groups = fittingGroups([...this.groups.filter((one) => one !== group), group], budget.tools);
    return JSON.stringify({ opened: group });
  }

  private async run(tool: string, work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
    this.emit({ type: "tool", tool, status: "running" });
    const outcome = await work();
    this.hasReadStrangers ||= isTool(tool) && specOf(tool).quotes === true && hasAnswered(outcome);
    this.emit({ type: "tool", tool, status: outcome.status });
    if (outcome.status === "asks") this.steps.push(outcome.step);
    else this.toolCalls.push({ tool, ok: outcome.status === "done" });
    if (outcome.status === "done" && outcome.shown !== null) this.shown.push(outcome.shown);
    return outcome;
  }
}

/** A model that is told to wait may call the tool again. */
const isSame = (one: PendingStep, other: PendingStep): boolean =>
  one.tool === other.tool && JSON.stringify(one.input) === JSON.stringify(other.input);

/** What became of the steps of a plan that was not done as a whole. */
function fateOf(ran: Ran[]): string {
  if (ran.length === 1 || ran.every(({ outcome }) => isDone(outcome))) return "";
  const lines = ran.map(
    ({ tool, outcome }, index) =>
      `\n${index + 1}. ${tool}: ${outcome.status === "refused" ? outcome.error : "done."}`,
  );
  return `\n\nNot all of what you confirmed was done:${lines.join("")}`;
}

/** An outcome as shown to the model, without what is for the person's screen alone. */
function forModel(outcome: ToolOutcome): unknown {
  if (outcome.status === "done") return outcome.result;
  if (outcome.status === "refused") return { error: outcome.error };
  return { not_done_yet: true, the_person_is_asked: outcome.step.summary };
}

/** For servers that do not report what they used. */
const estimatedUse = (messages: ModelMessage[], tools: ModelTool[], turn: ModelTurn): TokenUse => ({
  promptTokens: tokenEstimate(JSON.stringify(messages)) + ownTokens(JSON.stringify(tools)),
  completionTokens: tokenEstimate(turn.reasoning + turn.text) + tokenEstimate(JSON.stringify(turn.toolCalls)),
});

const commandAnswer = (ran: Ran[] | string): string =>
  typeof ran === "string"
    ? ran
    : ran.map(({ tool, outcome }) => `${tool}: ${shownOutcome(outcome)}`).join("\n\n");

function shownOutcome(outcome: ToolOutcome): string {
  if (outcome.status === "refused") return outcome.error;
  if (outcome.status === "asks") return "this needs your confirmation.";
  const text = JSON.stringify(outcome.result, null, 2) ?? "done";
  if (text.length <= maxShownLength) return text;
  return `${withoutMiddle(text, maxShownLength)}\n\n${cutNote(maxShownLength, text.length)}`;
}
