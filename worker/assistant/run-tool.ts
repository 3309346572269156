import type * as z from "zod";
import { readsOnly, tools, type ToolName, type ToolSpec } from "../../protocol/api/tools.ts";
import type { ErrorCode } from "../../protocol/errors.ts";
import { jsonIn } from "../../protocol/json.ts";
import type { Ctx } from "../ctx.ts";
import { AppError, conflict } from "../domain/app-error.ts";
import { writtenOut } from "../domain/shown-arguments.ts";
import { logError } from "../log-error.ts";
import { recordCall } from "../services/activity/record-call.ts";
import { catalogue } from "./catalogue.ts";
import type { PendingStep } from "./pending.ts";
import { payAt } from "./resources.ts";
import { Revealed, type Consequence } from "./tool.ts";

/** The outcome of a tool call. `result` is for the caller to continue with, `shown` for the person's screen alone. */
export type ToolOutcome =
  | Done
  | Refusal
  /** The tool is destructive: nothing was done, and the person is asked to confirm. */
  | { status: "asks"; step: PendingStep };
type Done = { status: "done"; result: unknown; shown: string | null };
type Refusal = { status: "refused"; error: string; code: ErrorCode };

type AnyTool = {
  run(ctx: Ctx, input: unknown): Promise<unknown>;
  consequence?(ctx: Ctx, input: unknown): Promise<Consequence | null>;
  tried?(ctx: Ctx, input: unknown): Promise<string>;
};

export const isTool = (name: string): name is ToolName => Object.hasOwn(tools, name);
export const specOf = (name: ToolName): ToolSpec => tools[name];
const toolOf = (name: ToolName): AnyTool => catalogue[name];

/** The arguments of a call, also as weak models write them: null or "" for what is left out, and a text for a number or a list. */
export function inputOf(name: ToolName, given: unknown): z.ZodSafeParseResult<Record<string, unknown>> {
  const { input: schema } = specOf(name);
  const parsed = schema.safeParse(given);
  if (parsed.success || typeof given !== "object") return parsed;
  const input: Record<string, unknown> = { ...given };
  for (const [key = ""] of parsed.error.issues.map(({ path }) => path.map(String))) {
    const value = input[key];
    if (value === null || value === "") delete input[key];
    else if (typeof value === "string") input[key] = jsonIn(value) ?? value;
  }
  const mended = schema.safeParse(input);
  return mended.success ? mended : parsed;
}

/**
 * Runs one call as written by a model or a person, and puts it on record. Returns refusals instead of throwing: errors go
 * back to the caller. `secretsAsk`: a tool that shows a secret asks as well, for callers without a screen of the person's.
 * `allAsk`: what changes or sends anything asks as well, for a model that has read what strangers wrote, and may do as they say.
 */
export async function runTool(
  ctx: Ctx,
  name: string,
  given: unknown,
  { secretsAsk = false, allAsk = false }: { secretsAsk?: boolean; allAsk?: boolean } = {},
): Promise<ToolOutcome> {
  if (!isTool(name)) return refuseCall(ctx, name, "not_found", `There is no tool ${name.slice(0, 100)}.`);
  const { destructive, secret, reachesOut } = specOf(name);
  const input = inputOf(name, given);
  if (!input.success) {
    const why = input.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
    return refuseCall(ctx, name, "invalid_request", `The arguments of ${name} are not valid: ${why}`);
  }
  return onRecord(ctx, name, input.data, async () => {
    const mustAsk = destructive || (secret && secretsAsk);
    const known = mustAsk ? await toolOf(name).consequence?.(ctx, input.data) : null;
    if (known === undefined) throw new Error(`The tool ${name} has no consequence`);
    const isHarmless = (readsOnly(name) && reachesOut !== true) || onlyRepeats(name);
    const consequence = known ?? (allAsk && !isHarmless ? asWritten(name, input.data) : null);
    if (consequence === null) return done(await toolOf(name).run(ctx, input.data));
    const tried = await toolOf(name).tried?.(ctx, input.data);
    const { version } = consequence;
    const summary = tried === undefined ? consequence.summary : `${consequence.summary} ${tried}`;
    return { status: "asks", step: { tool: name, input: input.data, summary, version } };
  });
}

/** Runs or keeps what the owner has set up, whoever asks for it: its arguments name only what the account has. */
const onlyRepeats = (name: ToolName): boolean =>
  /^(?:start|restart|verify|renew)_|^create_backup$/.test(name);

/** Of a tool that says nothing itself about what would happen, and so depends on nothing that may change meanwhile. */
const asWritten = (name: ToolName, input: object): Consequence => ({
  summary: `${name}: ${specOf(name).summary}\n${writtenOut(input)}`,
  version: "",
});

/** The refusal, on record, of a confirmed step whose resource has changed since the person was asked; null: it has not. */
export async function changedSince(ctx: Ctx, { tool, input, version }: PendingStep): Promise<Refusal | null> {
  try {
    const now = await toolOf(tool).consequence?.(ctx, input);
    if ((now?.version ?? "") === version) return null;
    throw conflict("The resource has changed since you were asked to confirm: request the action again.");
  } catch (error) {
    return onRecord(ctx, tool, input as object, () => Promise.resolve(refusalOf(ctx, error)));
  }
}

/** Runs a confirmed step with its stored arguments, whatever has changed since. */
export const runUnchanged = (ctx: Ctx, { tool, input }: PendingStep): Promise<Done | Refusal> =>
  onRecord(ctx, tool, input as object, async () => done(await toolOf(tool).run(ctx, input)));

/** Runs a step that was confirmed by itself. */
export const runConfirmed = async (ctx: Ctx, step: PendingStep): Promise<Done | Refusal> =>
  (await changedSince(ctx, step)) ?? runUnchanged(ctx, step);

/** The same outside a conversation, where whoever asked may ask later what came of it. */
export async function runTaken(ctx: Ctx, id: string, step: PendingStep): Promise<Done | Refusal> {
  const outcome = await runConfirmed(ctx, step);
  const said = outcome.status === "refused" ? `refused: ${outcome.error}` : "carried out";
  ctx.defer(ctx.pendingCalls.settle(id, said));
  return outcome;
}

/** A call that comes to no tool. */
export async function refuseCall(ctx: Ctx, name: string, code: ErrorCode, error: string): Promise<Refusal> {
  await recordCall(ctx, { tool: isTool(name) ? name : "unknown_tool", input: {}, outcome: code });
  return { status: "refused", error, code };
}

const done = (result: unknown): Done =>
  result instanceof Revealed
    ? { status: "done", result: result.result, shown: result.text }
    : { status: "done", result, shown: null };

async function onRecord<Outcome extends ToolOutcome>(
  ctx: Ctx,
  tool: ToolName,
  input: object,
  work: () => Promise<Outcome>,
): Promise<Outcome | Refusal> {
  const ended = await work().catch((error: unknown) => refusalOf(ctx, error));
  const outcome = ended.status === "refused" ? ended.code : ended.status === "asks" ? "asked" : "done";
  await recordCall(ctx, { tool, input, outcome });
  return ended;
}

function refusalOf(ctx: Ctx, error: unknown): Refusal {
  if (error instanceof AppError) return { status: "refused", error: textOf(ctx, error), code: error.code };
  logError({ assistant: true }, error);
  return {
    status: "refused",
    error: "An internal error occurred. It was logged.",
    code: "server_error",
  };
}

function textOf(ctx: Ctx, { code, message, extra }: AppError): string {
  const { reason, issues, invoiceToken, ...rest } = extra;
  if (code === "payment_required")
    return `A payment is due first: ${typeof invoiceToken === "string" ? `pay at ${payAt(ctx, invoiceToken)}` : "pay what list_invoices shows"}, then ask again.`;
  if (typeof reason === "string") return reason;
  if (issues !== undefined) return `Not valid: ${JSON.stringify(issues)}`;
  return Object.keys(rest).length > 0 ? `${message} ${JSON.stringify(rest)}` : message;
}
