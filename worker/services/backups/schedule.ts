import type { ById } from "../../../protocol/api/common.ts";
import { eq, sql } from "drizzle-orm";
import type { BackupSettingsPatch } from "../../../protocol/api/backups.ts";
import type { Database } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { backups, databases } from "../../db/schema.ts";
import { invalid } from "../../domain/app-error.ts";
import { backupScheduleProblem, nextBackupAt } from "../../domain/backup-rules.ts";
import { databaseOwnedBy } from "../databases/owned.ts";
import { databaseView, selectDatabases } from "../databases/view.ts";
import { requireOwned } from "../owned.ts";

/** Sets when a database is backed up automatically, and how many backups are kept. */
export async function scheduleBackups(
  ctx: Ctx,
  { id: databaseId, backups: change }: ById & { backups: BackupSettingsPatch },
): Promise<Database> {
  const { id, backupSchedule, backupHourUtc } = await databaseOwnedBy(ctx, databaseId);
  const schedule = change.schedule === undefined ? backupSchedule : change.schedule;
  const problem = backupScheduleProblem(schedule, ctx.now());
  if (problem !== null) throw invalid("backups.schedule", problem);
  const hourUtc = change.hourUtc ?? backupHourUtc;
  const {
    changed: [changed],
  } = await batch(ctx, {
    databases: ctx.db
      .update(databases)
      .set({
        backupSchedule: schedule,
        backupHourUtc: hourUtc,
        ...(change.keep !== undefined && { backupKeep: change.keep }),
        nextBackupAt: nextBackupAt({ schedule, hourUtc }, id, ctx.now()),
        updatedAt: ctx.now(),
      })
      .where(eq(databases.id, id)),
    backups: ctx.db
      .update(backups)
      .set({ shrunkFrom: null })
      .where(change.acceptSmaller ? eq(backups.databaseId, id) : sql`0`),
    changed: selectDatabases(ctx.db).where(eq(databases.id, id)),
  });
  return databaseView(requireOwned(ctx, changed));
}
