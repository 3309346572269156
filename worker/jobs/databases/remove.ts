import { and, eq, inArray, sql, type SQL } from "drizzle-orm";
import type { DatabaseActionAccepted } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { closeCheckouts, openCheckoutsOfVoid } from "../../db/close-checkouts.ts";
import type { DatabaseRow } from "../../db/rows.ts";
import { databases, invoices } from "../../db/schema.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { queueBackup } from "../backups/queue.ts";
import { forgetDatabase } from "./forget.ts";
import { queueDatabaseJob } from "./queue.ts";

/**
 * DELETING is final: waiting work ends, a last backup is taken, the host removes the container and the data, then the
 * record is deleted.
 * @param options `only`: a condition that must hold when the deletion begins
 */
export async function deleteDatabase(
  ctx: Ctx,
  database: DatabaseRow,
  { only, skipFinalBackup = false }: { only?: SQL; skipFinalBackup?: boolean },
): Promise<DatabaseActionAccepted> {
  const { from, to } = databaseEvents.deleteRequested;
  const mark = ctx.newMark();
  const deleting = sql`(SELECT mark FROM databases WHERE id = ${database.id}) = ${mark}`;
  const {
    moved: [moved],
    open,
  } = await batch(ctx, {
    moved: ctx.db
      .update(databases)
      .set({ status: to, mark, updatedAt: ctx.now() })
      .where(and(eq(databases.id, database.id), inArray(databases.status, [...from]), only))
      .returning(),
    backups: ctx.statement(sql`
      UPDATE backups SET status = 'FAILED', error = 'The database was deleted before its turn came.', finished_at = ${ctx.now().getTime()}
      WHERE status = 'RUNNING' AND ${deleting}
        AND id IN (SELECT backup_id FROM jobs WHERE database_id = ${database.id} AND kind = 'database.backup' AND status = 'QUEUED')`),
    jobs: ctx.statement(sql`
      UPDATE jobs SET status = 'CANCELLED', finished_at = ${ctx.now().getTime()}
      WHERE database_id = ${database.id} AND status = 'QUEUED' AND kind <> 'database.delete' AND ${deleting}`),
    // It precedes the deletion in the lane; the deletion does not depend on its success.
    backup: skipFinalBackup
      ? undefined
      : queueBackup(ctx, ctx.newId("backup"), "final", sql`d.mark = ${mark}`),
    job: queueDatabaseJob(
      ctx,
      "database.delete",
      database.id,
      sql`d.mark = ${mark} AND d.host_id IS NOT NULL`,
    ),
    invoices: ctx.db
      .update(invoices)
      .set({ status: "void" })
      .where(and(eq(invoices.resourceId, database.id), eq(invoices.status, "unpaid"), deleting)),
    open: openCheckoutsOfVoid(ctx, sql`resource_id = ${database.id}`),
    // Nothing of it ever reached a host, so the record is deleted at once.
    forgotten: forgetDatabase(
      ctx,
      database.id,
      sql`${deleting} AND (SELECT host_id FROM databases WHERE id = ${database.id}) IS NULL`,
    ),
  });
  closeCheckouts(ctx, open);
  if (!moved) return { id: database.id, status: to };
  if (moved.hostId) ctx.hosts.wake(moved.hostId);
  return { id: moved.id, status: moved.status };
}
