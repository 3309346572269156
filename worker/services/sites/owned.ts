import { eq } from "drizzle-orm";
import { isId } from "../../../protocol/ids.ts";
import { accountOf, type Ctx } from "../../context.ts";
import { sites } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";

export type SiteRow = typeof sites.$inferSelect;

/** The only way to a site by id: not_found, then forbidden. */
export async function siteOwnedBy(ctx: Ctx, siteId: string): Promise<SiteRow> {
  if (!isId("site", siteId)) throw new AppError("not_found");
  const [site] = await ctx.db.select().from(sites).where(eq(sites.id, siteId));
  if (!site) throw new AppError("not_found");
  if (site.accountId !== accountOf(ctx)) throw new AppError("forbidden");
  return site;
}
