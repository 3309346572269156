import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, isNull, sql } from "drizzle-orm";
import type { BackupDeleted } from "../../../protocol/api/backups.ts";
import type { Ctx } from "../../ctx.ts";
import { openJob } from "../../db/job-conditions.ts";
import { batch } from "../../db/batch.ts";
import { backups, jobs } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { reviseCancelled } from "../../jobs/request-cancel.ts";
import { backupOwnedBy } from "./owned.ts";

/**
 * Hides the backup at once and cancels its backup and verification jobs; the cron deletes the file once no host uses
 * it. A restore of the backup takes precedence.
 */
export async function removeBackup(ctx: Ctx, { id: backupId }: ById): Promise<BackupDeleted> {
  const { id, hostId } = await backupOwnedBy(ctx, backupId);
  const now = ctx.now();
  const mark = ctx.newMark();
  const restoring = sql`EXISTS (SELECT 1 FROM jobs WHERE backup_id = ${id} AND kind IN ('database.restore', 'volume.restore') AND ${openJob})`;
  const hidden = sql`(SELECT mark FROM backups WHERE id = ${id}) = ${mark}`;
  const {
    removed: [removed],
    leases,
    reader: [reader],
  } = await batch(ctx, {
    removed: ctx.db
      .update(backups)
      .set({ removedAt: now, mark })
      .where(and(eq(backups.id, id), isNull(backups.removedAt), sql`NOT ${restoring}`))
      .returning({ id: backups.id }),
    jobs: ctx.statement(sql`
      UPDATE jobs SET status = 'CANCELLED', finished_at = ${now.getTime()}
      WHERE backup_id = ${id} AND status = 'QUEUED' AND ${hidden}`),
    cancelRequests: ctx.statement(sql`
      UPDATE jobs SET cancel_requested = 1 WHERE backup_id = ${id} AND status = 'LEASED' AND ${hidden}`),
    // If no host works on the backup, it ends now and another may start; otherwise it ends when its host reports.
    backups: ctx.statement(sql`
      UPDATE backups SET status = 'FAILED', error = 'Cancelled.', finished_at = ${now.getTime()}
      WHERE id = ${id} AND status = 'RUNNING' AND mark = ${mark}
        AND NOT EXISTS (SELECT 1 FROM jobs WHERE backup_id = ${id} AND status = 'LEASED')`),
    leases: ctx.db
      .select({ id: jobs.id, attempt: jobs.attempt, hostId: jobs.hostId })
      .from(jobs)
      .where(and(eq(jobs.backupId, id), eq(jobs.status, "LEASED"), hidden)),
    reader: ctx.db
      .select({ id: jobs.id })
      .from(jobs)
      .where(and(eq(jobs.backupId, id), restoring))
      .limit(1),
  });
  if (!removed && reader)
    throw conflict(
      "This backup is being restored. Wait until the restore has finished, then delete the backup.",
    );
  // A concurrent request deleted it.
  if (!removed) throw new AppError("not_found");
  reviseCancelled(ctx, leases);
  // Jobs that were queued behind it may start.
  ctx.hosts.wake(hostId);
  return { id, status: "DELETING" };
}
