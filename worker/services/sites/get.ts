import { and, asc, desc, eq } from "drizzle-orm";
import type { Site } from "../../../protocol/api/sites.ts";
import { isId } from "../../../protocol/ids.ts";
import { accountOf, type Ctx } from "../../context.ts";
import { deployments, domains, siteEnvVersions, sites } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { newestEnv, shownInRecord, siteView } from "./view.ts";

/** One round trip: the site and the deployments its record names. */
export async function getSite(ctx: Ctx, siteId: string): Promise<Site> {
  if (!isId("site", siteId)) throw new AppError("not_found");
  const [[site], shown, [env], names] = await ctx.db.batch([
    ctx.db.select().from(sites).where(eq(sites.id, siteId)),
    ctx.db
      .select()
      .from(deployments)
      .where(and(eq(deployments.siteId, siteId), shownInRecord))
      .orderBy(desc(deployments.number)),
    ctx.db
      .select()
      .from(siteEnvVersions)
      .where(and(eq(siteEnvVersions.siteId, siteId), newestEnv)),
    ctx.db.select().from(domains).where(eq(domains.siteId, siteId)).orderBy(asc(domains.id)),
  ]);
  if (!site) throw new AppError("not_found");
  if (site.accountId !== accountOf(ctx)) throw new AppError("forbidden");
  return siteView(ctx, site, shown, env?.entries ?? [], names);
}
