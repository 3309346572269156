import { eq } from "drizzle-orm";
import type { JobKind } from "../../../protocol/agent/jobs.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { backups, jobs } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import type { BackupRow } from "../../db/rows.ts";
import { idIn } from "../owned.ts";

export type LeaseClaim = { hostId: Id<"host">; jobId: string; attempt: number };
type Leased = { backup: BackupRow; attempt: number };

/** The backup, if the claim is the current lease of one of its jobs of these kinds. */
export async function leasedBackup(
  ctx: Ctx,
  backupId: string,
  claim: LeaseClaim,
  kinds: readonly JobKind[],
): Promise<Leased> {
  const id = idIn("backup", backupId);
  const {
    job: [job],
    backup: [backup],
  } = await batch(ctx, {
    job: ctx.db
      .select()
      .from(jobs)
      .where(eq(jobs.id, idIn("job", claim.jobId))),
    backup: ctx.db.select().from(backups).where(eq(backups.id, id)),
  });
  if (!job || !backup || job.backupId !== id || !kinds.includes(job.kind)) throw new AppError("not_found");
  if (job.hostId !== claim.hostId) throw new AppError("forbidden");
  if (job.status !== "LEASED" || job.attempt !== claim.attempt)
    throw conflict("This lease has ended: another attempt has replaced it, or the job has finished.");
  return { backup, attempt: job.attempt };
}
