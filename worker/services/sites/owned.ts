import { eq } from "drizzle-orm";
import { isId, type Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { SiteRow } from "../../db/rows.ts";
import { sites } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";

/** Parses a site id. @throws AppError not_found */
export function siteIdOf(text: string): Id<"site"> {
  if (!isId("site", text)) throw new AppError("not_found");
  return text;
}

/** The query for a site, for a batch whose first result is passed to `requireOwned`. */
export const siteById = (ctx: Ctx, id: Id<"site">) => ctx.db.select().from(sites).where(eq(sites.id, id));

/** A single site: not_found, then forbidden. */
export async function siteOwnedBy(ctx: Ctx, siteId: string): Promise<SiteRow> {
  const [site] = await siteById(ctx, siteIdOf(siteId));
  return requireOwned(ctx, site);
}
