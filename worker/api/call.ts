import { operations, type Answered, type Input, type Operation } from "../../protocol/api/operations.ts";
import { accountOf, type Ctx } from "../ctx.ts";
import { recorded } from "../services/activity/record.ts";
import { requireAccess } from "./access.ts";
import { verbs, type Verb, type VerbId } from "./verbs.ts";

/**
 * The dispatcher behind the API, the pages and the assistant: checks access, counts against the operation's limit, runs the
 * verb, and records changes in the audit log.
 */
export async function call<Id extends VerbId>(ctx: Ctx, id: Id, input: Input<Id>): Promise<Answered<Id>> {
  const operation: Operation = operations[id];
  requireAccess(ctx, operation);
  // Messages to the assistant are counted where they arrive.
  if (operation.limit !== undefined && operation.limit !== "chat")
    await ctx.takeFrom(operation.limit, accountOf(ctx));
  // `verbs` is typed per operation id; the compiler cannot derive one signature for the union of all ids.
  const verb = verbs[id] as unknown as Verb<Id>;
  // Each look of an operator at a customer's account is on record too.
  if (!isChange(operation, input) && ctx.actor.type !== "viewer") return verb(ctx, input);
  return recorded(ctx, { id, operation, input: input as Record<string, unknown> }, (acting) =>
    verb(acting, input),
  );
}

/** What only reads is not recorded. */
export const isChange = (
  { method, readOnly, readsUnless, access, limit }: Operation,
  input: unknown,
): boolean =>
  method !== "get" &&
  !readOnly &&
  access !== "none" &&
  // What the assistant does is recorded tool by tool.
  limit !== "chat" &&
  (readsUnless === undefined || (input as Record<string, unknown>)[readsUnless] === true);
