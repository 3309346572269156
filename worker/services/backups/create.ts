import type { ById } from "../../../protocol/api/common.ts";
import { eq, sql } from "drizzle-orm";
import type { Backup } from "../../../protocol/api/backups.ts";
import { triggerOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { backups } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { databaseOwnedBy } from "../databases/owned.ts";
import { queueBackup } from "../../jobs/backups/queue.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { backupView } from "./view.ts";

/** Starts a backup of a running database. */
export async function createBackup(ctx: Ctx, { id: databaseId }: ById): Promise<Backup> {
  const database = await databaseOwnedBy(ctx, databaseId);
  await refuseUnpaid(ctx, database);
  const id = ctx.newId("backup");
  const {
    row: [row],
  } = await batch(ctx, {
    backup: queueBackup(
      ctx,
      id,
      triggerOf(ctx),
      sql`d.id = ${database.id} AND d.status = 'RUNNING' AND d.wanted = 'RUNNING'`,
    ),
    row: ctx.db.select().from(backups).where(eq(backups.id, id)),
  });
  if (!row)
    throw conflict(
      database.status === "RUNNING" && database.wanted === "RUNNING"
        ? "A backup of this database is already in progress. Wait until it has finished."
        : `A ${database.status} database cannot be backed up. Start it first.`,
    );
  ctx.hosts.wake(row.hostId);
  return backupView(row);
}
