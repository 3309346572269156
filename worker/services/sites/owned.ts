import { eq } from "drizzle-orm";
import { isId, type Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { SiteRow } from "../../db/rows.ts";
import { sites } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";

/** A text that came in as a site's id. @throws AppError not_found */
export function siteIdOf(text: string): Id<"site"> {
  if (!isId("site", text)) throw new AppError("not_found");
  return text;
}

/** The query of a site, for a batch whose first answer goes through `requireOwned`. */
export const siteById = (ctx: Ctx, id: Id<"site">) => ctx.db.select().from(sites).where(eq(sites.id, id));

/** A site and nothing else: not_found, then forbidden. */
export async function siteOwnedBy(ctx: Ctx, siteId: string): Promise<SiteRow> {
  const [site] = await siteById(ctx, siteIdOf(siteId));
  return requireOwned(ctx, site);
}
