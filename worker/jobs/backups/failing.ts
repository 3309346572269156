import { and, eq, isNull, ne, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { backups, databases, sites, siteVolumes } from "../../db/schema.ts";
import { failuresMailed, failureMail, repeatAfterMs, worksAgainMail } from "../../domain/backup-mails.ts";
import { reasonWithoutData } from "../../domain/failure-reason.ts";
import { volumeOf } from "../../domain/volume-keys.ts";
import { queueMail } from "../../mails/queue.ts";

/** Where the failures of a database's and of a volume's backups are counted. */
type Counts = Pick<
  typeof databases.$inferInsert & typeof siteVolumes.$inferInsert,
  "backupFailures" | "backupsFailingSince" | "backupFailureReason"
>;

/** The database or volume of a visible backup, with the fields its e-mails need. */
async function sourceOf(ctx: Ctx, backupId: Id<"backup">, which: SQL) {
  const [found] = await ctx.db
    .select({
      key: backups.databaseId,
      accountId: backups.accountId,
      database: {
        name: databases.name,
        failures: databases.backupFailures,
        since: databases.backupsFailingSince,
      },
      volume: { failures: siteVolumes.backupFailures, since: siteVolumes.backupsFailingSince },
      siteName: sites.name,
    })
    .from(backups)
    .leftJoin(databases, and(eq(databases.id, backups.databaseId), ne(databases.status, "DELETING")))
    .leftJoin(
      sites,
      and(
        sql`${sites.id} = substr(${backups.databaseId}, 1, instr(${backups.databaseId}, '/') - 1)`,
        ne(sites.status, "DELETING"),
      ),
    )
    .leftJoin(
      siteVolumes,
      and(
        eq(siteVolumes.siteId, sites.id),
        sql`${siteVolumes.name} = substr(${backups.databaseId}, instr(${backups.databaseId}, '/') + 1)`,
      ),
    )
    .where(and(eq(backups.id, backupId), isNull(backups.removedAt), which));
  const counted = found?.database ?? found?.volume;
  if (!found || !counted) return undefined;
  const { key, accountId, siteName } = found;
  const volume = volumeOf(key);
  const what = volume ? "volume" : "database";
  const name = volume ? `${volume.name} of ${siteName ?? ""}` : (found.database?.name ?? "");
  const count = (counts: Counts, ended: SQL) =>
    volume
      ? ctx.db
          .update(siteVolumes)
          .set(counts)
          .where(and(eq(siteVolumes.siteId, volume.siteId), eq(siteVolumes.name, volume.name), ended))
      : ctx.db
          .update(databases)
          .set(counts)
          .where(and(sql`${databases.id} = ${key}`, ended));
  // As a part of a mail's id, where what stands before the first colon is the resource of its notice.
  return {
    id: key.replace("/", ":"),
    accountId,
    what,
    name,
    failures: counted.failures,
    since: counted.since,
    count,
  } as const;
}

/**
 * Statements for the batch that ends a failed job of a scheduled backup (not taken, damaged or not verifiable). The
 * owner is mailed from the second failure on, at most once a week.
 */
export async function countFailure(ctx: Ctx, backupId: Id<"backup">, error: string, ended: SQL) {
  const source = await sourceOf(ctx, backupId, eq(backups.trigger, "schedule"));
  if (!source) return [];
  const { id, accountId, what, name } = source;
  const now = ctx.now();
  const since = source.since ?? now;
  const failures = source.failures + 1;
  const reason = reasonWithoutData(error);
  const weeks = Math.floor((now.getTime() - since.getTime()) / repeatAfterMs);
  const mailId = `backups-failing:${id}:${since.getTime()}:${weeks}`;
  const mail = failureMail({ what, name, since, failures, reason });
  return [
    source.count(
      { backupFailures: failures, backupsFailingSince: since, backupFailureReason: reason },
      ended,
    ),
    ...(failures < failuresMailed ? [] : [queueMail(ctx, { id: mailId, accountId, ...mail }, ended)]),
  ];
}

/** Statements for the batch that proves a backup. An owner who was notified of failures is notified of the recovery. */
export async function endFailures(ctx: Ctx, backupId: Id<"backup">, ended: SQL) {
  // An older backup proves nothing about the failures after it.
  const isLast = sql`NOT EXISTS (SELECT 1 FROM backups later
    WHERE later.database_id = ${backups.databaseId} AND later.id > ${backupId} AND later.status = 'FAILED')`;
  const source = await sourceOf(ctx, backupId, isLast);
  if (!source?.since) return [];
  const { id, accountId, what, name, since, failures } = source;
  const mailId = `backups-work:${id}:${since.getTime()}`;
  return [
    source.count({ backupFailures: 0, backupsFailingSince: null, backupFailureReason: null }, ended),
    ...(failures < failuresMailed
      ? []
      : [queueMail(ctx, { id: mailId, accountId, ...worksAgainMail({ what, name, since }) }, ended)]),
  ];
}
