import { sql, type SQL } from "drizzle-orm";
import type { Operation } from "../../../protocol/api/operations.ts";
import { isId, type Id } from "../../../protocol/ids.ts";
import { accountOf, authorOf, type Author, type Ctx, type Db } from "../../ctx.ts";
import { insertActivity } from "../../db/insert-activity.ts";
import { writes } from "../../db/writes.ts";
import { AppError, asksToConfirm } from "../../domain/app-error.ts";
import { shownArguments } from "../../domain/shown-arguments.ts";

type Acted = Pick<Operation, "access" | "creates">;
type Asked = { id: string; operation: Acted; input: Record<string, unknown> };
type Batch = Db["batch"];

/**
 * Runs the work and adds one row to the audit log. The row is part of the work's first writing batch, so that both are
 * stored atomically; work without a batch gets its row afterwards.
 */
export async function recorded<Answer>(
  ctx: Ctx,
  { id, operation, input }: Asked,
  work: (ctx: Ctx) => Promise<Answer>,
): Promise<Answer> {
  const activityId = ctx.newId("activity");
  let resourceId = typeof input["id"] === "string" ? input["id"] : null;
  let isWritten = false;
  const row = (outcome: string) =>
    ctx.statement(
      insertActivity({
        id: activityId,
        accountId: ownerOf(ctx, operation, resourceId),
        ...actedAs(ctx, operation),
        operation: id,
        resourceId,
        arguments: JSON.stringify(shownArguments(input)),
        outcome,
        requestId: ctx.requestId,
        createdAt: ctx.now().getTime(),
      }),
    );
  const batch = async (statements: Parameters<Batch>[0]) => {
    if (isWritten || !statements.some(writes)) return ctx.db.batch(statements) as Promise<unknown>;
    const answers = await ctx.db.batch([...statements, row("done")] as never as Parameters<Batch>[0]);
    isWritten = true;
    return (answers as readonly unknown[]).slice(0, -1);
  };
  const acting: Ctx = Object.defineProperties({} as Ctx, {
    ...Object.getOwnPropertyDescriptors(ctx),
    db: { value: Object.assign(Object.create(ctx.db) as Db, { batch }), enumerable: true },
    newId: {
      value: (kind: Parameters<Ctx["newId"]>[0]) => {
        const made = ctx.newId(kind);
        if (kind === operation.creates) resourceId ??= made;
        return made;
      },
      enumerable: true,
    },
  });
  try {
    const answer = await work(acting);
    if (!isWritten) await ctx.db.batch([row("done")]);
    return answer;
  } catch (error) {
    const outcome = asksToConfirm(error) ? "asked" : error instanceof AppError ? error.code : "server_error";
    ctx.defer(isWritten ? setOutcome(ctx, activityId, outcome) : row(outcome));
    throw error;
  }
}

const setOutcome = (ctx: Ctx, id: Id<"activity">, outcome: string) =>
  ctx.statement(sql`UPDATE activity SET outcome = ${outcome} WHERE id = ${id}`);

/** Operators act on what belongs to others; what belongs to nobody is listed with those who changed it. */
function ownerOf(ctx: Ctx, { access }: Acted, resourceId: string | null): SQL | string {
  if (access !== "operator" || resourceId === null) return accountOf(ctx);
  if (isId("account", resourceId)) return resourceId;
  return sql`coalesce((SELECT account_id FROM invoices WHERE id = ${resourceId}),
    (SELECT account_id FROM jobs WHERE id = ${resourceId}), (SELECT account_id FROM sites WHERE id = ${resourceId}),
    (SELECT account_id FROM databases WHERE id = ${resourceId}), ${accountOf(ctx)})`;
}

const actedAs = (ctx: Ctx, { access }: Acted): Author => {
  const { actor, actorId } = authorOf(ctx);
  return { actor: access === "operator" && actor !== "assistant" ? "operator" : actor, actorId };
};
