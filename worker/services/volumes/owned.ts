import { and, eq } from "drizzle-orm";
import { VolumeName } from "../../../protocol/api/volumes.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import type { SiteRow } from "../../db/rows.ts";
import { siteVolumes } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { idIn, requireOwned } from "../owned.ts";
import { siteById } from "../sites/owned.ts";

type VolumeRow = typeof siteVolumes.$inferSelect;

/** The queries for a site and its volume of this name, for a batch whose answers are passed to `ownedVolume`. */
export const volumeAndSite = (ctx: Ctx, siteId: Id<"site">, name: string) => ({
  sites: siteById(ctx, siteId),
  volumes: ctx.db
    .select()
    .from(siteVolumes)
    .where(and(eq(siteVolumes.siteId, siteId), eq(siteVolumes.name, name))),
});

/** The caller's site, and its volume if there is one. @throws AppError not_found, then forbidden */
export function ownedVolume(
  ctx: Ctx,
  found: { sites: SiteRow[]; volumes: VolumeRow[] },
  name: string,
): { site: SiteRow; volume: VolumeRow | undefined } {
  const site = requireOwned(ctx, found.sites[0]);
  if (!VolumeName.safeParse(name).success) throw new AppError("not_found");
  return { site, volume: found.volumes[0] };
}

/** A site and its existing volume. @throws AppError not_found, then forbidden */
export async function siteAndVolume(
  ctx: Ctx,
  siteId: string,
  name: string,
): Promise<{ site: SiteRow; volume: VolumeRow }> {
  const { site, volume } = ownedVolume(
    ctx,
    await batch(ctx, volumeAndSite(ctx, idIn("site", siteId), name)),
    name,
  );
  if (!volume) throw new AppError("not_found");
  return { site, volume };
}
