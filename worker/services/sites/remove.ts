import type { ById } from "../../../protocol/api/common.ts";
import type { SiteActionAccepted, SiteRemoveQuery } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { deleteSite } from "../../jobs/sites/remove.ts";
import { siteOwnedBy } from "./owned.ts";
import { sql } from "drizzle-orm";

/** @throws AppError conflict if the site has volumes and they are not to be deleted */
export async function removeSite(
  ctx: Ctx,
  { id: siteId, deleteVolumes }: ById & SiteRemoveQuery,
): Promise<SiteActionAccepted> {
  const site = await siteOwnedBy(ctx, siteId);
  if (deleteVolumes !== "0") return deleteSite(ctx, site);
  const none = sql`NOT EXISTS (SELECT 1 FROM site_volumes WHERE site_id = ${site.id})`;
  const before = site.status;
  const accepted = await deleteSite(ctx, site, none);
  if (before === "DELETING") return accepted;
  const now = await siteOwnedBy(ctx, siteId).catch(() => null);
  if (now !== null && now.status !== "DELETING")
    throw conflict(
      "The site has volumes, whose data would be lost. Save it, then delete the site with deleteVolumes=1.",
    );
  return accepted;
}
