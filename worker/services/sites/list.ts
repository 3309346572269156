import { and, asc, desc, eq, sql } from "drizzle-orm";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Site } from "../../../protocol/api/sites.ts";
import { accountOf, type Ctx } from "../../context.ts";
import { deployments, domains, siteEnvVersions, sites } from "../../db/schema.ts";
import { before, page } from "../page.ts";
import { newestEnv, shownInRecord, siteView } from "./view.ts";

/** The caller's sites, newest first. */
export async function listSites(ctx: Ctx, query: ListQuery): Promise<Page<Site>> {
  const rows = () =>
    ctx.db
      .select()
      .from(sites)
      .where(and(eq(sites.accountId, accountOf(ctx)), before(sites.id, query)))
      .orderBy(desc(sites.id))
      .limit(query.limit + 1);
  const ids = ctx.db.$with("shown").as(rows());
  const [found, shown, env, names] = await ctx.db.batch([
    rows(),
    ctx.db
      .with(ids)
      .select()
      .from(deployments)
      .where(sql`${deployments.siteId} IN (SELECT id FROM ${ids}) AND ${shownInRecord}`)
      .orderBy(desc(deployments.number)),
    ctx.db
      .with(ids)
      .select()
      .from(siteEnvVersions)
      .where(sql`${siteEnvVersions.siteId} IN (SELECT id FROM ${ids}) AND ${newestEnv}`),
    ctx.db
      .with(ids)
      .select()
      .from(domains)
      .where(sql`${domains.siteId} IN (SELECT id FROM ${ids})`)
      .orderBy(asc(domains.id)),
  ]);
  return page(found, query, (site) =>
    siteView(ctx, site, shown, env.find(({ siteId }) => siteId === site.id)?.entries ?? [], names),
  );
}
