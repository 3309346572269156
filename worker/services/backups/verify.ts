import { and, eq, isNotNull, sql } from "drizzle-orm";
import type { Backup } from "../../../protocol/api/backups.ts";
import type { Ctx } from "../../ctx.ts";
import { backups } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";
import { backupById, backupOwnedBy } from "./owned.ts";
import { queueVerification } from "../../jobs/backups/queue.ts";
import { backupView } from "./view.ts";

/** Restores it once more into a throw-away server; asked for again meanwhile, it is the same verification. */
export async function verifyBackup(ctx: Ctx, backupId: string): Promise<Backup> {
  const { id, status, sha256 } = await backupOwnedBy(ctx, backupId);
  if (status === "RUNNING") throw conflict("This backup is being made: it is verified after that by itself.");
  if (sha256 === null)
    throw conflict("This backup failed before it was stored and has no file: make another.");
  const [, , [row]] = await ctx.db.batch([
    ctx.db
      .update(backups)
      .set({ status: "STORED", error: null })
      .where(and(eq(backups.id, id), eq(backups.status, "FAILED"), isNotNull(backups.sha256))),
    queueVerification(ctx, sql`b.id = ${id}`),
    backupById(ctx, id),
  ]);
  ctx.hosts.wake(row?.hostId ?? null);
  return backupView(requireOwned(ctx, row));
}
