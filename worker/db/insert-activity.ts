import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../protocol/ids.ts";
import type { ActivityActor } from "../../protocol/states.ts";
import type { Ctx } from "../ctx.ts";

type Row = {
  id: Id<"activity">;
  accountId: SQL;
  actor: ActivityActor;
  actorId: string | null;
  operation: string;
  resourceId: SQL;
  arguments: Record<string, unknown>;
  outcome: string;
};

/**
 * A statement for a batch. @param from supplies the row's columns and decides whether there is a row; default: always
 * one
 */
export const insertActivity = (ctx: Ctx, row: Row, from: SQL = sql``) =>
  ctx.statement(sql`
    INSERT INTO activity (id, account_id, actor, actor_id, operation, resource_id, arguments, outcome, request_id, created_at)
    SELECT ${row.id}, ${row.accountId}, ${row.actor}, ${row.actorId}, ${row.operation}, ${row.resourceId},
      ${JSON.stringify(row.arguments)}, ${row.outcome}, ${ctx.requestId}, ${ctx.now().getTime()} ${from}`);
