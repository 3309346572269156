import { and, eq, isNull, ne, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { backups, databases } from "../../db/schema.ts";
import { failuresMailed, failureMail, repeatAfterMs, worksAgainMail } from "../../domain/backup-mails.ts";
import { reasonWithoutData } from "../../domain/failure-reason.ts";
import { queueMail } from "../../mails/queue.ts";

/** The database of a visible backup, with the fields its e-mails need. */
async function databaseOf(ctx: Ctx, backupId: Id<"backup">, which?: SQL) {
  const [found] = await ctx.db
    .select({
      id: databases.id,
      accountId: databases.accountId,
      name: databases.name,
      failures: databases.backupFailures,
      since: databases.backupsFailingSince,
    })
    .from(backups)
    .innerJoin(databases, eq(databases.id, backups.databaseId))
    .where(and(eq(backups.id, backupId), isNull(backups.removedAt), ne(databases.status, "DELETING"), which));
  return found;
}

/**
 * Statements for the batch that ends a failed job of a scheduled backup (not taken, damaged or not verifiable). The
 * owner is mailed from the second failure on, at most once a week.
 */
export async function countFailure(ctx: Ctx, backupId: Id<"backup">, error: string, ended: SQL) {
  const database = await databaseOf(ctx, backupId, eq(backups.trigger, "schedule"));
  if (!database) return [];
  const { id, accountId, name } = database;
  const now = ctx.now();
  const since = database.since ?? now;
  const failures = database.failures + 1;
  const reason = reasonWithoutData(error);
  const weeks = Math.floor((now.getTime() - since.getTime()) / repeatAfterMs);
  const mailId = `backups-failing:${id}:${since.getTime()}:${weeks}`;
  return [
    ctx.db
      .update(databases)
      .set({ backupFailures: failures, backupsFailingSince: since, backupFailureReason: reason })
      .where(and(eq(databases.id, id), ended)),
    ...(failures < failuresMailed
      ? []
      : [
          queueMail(ctx, { id: mailId, accountId, ...failureMail({ name, since, failures, reason }) }, ended),
        ]),
  ];
}

/** Statements for the batch that proves a backup. An owner who was notified of failures is notified of the recovery. */
export async function endFailures(ctx: Ctx, backupId: Id<"backup">, ended: SQL) {
  // An older backup proves nothing about the failures after it.
  const isLast = sql`NOT EXISTS (SELECT 1 FROM backups later
    WHERE later.database_id = ${databases.id} AND later.id > ${backupId} AND later.status = 'FAILED')`;
  const database = await databaseOf(ctx, backupId, isLast);
  if (!database?.since) return [];
  const { id, accountId, name, since, failures } = database;
  const mailId = `backups-work:${id}:${since.getTime()}`;
  return [
    ctx.db
      .update(databases)
      .set({ backupFailures: 0, backupsFailingSince: null, backupFailureReason: null })
      .where(and(eq(databases.id, id), ended)),
    ...(failures < failuresMailed
      ? []
      : [queueMail(ctx, { id: mailId, accountId, ...worksAgainMail({ name, since }) }, ended)]),
  ];
}
