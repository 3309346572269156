import { sql, type SQL } from "drizzle-orm";
import type { AutomaticAction } from "../../protocol/states.ts";
import type { Ctx } from "../ctx.ts";

type Column =
  | "id"
  | "accountId"
  | "actor"
  | "actorId"
  | "operation"
  | "resourceId"
  | "arguments"
  | "outcome"
  | "requestId"
  | "createdAt";

/** One row of the audit log. @param from supplies columns and decides whether there is a row; default: always one */
export const insertActivity = (
  row: Record<Column, SQL | string | number | null>,
  from: SQL = sql``,
): SQL => sql`
  INSERT INTO activity (id, account_id, actor, actor_id, operation, resource_id, arguments, outcome, request_id, created_at)
  SELECT ${row.id}, ${row.accountId}, ${row.actor}, ${row.actorId}, ${row.operation}, ${row.resourceId},
    ${row.arguments}, ${row.outcome}, ${row.requestId}, ${row.createdAt} ${from}`;

/**
 * A statement for a batch: what the service or a host did by itself.
 * @param from the row that was changed, with `account_id` and `id`
 */
export const automaticActivity = (ctx: Ctx, action: AutomaticAction, from: SQL) =>
  ctx.statement(
    insertActivity(
      {
        id: ctx.newId("activity"),
        accountId: sql`account_id`,
        actor: ctx.actor.type === "host" ? "host" : "system",
        actorId: ctx.actor.type === "host" ? ctx.actor.hostId : null,
        operation: action,
        resourceId: sql`id`,
        arguments: "{}",
        outcome: "done",
        requestId: ctx.requestId,
        createdAt: ctx.now().getTime(),
      },
      sql`FROM ${from}`,
    ),
  );
