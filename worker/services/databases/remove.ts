import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, inArray, sql, type SQL } from "drizzle-orm";
import type { DatabaseActionAccepted } from "../../../protocol/api/databases.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import { backups, databaseLinks, databases, invoices } from "../../db/schema.ts";
import { keptAfterDeletionMs } from "../../domain/backup-rules.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { queueBackup } from "../../jobs/backups/queue.ts";
import { databaseOwnedBy, type DatabaseRow } from "./owned.ts";
import { queueDatabaseJob } from "../../jobs/databases/queue.ts";

export const removeDatabase = async (ctx: Ctx, { id: databaseId }: ById): Promise<DatabaseActionAccepted> =>
  deleteDatabase(ctx, await databaseOwnedBy(ctx, databaseId));

/**
 * DELETING is final: queued work ends, a last backup is created, the host removes the container and data, then the
 * record is deleted. @param only a condition that must hold at the start
 */
export async function deleteDatabase(
  ctx: Ctx,
  database: DatabaseRow,
  only?: SQL,
): Promise<DatabaseActionAccepted> {
  const { from, to } = databaseEvents.deleteRequested;
  const mark = ctx.newMark();
  const deleting = sql`(SELECT mark FROM databases WHERE id = ${database.id}) = ${mark}`;
  const [[moved]] = await ctx.db.batch([
    ctx.db
      .update(databases)
      .set({ status: to, mark, updatedAt: ctx.now() })
      .where(and(eq(databases.id, database.id), inArray(databases.status, [...from]), only))
      .returning(),
    ctx.statement(sql`
      UPDATE backups SET status = 'FAILED', error = 'The database was deleted before its turn came.', finished_at = ${ctx.now().getTime()}
      WHERE status = 'RUNNING' AND ${deleting}
        AND id IN (SELECT backup_id FROM jobs WHERE database_id = ${database.id} AND kind = 'database.backup' AND status = 'QUEUED')`),
    ctx.statement(sql`
      UPDATE jobs SET status = 'CANCELLED', finished_at = ${ctx.now().getTime()}
      WHERE database_id = ${database.id} AND status = 'QUEUED' AND kind <> 'database.delete' AND ${deleting}`),
    // Queued before the deletion, which proceeds even if the backup fails.
    ...queueBackup(ctx, ctx.newId("backup"), "final", sql`d.mark = ${mark}`),
    queueDatabaseJob(ctx, "database.delete", database.id, sql`d.mark = ${mark} AND d.host_id IS NOT NULL`),
    ctx.db
      .update(invoices)
      .set({ status: "void" })
      .where(and(eq(invoices.resourceId, database.id), eq(invoices.status, "unpaid"), deleting)),
    // It never reached a host, so the record is deleted at once.
    ...forgetDatabase(
      ctx,
      database.id,
      sql`${deleting} AND (SELECT host_id FROM databases WHERE id = ${database.id}) IS NULL`,
    ),
  ]);
  if (!moved) return { id: database.id, status: to };
  if (moved.hostId) ctx.hosts.wake(moved.hostId);
  return { id: moved.id, status: moved.status };
}

/** Statements for one batch that delete the record, children first, if `guard` still holds. */
export const forgetDatabase = (ctx: Ctx, id: Id<"database">, guard: SQL) =>
  [
    ctx.db
      .update(backups)
      .set({ expiresAt: new Date(ctx.now().getTime() + keptAfterDeletionMs) })
      .where(and(eq(backups.databaseId, id), guard)),
    ctx.db.delete(databaseLinks).where(and(eq(databaseLinks.databaseId, id), guard)),
    ctx.db.delete(databases).where(and(eq(databases.id, id), guard)),
  ] as const;
