import { and, eq, isNull, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { BackupRow } from "../../db/rows.ts";
import { backups } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";

/** The query for a backup, for a batch whose result is passed to `requireOwned`. */
export const backupById = (ctx: Ctx, id: Id<"backup"> | SQL) =>
  ctx.db
    .select()
    .from(backups)
    .where(and(eq(backups.id, id), isNull(backups.removedAt)));

/** A single backup: not_found, then forbidden. */
export async function backupOwnedBy(ctx: Ctx, backupId: string): Promise<BackupRow> {
  const [row] = await backupById(ctx, idIn("backup", backupId));
  return requireOwned(ctx, row);
}
