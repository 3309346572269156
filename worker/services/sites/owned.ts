import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { SiteRow } from "../../db/rows.ts";
import { sites } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { idIn, requireOwned } from "../owned.ts";

/** The query for a site, for a batch whose first result is passed to `requireOwned`. */
export const siteById = (ctx: Ctx, id: Id<"site">) => ctx.db.select().from(sites).where(eq(sites.id, id));

/** The caller's site, to be changed. @throws AppError not_found, forbidden; conflict if the change would be lost with it */
export function requireKept(ctx: Ctx, row: SiteRow | undefined): SiteRow {
  const site = requireOwned(ctx, row);
  if (site.status === "DELETING")
    throw conflict("This site is being deleted, so that nothing of it can be changed.");
  return site;
}

/** A single site: not_found, then forbidden. */
export async function siteOwnedBy(ctx: Ctx, siteId: string): Promise<SiteRow> {
  const [site] = await siteById(ctx, idIn("site", siteId));
  return requireOwned(ctx, site);
}
