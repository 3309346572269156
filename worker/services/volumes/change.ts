import { and, eq } from "drizzle-orm";
import type { VolumeChanged, VolumePatch } from "../../../protocol/api/site-volumes.ts";
import type { ById } from "../../../protocol/api/common.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { siteVolumes } from "../../db/schema.ts";
import { AppError, invalid } from "../../domain/app-error.ts";
import { backupScheduleProblem, nextBackupAt } from "../../domain/backup-rules.ts";
import { volumeKey } from "../../domain/volume-keys.ts";
import { siteAndVolume } from "./owned.ts";
import { volumeBackupsView } from "./view.ts";

/** Sets when a volume is backed up automatically, and how many backups are kept. */
export async function changeVolume(
  ctx: Ctx,
  { id, name, backups: change }: ById & { name: string } & VolumePatch,
): Promise<VolumeChanged> {
  const { site, volume } = await siteAndVolume(ctx, id, name);
  const schedule = change.schedule === undefined ? volume.backupSchedule : change.schedule;
  const problem = backupScheduleProblem(schedule, ctx.now());
  if (problem !== null) throw invalid("backups.schedule", problem);
  const hourUtc = change.hourUtc ?? volume.backupHourUtc;
  const {
    changed: [changed],
  } = await batch(ctx, {
    changed: ctx.db
      .update(siteVolumes)
      .set({
        backupSchedule: schedule,
        backupHourUtc: hourUtc,
        ...(change.keep !== undefined && { backupKeep: change.keep }),
        nextBackupAt: nextBackupAt({ schedule, hourUtc }, volumeKey(site.id, name), ctx.now()),
      })
      .where(and(eq(siteVolumes.siteId, site.id), eq(siteVolumes.name, name)))
      .returning(),
  });
  if (!changed) throw new AppError("not_found");
  return { name, backups: volumeBackupsView(changed) };
}
