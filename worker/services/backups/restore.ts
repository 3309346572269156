import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, inArray, sql } from "drizzle-orm";
import type { DatabaseActionAccepted, DatabaseRestore } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { noneOpen } from "../../db/job-conditions.ts";
import { batch } from "../../db/batch.ts";
import { databases } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { backupQueueMs } from "../../domain/job-rules.ts";
import { databaseById } from "../databases/owned.ts";
import { idIn, requireOwned } from "../owned.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { backupById } from "./owned.ts";
import { ofDatabase, queueJob } from "../../jobs/insert.ts";
import { queueBackup } from "../../jobs/backups/queue.ts";

/**
 * Replaces the database's data with a backup of this or another database of the account, after a backup of what is there,
 * whose failure does not block it. A running database serves until the restored data is verified.
 */
export async function restoreDatabase(
  ctx: Ctx,
  { id: databaseId, backupId }: ById & DatabaseRestore,
): Promise<DatabaseActionAccepted> {
  // Query even for malformed ids, so that ownership of the database is checked first.
  const {
    foundDatabase: [foundDatabase],
    foundBackup: [foundBackup],
  } = await batch(ctx, {
    foundDatabase: databaseById(ctx, idIn("database", databaseId)),
    foundBackup: backupById(ctx, sql`${backupId}`),
  });
  const database = requireOwned(ctx, foundDatabase);
  const backup = requireOwned(ctx, foundBackup);
  await refuseUnpaid(ctx, database);
  if (backup.status !== "VERIFIED" && backup.status !== "STORED")
    throw conflict(`A ${backup.status} backup cannot be restored. Choose one that is VERIFIED.`);
  if (backup.type !== database.type)
    throw conflict(
      `This is a backup of a ${backup.type} database, which cannot be restored into a ${database.type} database. Choose a database of the same type.`,
    );
  const { from, wanted } = databaseEvents.restoreRequested;
  const mark = ctx.newMark();
  const now = ctx.now();
  const {
    moved: [moved],
  } = await batch(ctx, {
    moved: ctx.db
      .update(databases)
      .set({ wanted, mark, error: null, updatedAt: now })
      .where(
        and(
          eq(databases.id, database.id),
          inArray(databases.status, [...from]),
          noneOpen(database.id, "database.restore"),
          sql`EXISTS (SELECT 1 FROM backups WHERE id = ${backup.id} AND removed_at IS NULL AND status IN ('STORED', 'VERIFIED'))`,
        ),
      )
      .returning(),
    backup: queueBackup(ctx, ctx.newId("backup"), "before-restore", sql`d.mark = ${mark}`),
    queueJob: queueJob(
      ctx,
      "database.restore",
      { ...ofDatabase, backupId: sql`${backup.id}`, from: sql`databases d WHERE d.mark = ${mark}` },
      backupQueueMs,
    ),
  });
  if (!moved)
    throw conflict(
      (from as readonly string[]).includes(database.status)
        ? "A restore into this database is already in progress. Wait until it has finished."
        : `A ${database.status} database cannot be restored. Wait until it is RUNNING or FAILED.`,
    );
  ctx.hosts.wake(moved.hostId);
  return { id: moved.id, status: moved.status };
}
