import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { BackupTrigger, BackupType } from "../../../protocol/states.ts";
import type { Ctx } from "../../ctx.ts";
import { backupQueueMs } from "../../domain/job-rules.ts";
import { queueJob } from "../insert.ts";
import { idleLane, openJob } from "../../db/job-conditions.ts";
import { volumeOf, type VolumeKey } from "../../domain/volume-keys.ts";

/**
 * Statements for one batch: a backup of database `d` where `guard` holds, and its job in the database's lane. At most
 * one requested or scheduled backup is open at a time, even under concurrent requests.
 */
export function queueBackup(ctx: Ctx, id: Id<"backup">, trigger: BackupTrigger, guard: SQL) {
  const now = ctx.now().getTime();
  return [
    ctx.statement(sql`
      INSERT OR IGNORE INTO backups (id, database_id, account_id, status, "trigger", name, database_name, type, version, image,
        pack_id, host_id, verifications, created_at)
      SELECT ${id}, d.id, d.account_id, 'RUNNING', ${trigger}, d.name, d.database_name, d.type, d.version, d.image,
        d.pack_id, d.host_id, 0, ${now}
      FROM databases d WHERE d.host_id IS NOT NULL AND d.version IS NOT NULL AND ${guard}`),
    queueJob(
      ctx,
      "database.backup",
      {
        hostId: sql`b.host_id`,
        lane: sql`b.database_id`,
        accountId: sql`b.account_id`,
        databaseId: sql`b.database_id`,
        backupId: sql`b.id`,
        from: sql`backups b WHERE b.id = ${id}`,
      },
      backupQueueMs,
    ),
  ] as const;
}

/**
 * The same of volume `v` of site `s`, for which the guard holds. It delays no other job of the site, unless `inLane`:
 * then it precedes those that are queued later.
 */
export function queueVolumeBackup(
  ctx: Ctx,
  id: Id<"backup">,
  trigger: BackupTrigger,
  guard: SQL,
  { inLane = false } = {},
) {
  return [
    ctx.statement(sql`
      INSERT OR IGNORE INTO backups (id, database_id, account_id, status, "trigger", name, database_name, type, image,
        pack_id, host_id, verifications, created_at)
      SELECT ${id}, s.id || '/' || v.name, s.account_id, 'RUNNING', ${trigger}, s.name, '', 'volume', '',
        s.pack_id, s.host_id, 0, ${ctx.now().getTime()}
      FROM site_volumes v JOIN sites s ON s.id = v.site_id
      WHERE s.host_id IS NOT NULL AND s.status NOT IN ('PENDING', 'SUSPENDED', 'DELETING') AND ${guard}`),
    queueJob(
      ctx,
      "volume.backup",
      {
        hostId: sql`b.host_id`,
        lane: inLane ? sql`substr(b.database_id, 1, instr(b.database_id, '/') - 1)` : sql`b.database_id`,
        accountId: sql`b.account_id`,
        siteId: sql`substr(b.database_id, 1, instr(b.database_id, '/') - 1)`,
        backupId: sql`b.id`,
        from: sql`backups b WHERE b.id = ${id}`,
      },
      backupQueueMs,
    ),
  ] as const;
}

/** No backup is being restored into the volume: its files are about to be replaced. */
export const notRestoring = (key: VolumeKey): SQL =>
  sql`NOT EXISTS (SELECT 1 FROM jobs WHERE site_id = ${volumeOf(key)?.siteId} AND kind = 'volume.restore' AND ${openJob}
    AND volume = ${volumeOf(key)?.name})`;

/**
 * A job that verifies backup `b` where `guard` holds. It has its own lane because it touches no database in use. It waits for the host
 * that has the data anyway: another one is shown it only once that is removed.
 */
export const queueVerification = (ctx: Ctx, type: BackupType | "database", guard: SQL) =>
  queueJob(
    ctx,
    type === "volume" ? "volume.verify" : "database.verify",
    {
      hostId: sql`(SELECT id FROM hosts WHERE id = b.host_id AND status <> 'REMOVED')`,
      lane: sql`b.id`,
      accountId: sql`b.account_id`,
      backupId: sql`b.id`,
      from: sql`backups b WHERE b.status IN ('STORED', 'VERIFIED') AND b.removed_at IS NULL AND ${guard}
        AND ${idleLane(sql`b.id`)}`,
    },
    backupQueueMs,
  );
