import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { BackupTrigger } from "../../../protocol/states.ts";
import type { Ctx } from "../../ctx.ts";
import { backupQueueMs } from "../../domain/job-rules.ts";
import { queueJob } from "../insert.ts";
import { idleLane } from "../../db/job-conditions.ts";

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

/** A job that verifies backup `b` where `guard` holds. It has its own lane because it touches no database in use. */
export const queueVerification = (ctx: Ctx, guard: SQL) =>
  queueJob(
    ctx,
    "database.verify",
    {
      hostId: sql`(SELECT id FROM hosts WHERE id = b.host_id AND status <> 'REMOVED' AND offline_since IS NULL)`,
      lane: sql`b.id`,
      accountId: sql`b.account_id`,
      backupId: sql`b.id`,
      from: sql`backups b WHERE b.status IN ('STORED', 'VERIFIED') AND b.removed_at IS NULL AND ${guard}
        AND ${idleLane(sql`b.id`)}`,
    },
    backupQueueMs,
  );
