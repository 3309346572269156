import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, isNotNull, sql } from "drizzle-orm";
import type { Backup } from "../../../protocol/api/backups.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { backups } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";
import { backupById, backupOwnedBy } from "./owned.ts";
import { queueVerification } from "../../jobs/backups/queue.ts";
import { backupView } from "./view.ts";

/** Restores the backup into a temporary server once more. A request during a verification returns that verification. */
export async function verifyBackup(ctx: Ctx, { id: backupId }: ById): Promise<Backup> {
  const { id, type, status, sha256 } = await backupOwnedBy(ctx, backupId);
  if (status === "RUNNING")
    throw conflict("This backup is still in progress. It is verified automatically when it is complete.");
  if (sha256 === null) throw conflict("This backup failed and has no file to verify. Create another one.");
  const {
    row: [row],
  } = await batch(ctx, {
    backups: ctx.db
      .update(backups)
      .set({ status: "STORED", error: null, finishedAt: ctx.now() })
      .where(and(eq(backups.id, id), eq(backups.status, "FAILED"), isNotNull(backups.sha256))),
    verification: queueVerification(ctx, type, sql`b.id = ${id}`),
    row: backupById(ctx, id),
  });
  ctx.hosts.wake(row?.hostId ?? null);
  return backupView(requireOwned(ctx, row));
}
