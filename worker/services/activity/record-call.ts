import type { ErrorCode } from "../../../protocol/errors.ts";
import { accountOf, authorOf, type Ctx } from "../../ctx.ts";
import { insertActivity } from "../../db/insert-activity.ts";
import { shownArguments } from "../../domain/shown-arguments.ts";
import { logError } from "../../log-error.ts";

type ToolCall = {
  /** Its name has an underscore, and no operation's has: so the list tells calls from changes. */
  tool: string;
  /** As its schema has understood them: others may be secrets under names that nobody knows. */
  input: object;
  outcome: "done" | "asked" | ErrorCode;
};

/**
 * One row for a call of the assistant's tools, whatever comes of it, also of one that only reads. A change that it makes has
 * its own row, in the batch of the change. What has been done is not undone for the lack of this one.
 */
export async function recordCall(ctx: Ctx, { tool, input, outcome }: ToolCall): Promise<void> {
  const row = insertActivity({
    id: ctx.newId("activity"),
    accountId: accountOf(ctx),
    ...authorOf(ctx),
    operation: tool,
    resourceId: null,
    arguments: JSON.stringify(shownArguments({ ...input })),
    outcome,
    requestId: ctx.requestId,
    createdAt: ctx.now().getTime(),
  });
  await ctx.statement(row).catch((error: unknown) => logError({ unrecorded: tool }, error));
}
