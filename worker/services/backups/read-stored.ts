import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";
import { answerData } from "./download.ts";
import { manifestKeyOf } from "../../jobs/backups/object-keys.ts";
import { leasedBackup, type LeaseClaim } from "./leased.ts";

const readers = ["database.verify", "database.restore", "volume.verify", "volume.restore"] as const;

/** The backup's data, for the host that verifies or restores it. */
export async function readStored(
  ctx: Ctx,
  backupId: string,
  claim: LeaseClaim,
  range: string | undefined,
): Promise<Response> {
  const { backup } = await leasedBackup(ctx, backupId, claim, readers);
  return answerData(ctx, backup, range);
}

export async function readManifest(ctx: Ctx, backupId: string, claim: LeaseClaim): Promise<Response> {
  const { backup } = await leasedBackup(ctx, backupId, claim, readers);
  const body = await ctx.backups.read(manifestKeyOf(backup));
  if (!body) throw new AppError("not_found");
  return new Response(body, { headers: { "Content-Type": "application/json" } });
}
