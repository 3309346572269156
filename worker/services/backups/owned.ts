import { and, eq, isNull, type SQL } from "drizzle-orm";
import { isId, type Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { BackupRow } from "../../db/rows.ts";
import { backups } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";

/** Parses a backup id. @throws AppError not_found */
export function backupIdOf(text: string): Id<"backup"> {
  if (!isId("backup", text)) throw new AppError("not_found");
  return text;
}

/** The query for a backup, for a batch whose result is passed to `requireOwned`. */
export const backupById = (ctx: Ctx, id: Id<"backup"> | SQL) =>
  ctx.db
    .select()
    .from(backups)
    .where(and(eq(backups.id, id), isNull(backups.removedAt)));

/** A single backup: not_found, then forbidden. */
export async function backupOwnedBy(ctx: Ctx, backupId: string): Promise<BackupRow> {
  const [row] = await backupById(ctx, backupIdOf(backupId));
  return requireOwned(ctx, row);
}
