import { and, eq, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { databases } from "../../db/schema.ts";
import { databaseEvents, type DatabaseEvent, type DatabaseEventName } from "../../domain/database-events.ts";

type Columns = Partial<typeof databases.$inferInsert>;

/** Moves the database as the event says, if its status allows it. */
export const moveDatabase = (
  ctx: Ctx,
  id: Id<"database">,
  event: DatabaseEventName,
  guard: SQL,
  also: Columns,
) => {
  const { from, to }: DatabaseEvent = databaseEvents[event];
  return ctx.db
    .update(databases)
    .set({ ...(to && { status: to }), ...also, updatedAt: ctx.now() })
    .where(and(eq(databases.id, id), sql`${databases.status} IN ${from}`, guard));
};

export const setDatabase = (ctx: Ctx, id: Id<"database">, columns: Columns, guard: SQL) =>
  ctx.db
    .update(databases)
    .set(columns)
    .where(and(eq(databases.id, id), guard));
