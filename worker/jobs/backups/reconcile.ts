import { and, desc, eq, gt, inArray, isNotNull, isNull, lte, or, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { backups, databases, siteVolumes } from "../../db/schema.ts";
import { failureShownMs, nextBackupAt, surplusBackups, verifyAgainMs } from "../../domain/backup-rules.ts";
import { volumeKey, type VolumeKey } from "../../domain/volume-keys.ts";
import { eachAlone } from "../../each-alone.ts";
import { dataKeyOf, folderOf } from "./object-keys.ts";
import { notRestoring, queueBackup, queueVerification, queueVolumeBackup } from "./queue.ts";
import { idleLane, openJob } from "../../db/job-conditions.ts";

const atOnce = 50;
const crowdedAfterMs = 2 * 86_400_000;

/** Starts due backups, verifies unproven ones and removes expired and surplus ones. */
export async function reconcileBackups(ctx: Ctx): Promise<void> {
  await beginDue(ctx);
  await beginDueOfVolumes(ctx);
  await verifyStored(ctx);
  await retire(ctx);
  await clear(ctx);
}

/** Uses each scheduled time once: the statement that advances the schedule also queues the backup. */
async function beginDue(ctx: Ctx): Promise<void> {
  const now = ctx.now();
  const due = await ctx.db
    .select()
    .from(databases)
    .where(
      and(
        eq(databases.status, "RUNNING"),
        isNotNull(databases.backupSchedule),
        or(isNull(databases.nextBackupAt), lte(databases.nextBackupAt, now)),
      ),
    )
    .limit(atOnce);
  for (const { id, backupSchedule: schedule, backupHourUtc: hourUtc, nextBackupAt: planned, hostId } of due) {
    const mark = ctx.newMark();
    await ctx.db.batch([
      ctx.db
        .update(databases)
        .set({ nextBackupAt: nextBackupAt({ schedule, hourUtc }, id, now), mark })
        .where(
          and(
            eq(databases.id, id),
            eq(databases.status, "RUNNING"),
            planned === null ? isNull(databases.nextBackupAt) : eq(databases.nextBackupAt, planned),
          ),
        ),
      // A database without a next run yet only gets one.
      ...queueBackup(
        ctx,
        ctx.newId("backup"),
        "schedule",
        sql`d.mark = ${mark} AND d.wanted = 'RUNNING' AND ${planned !== null}`,
      ),
    ]);
    ctx.hosts.wake(hostId);
  }
}

async function beginDueOfVolumes(ctx: Ctx): Promise<void> {
  const now = ctx.now();
  const due = await ctx.db.select().from(siteVolumes).where(lte(siteVolumes.nextBackupAt, now)).limit(atOnce);
  for (const {
    siteId,
    name,
    backupSchedule: schedule,
    backupHourUtc: hourUtc,
    nextBackupAt: planned,
  } of due) {
    const key = volumeKey(siteId, name);
    const mark = ctx.newMark();
    await ctx.db.batch([
      ctx.db
        .update(siteVolumes)
        .set({ nextBackupAt: nextBackupAt({ schedule, hourUtc }, key, now), mark })
        .where(
          and(
            eq(siteVolumes.siteId, siteId),
            eq(siteVolumes.name, name),
            sql`${siteVolumes.nextBackupAt} IS ${planned?.getTime() ?? null}`,
          ),
        ),
      ...queueVolumeBackup(
        ctx,
        ctx.newId("backup"),
        "schedule",
        sql`v.mark = ${mark} AND ${notRestoring(key)}`,
      ),
    ]);
  }
  if (due.length > 0) ctx.hosts.wake(null);
}

async function verifyStored(ctx: Ctx): Promise<void> {
  const [first, second, further] = verifyAgainMs;
  const triedLately = sql`EXISTS (SELECT 1 FROM jobs
    WHERE backup_id = ${backups.id} AND kind IN ('database.verify', 'volume.verify') AND status = 'FAILED' AND finished_at > ${ctx.now().getTime()}
      - CASE ${backups.verifications} WHEN 0 THEN 0 WHEN 1 THEN ${first} WHEN 2 THEN ${second} ELSE ${further} END)`;
  const isAway = sql`EXISTS (SELECT 1 FROM hosts WHERE id = ${backups.hostId} AND status <> 'REMOVED' AND offline_since IS NOT NULL)`;
  const unproven = await ctx.db
    .select({ id: backups.id, type: backups.type, hostId: backups.hostId })
    .from(backups)
    .where(
      and(
        eq(backups.status, "STORED"),
        isNull(backups.removedAt),
        idleLane(backups.id),
        sql`NOT ${isAway}`,
        sql`NOT ${triedLately}`,
      ),
    )
    .limit(atOnce);
  for (const { id, type } of unproven) await queueVerification(ctx, type, sql`b.id = ${id}`);
  if (unproven.length > 0) ctx.hosts.wake(null);
}

const unread = sql`NOT EXISTS (SELECT 1 FROM jobs WHERE backup_id = ${backups.id} AND ${openJob})`;

/** Removes no backup that a job reads, and never the only good one of an existing database. */
async function retire(ctx: Ctx): Promise<void> {
  const now = ctx.now();
  const remove = (ids: string[]) =>
    ctx.db
      .update(backups)
      .set({ removedAt: now })
      .where(and(inArray(backups.id, ids as Id<"backup">[]), isNull(backups.removedAt), unread));
  await ctx.db
    .update(backups)
    .set({ removedAt: now })
    .where(and(lte(backups.expiresAt, now), sql`+${backups.removedAt} IS NULL`, unread));
  // Only a new backup makes an old one surplus; failed ones expire by age. `+` keeps SQLite to the index of databases.
  const since = now.getTime() - crowdedAfterMs;
  const shownSince = now.getTime() - failureShownMs;
  const crowded = await ctx.db.all<{ id: Id<"database"> | VolumeKey; keep: number }>(sql`
    WITH touched AS (
      SELECT database_id AS id FROM backups WHERE status = 'FAILED' AND created_at < ${shownSince}
      UNION SELECT database_id FROM backups WHERE status IN ('RUNNING', 'STORED', 'VERIFIED') AND created_at > ${since}),
    d AS (
      SELECT id, coalesce(
        (SELECT backup_keep FROM databases WHERE databases.id = touched.id),
        (SELECT backup_keep FROM site_volumes WHERE site_id = substr(touched.id, 1, instr(touched.id, '/') - 1)
          AND name = substr(touched.id, instr(touched.id, '/') + 1))) AS keep
      FROM touched)
    SELECT d.id, d.keep FROM d WHERE d.keep IS NOT NULL
    AND (EXISTS (SELECT 1 FROM backups b WHERE b.database_id = d.id AND +b.removed_at IS NULL AND +b.status = 'FAILED'
        AND coalesce(b.finished_at, b.created_at) < ${shownSince})
      OR (SELECT count(*) FROM backups b WHERE b.database_id = d.id AND +b.removed_at IS NULL AND b.status <> 'FAILED') > d.keep)`);
  for (const { id, keep } of crowded) {
    const all = await ctx.db
      .select({
        id: backups.id,
        status: backups.status,
        createdAt: backups.createdAt,
        finishedAt: backups.finishedAt,
        shrunkFrom: backups.shrunkFrom,
      })
      .from(backups)
      .where(and(eq(backups.databaseId, id), isNull(backups.removedAt)))
      .orderBy(desc(backups.id));
    const surplus = surplusBackups(all, keep, now).slice(0, atOnce);
    if (surplus.length > 0) await remove(surplus);
  }
}

/**
 * Removes the objects before their row, because only the row leads to them. Waits for a job that is being cancelled.
 */
async function clear(ctx: Ctx): Promise<void> {
  // SQLite uses no index for `IS NOT NULL`.
  const gone = await ctx.db
    .select()
    .from(backups)
    .where(and(gt(backups.removedAt, new Date(0)), unread))
    .limit(atOnce);
  await eachAlone("clear backups", gone, async (row) => {
    if (row.uploadId !== null) await ctx.backups.abort(dataKeyOf(row), row.uploadId);
    await ctx.backups.remove(folderOf(row));
    await ctx.db.delete(backups).where(eq(backups.id, row.id));
  });
}
