import { sql, type SQL } from "drizzle-orm";

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
