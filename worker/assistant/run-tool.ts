import { tools, type ToolName, type ToolSpec } from "../../protocol/api/tools.ts";
import type { Ctx } from "../ctx.ts";
import { AppError } from "../domain/app-error.ts";
import { logError } from "../log-error.ts";
import { catalogue } from "./catalogue.ts";
import type { PendingStep } from "./pending.ts";
import { Revealed, type Consequence } from "./tool.ts";

/** The outcome of a tool call. `result` is for the caller to continue with, `shown` for the person's screen alone. */
export type ToolOutcome =
  | { status: "done"; result: unknown; shown: string | null }
  | { status: "refused"; error: string }
  /** The tool is destructive: nothing was done, and the person is asked to confirm. */
  | { status: "asks"; step: PendingStep };

type AnyTool = {
  run(ctx: Ctx, input: unknown): Promise<unknown>;
  consequence?(ctx: Ctx, input: unknown): Promise<Consequence>;
};

export const isTool = (name: string): name is ToolName => Object.hasOwn(tools, name);
export const specOf = (name: ToolName): ToolSpec => tools[name];
const toolOf = (name: ToolName): AnyTool => catalogue[name];

/**
 * Runs one call as written by a model or a person. Returns refusals instead of throwing: errors go back to the
 * caller. `secretsAsk`: a tool that shows a secret asks as well, for callers without a screen of the person's.
 */
export function runTool(
  ctx: Ctx,
  name: string,
  given: unknown,
  { secretsAsk = false }: { secretsAsk?: boolean } = {},
): Promise<ToolOutcome> {
  return refusing(async () => {
    if (!isTool(name)) return { status: "refused", error: `There is no tool ${name.slice(0, 100)}.` };
    const { input: schema, destructive, secret, summary } = specOf(name);
    const input = schema.safeParse(given);
    if (!input.success) {
      const why = input.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
      return { status: "refused", error: `The arguments of ${name} are not valid: ${why}` };
    }
    if (!destructive && !(secret && secretsAsk)) return done(await toolOf(name).run(ctx, input.data));
    const consequence = await toolOf(name).consequence?.(ctx, input.data);
    if (destructive && !consequence) throw new Error(`The tool ${name} has no consequence`);
    return {
      status: "asks",
      step: { tool: name, input: input.data, ...(consequence ?? { summary, version: null }) },
    };
  });
}

/** Runs a confirmed step with its stored arguments, unless the resource has changed since. */
export function runConfirmed(ctx: Ctx, { tool, input, version }: PendingStep): Promise<ToolOutcome> {
  return refusing(async () => {
    const now = await toolOf(tool).consequence?.(ctx, input);
    if ((now?.version ?? null) !== version)
      return {
        status: "refused",
        error: "The resource has changed since you were asked to confirm: request the action again.",
      };
    return done(await toolOf(tool).run(ctx, input));
  });
}

const done = (result: unknown): ToolOutcome =>
  result instanceof Revealed
    ? { status: "done", result: result.result, shown: result.text }
    : { status: "done", result, shown: null };

async function refusing(work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AppError)) {
      logError({ assistant: true }, error);
      return { status: "refused", error: "An internal error occurred. It was logged." };
    }
    return { status: "refused", error: textOf(error) };
  }
}

function textOf({ message, extra }: AppError): string {
  const { reason, issues, invoiceToken: _token, ...rest } = extra;
  if (typeof reason === "string") return reason;
  if (issues !== undefined) return `Not valid: ${JSON.stringify(issues)}`;
  return Object.keys(rest).length > 0 ? `${message} ${JSON.stringify(rest)}` : message;
}
