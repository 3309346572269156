import { eq, sql } from "drizzle-orm";
import type { Backup } from "../../../protocol/api/backups.ts";
import type { ById } from "../../../protocol/api/common.ts";
import { triggerOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { backups } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { volumeKey } from "../../domain/volume-keys.ts";
import { notRestoring, queueVolumeBackup } from "../../jobs/backups/queue.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { siteAndVolume } from "../volumes/owned.ts";
import { backupView } from "./view.ts";

/** Starts a backup of a volume, whether the site runs or not. */
export async function createVolumeBackup(
  ctx: Ctx,
  { id: siteId, name }: ById & { name: string },
): Promise<Backup> {
  const { site } = await siteAndVolume(ctx, siteId, name);
  await refuseUnpaid(ctx, site);
  const id = ctx.newId("backup");
  const {
    row: [row],
  } = await batch(ctx, {
    backup: queueVolumeBackup(
      ctx,
      id,
      triggerOf(ctx),
      sql`s.id = ${site.id} AND v.name = ${name} AND ${notRestoring(volumeKey(site.id, name))}`,
    ),
    row: ctx.db.select().from(backups).where(eq(backups.id, id)),
  });
  if (!row)
    throw conflict(
      site.hostId === null || site.status === "DELETING"
        ? "The site is not on a host, so the volume is still empty. Deploy the site first."
        : "A backup of this volume or a restore into it is in progress. Wait until it has finished.",
    );
  ctx.hosts.wake(row.hostId);
  return backupView(row);
}
