import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { SiteRow } from "../../db/rows.ts";
import { sites } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";

/** The query for a site, for a batch whose first result is passed to `requireOwned`. */
export const siteById = (ctx: Ctx, id: Id<"site">) => ctx.db.select().from(sites).where(eq(sites.id, id));

/** A single site: not_found, then forbidden. */
export async function siteOwnedBy(ctx: Ctx, siteId: string): Promise<SiteRow> {
  const [site] = await siteById(ctx, idIn("site", siteId));
  return requireOwned(ctx, site);
}
