import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, sql } from "drizzle-orm";
import { VolumeName } from "../../../protocol/api/volumes.ts";
import { type VolumeRemoved } from "../../../protocol/api/site-volumes.ts";
import type { Ctx } from "../../ctx.ts";
import { openJob } from "../../db/job-conditions.ts";
import { backups, jobs, siteVolumes } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { keptAfterDeletionMs } from "../../domain/backup-rules.ts";
import { volumeKey } from "../../domain/volume-keys.ts";
import { idIn, ownedWith } from "../owned.ts";
import { askHostOf } from "../running/ask-host.ts";
import { siteById } from "../sites/owned.ts";
import { currentRunOf } from "./list.ts";

/** Permanently deletes the volume's data. Volumes that a version uses or is about to use are refused. */
export async function removeVolume(
  ctx: Ctx,
  { id: siteId, name }: ById & { name: string },
): Promise<VolumeRemoved> {
  const id = idIn("site", siteId);
  const {
    owned: site,
    kept: [kept],
    current: [current],
    open,
  } = await ownedWith(ctx, siteById(ctx, id), {
    kept: ctx.db
      .select()
      .from(siteVolumes)
      .where(and(eq(siteVolumes.siteId, id), eq(siteVolumes.name, name))),
    current: currentRunOf(ctx, id),
    open: ctx.db
      .select({ id: jobs.id })
      .from(jobs)
      .where(and(eq(jobs.siteId, id), isOpen))
      .limit(1),
  });
  if (!kept || !VolumeName.safeParse(name).success) throw new AppError("not_found");
  if (site.volumes.some((one) => one.name === name))
    throw conflict(
      `The site's settings mount the volume ${name}. Remove it from the settings and deploy first.`,
    );
  if (current?.run?.volumes?.some((one) => one.name === name))
    throw conflict(`The version in service uses the volume ${name}. Deploy the site without it first.`);
  if (open.length > 0)
    throw conflict(
      "A job of this site is in progress and may use the volume. Try again when it has finished.",
    );
  await askHostOf<"removeVolume">(ctx, site, { kind: "removeVolume", siteId: id, name });
  await ctx.db.batch([
    ctx.db
      .update(backups)
      .set({ expiresAt: new Date(ctx.now().getTime() + keptAfterDeletionMs) })
      .where(eq(backups.databaseId, volumeKey(id, name))),
    ctx.db
      .delete(siteVolumes)
      .where(
        and(
          eq(siteVolumes.siteId, id),
          eq(siteVolumes.name, name),
          sql`NOT EXISTS (SELECT 1 FROM sites, json_each(sites.volumes) v WHERE sites.id = ${id} AND v.value ->> 'name' = ${name})`,
          sql`NOT EXISTS (SELECT 1 FROM jobs WHERE site_id = ${id} AND ${isOpen})`,
        ),
      ),
  ]);
  return { name, removed: true };
}

/** Telling the ingress where the site is uses no volume. */
const isOpen = sql`${openJob} AND kind <> 'site.route'`;
