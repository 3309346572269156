import { and, desc, eq, sql } from "drizzle-orm";
import type { Page } from "../../../protocol/api/common.ts";
import type { AllSitesQuery, SiteForOperator } from "../../../protocol/api/console.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts, hosts, sites } from "../../db/schema.ts";
import { siteUrl } from "../../domain/slug.ts";
import { before, containing, only, page } from "../page.ts";

const domainNames = sql<string[]>`(SELECT json_group_array(name) FROM (
  SELECT name FROM domains WHERE site_id = sites.id AND verified_at IS NOT NULL ORDER BY id))`
  .mapWith((text: string) => JSON.parse(text) as string[])
  .as("domain_names");
const latestError = sql<
  string | null
>`(SELECT error FROM deployments WHERE site_id = sites.id ORDER BY number DESC LIMIT 1)`.as("latest_error");
/** The label of the site's own address, and its custom domains. */
const addresses = sql`sites.slug || ' ' || coalesce((SELECT group_concat(name, ' ') FROM domains WHERE site_id = sites.id), '')`;

/** The sites of all accounts, for operators, newest first. */
export async function listAllSites(ctx: Ctx, query: AllSitesQuery): Promise<Page<SiteForOperator>> {
  const rows = await ctx.db
    .select({
      id: sites.id,
      name: sites.name,
      accountId: sites.accountId,
      accountEmail: accounts.email,
      status: sites.status,
      slug: sites.slug,
      hostId: sites.hostId,
      hostName: sql<string | null>`${hosts.name}`.as("host_name"),
      offlineSince: hosts.offlineSince,
      packId: sites.packId,
      paidUntil: sites.paidUntil,
      createdAt: sites.createdAt,
      updatedAt: sites.updatedAt,
      domains: domainNames,
      error: latestError,
    })
    .from(sites)
    .innerJoin(accounts, eq(accounts.id, sites.accountId))
    .leftJoin(hosts, eq(hosts.id, sites.hostId))
    .where(
      and(
        only(sites.status, query.status),
        only(sites.hostId, query.hostId),
        only(sites.accountId, query.accountId),
        containing(query.search, sites.id, sites.name, addresses),
        before(sites.id, query),
      ),
    )
    .orderBy(desc(sites.id))
    .limit(query.limit + 1);
  return page(rows, query, ({ slug, offlineSince, ...row }) => ({
    ...row,
    url: siteUrl(ctx.config.SITES_ORIGIN, slug),
    hostOffline: offlineSince !== null,
    paidUntil: row.paidUntil?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }));
}
