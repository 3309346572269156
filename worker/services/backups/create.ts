import { eq, sql } from "drizzle-orm";
import type { Backup } from "../../../protocol/api/backups.ts";
import type { Ctx } from "../../ctx.ts";
import { backups } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { databaseOwnedBy } from "../databases/owned.ts";
import { refuseUnpaid } from "../databases/refuse-unpaid.ts";
import { queueBackup } from "../../jobs/backups/queue.ts";
import { backupView } from "./view.ts";

/** A backup now, of a database that runs. */
export async function createBackup(ctx: Ctx, databaseId: string): Promise<Backup> {
  const database = await databaseOwnedBy(ctx, databaseId);
  await refuseUnpaid(ctx, database);
  const id = ctx.newId("backup");
  const [, , [row]] = await ctx.db.batch([
    ...queueBackup(
      ctx,
      id,
      "api",
      sql`d.id = ${database.id} AND d.status = 'RUNNING' AND d.wanted = 'RUNNING'`,
    ),
    ctx.db.select().from(backups).where(eq(backups.id, id)),
  ]);
  if (!row)
    throw conflict(
      database.status === "RUNNING" && database.wanted === "RUNNING"
        ? "A backup of this database is under way: wait until it has ended."
        : `A ${database.status} database cannot be backed up: start it first.`,
    );
  ctx.hosts.wake(row.hostId);
  return backupView(row);
}
