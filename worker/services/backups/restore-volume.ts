import { eq, sql } from "drizzle-orm";
import type { VolumeRestore, VolumeRestoreAccepted } from "../../../protocol/api/site-volumes.ts";
import type { ById } from "../../../protocol/api/common.ts";
import { maxVolumes } from "../../../protocol/api/volumes.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { openJob } from "../../db/job-conditions.ts";
import { jobs } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { backupQueueMs } from "../../domain/job-rules.ts";
import { volumeKey } from "../../domain/volume-keys.ts";
import { notRestoring, queueVolumeBackup } from "../../jobs/backups/queue.ts";
import { ofSite, queueJob } from "../../jobs/insert.ts";
import { idIn, requireOwned } from "../owned.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { ownedVolume, volumeAndSite } from "../volumes/owned.ts";
import { backupById } from "./owned.ts";

/** Volumes that a site may have, with those that are detached. */
const maxKept = 4 * maxVolumes;

/**
 * Replaces what a volume holds with a backup of this or another volume of the account, after a backup of what is there; or
 * creates the volume, detached, if the site has none of this name. A site that mounts the volume must be stopped: no
 * program may hold files that are replaced.
 */
export async function restoreVolume(
  ctx: Ctx,
  { id: siteId, name, backupId }: ById & { name: string } & VolumeRestore,
): Promise<VolumeRestoreAccepted> {
  const found = await batch(ctx, {
    ...volumeAndSite(ctx, idIn("site", siteId), name),
    backups: backupById(ctx, sql`${backupId}`),
  });
  const { site, volume } = ownedVolume(ctx, found, name);
  const backup = requireOwned(ctx, found.backups[0]);
  await refuseUnpaid(ctx, site);
  if (backup.status !== "VERIFIED" && backup.status !== "STORED")
    throw conflict(`A ${backup.status} backup cannot be restored. Choose one that is VERIFIED.`);
  if (backup.type !== "volume")
    throw conflict("This is a backup of a database, which cannot be restored into a volume.");
  const key = volumeKey(site.id, name);
  const now = ctx.now().getTime();
  const jobId = ctx.newId("job");
  const unmounted = sql`(s.status = 'STOPPED' AND s.wanted = 'STOPPED' OR NOT EXISTS (
    SELECT 1 FROM deployments d, json_each(iif(json_valid(d.run), d.run, NULL), '$.volumes') m
    WHERE d.id = s.current_deployment_id AND m.value ->> 'name' = ${name})
    AND NOT EXISTS (SELECT 1 FROM json_each(s.volumes) w WHERE w.value ->> 'name' = ${name}))`;
  const may = sql`s.id = ${site.id} AND s.host_id IS NOT NULL AND s.status NOT IN ('PENDING', 'SUSPENDED', 'DELETING')
    AND ${unmounted} AND ${notRestoring(key)}
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE lane = ${key} AND ${openJob})
    AND EXISTS (SELECT 1 FROM backups WHERE id = ${backup.id} AND removed_at IS NULL AND status IN ('STORED', 'VERIFIED'))`;
  const {
    queued: [queued],
  } = await batch(ctx, {
    volume: ctx.statement(sql`
      INSERT OR IGNORE INTO site_volumes (site_id, name, created_at)
      SELECT s.id, ${name}, ${now} FROM sites s
      WHERE ${may} AND (SELECT count(*) FROM site_volumes WHERE site_id = s.id) < ${maxKept}`),
    // A volume that was just created holds nothing.
    backup:
      volume === undefined
        ? []
        : queueVolumeBackup(ctx, ctx.newId("backup"), "before-restore", sql`v.name = ${name} AND ${may}`, {
            inLane: true,
          }),
    restore: queueJob(
      ctx,
      "volume.restore",
      {
        ...ofSite,
        backupId: sql`${backup.id}`,
        volume: sql`v.name`,
        from: sql`sites s JOIN site_volumes v ON v.site_id = s.id WHERE v.name = ${name} AND ${may}`,
      },
      backupQueueMs,
      jobId,
    ),
    queued: ctx.db.select({ id: jobs.id }).from(jobs).where(eq(jobs.id, jobId)),
  });
  if (!queued) throw conflict(whyNot());
  ctx.hosts.wake(site.hostId);
  return { name, backupId: backup.id, status: "RESTORING" };

  function whyNot(): string {
    if (site.hostId === null || site.status === "DELETING")
      return "The site is not on a host. Deploy it first, then restore.";
    if (site.status !== "STOPPED" && volume)
      return "The site may be using this volume. Stop it first, or restore into a new volume with another name.";
    return `A backup of this volume or a restore into it is in progress, or the site already has ${maxKept} volumes. Wait until it has finished, or remove a volume.`;
  }
}
