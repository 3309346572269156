import { and, eq, isNotNull, isNull, sql } from "drizzle-orm";
import type { Domain } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { domains, sites } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import type { SiteRow } from "../../db/rows.ts";
import { challengeName, domainView, type DomainRow } from "./view.ts";
import { queueRoutes } from "./queue-routes.ts";

/**
 * Looks up the TXT record. The first site to prove a name gets it and is served under it. Another site can take the
 * name over once the holder's record is gone, because a domain's new owner must not depend on its previous one.
 */
export async function verifyDomain(
  ctx: Ctx,
  site: SiteRow,
  row: DomainRow,
  holder: Holder | undefined,
): Promise<Domain> {
  const { name } = row;
  if (row.verifiedAt) return domainView(ctx, site, row);
  let records: string[];
  try {
    records = await ctx.resolveTxt(challengeName(name));
  } catch {
    throw conflict("The name servers could not be queried. Try again in a minute.");
  }
  if (!records.includes(row.challenge))
    throw conflict(
      records.length === 0
        ? `There is no TXT record at ${challengeName(name)} yet. Create it, wait a few minutes, then verify again.`
        : `The TXT record at ${challengeName(name)} has a different value. Set it to ${row.challenge}.`,
    );
  const isGivenUp = holder !== undefined && !records.includes(holder.challenge);
  const verifiedAt = ctx.now();
  const {
    verified: [verified],
  } = await batch(ctx, {
    domains: ctx.db
      .update(domains)
      .set({ verifiedAt: null })
      .where(
        and(
          sql`${domains.id} = ${isGivenUp ? holder.id : null}`,
          isNotNull(domains.verifiedAt),
          sql`EXISTS (SELECT 1 FROM domains own WHERE own.id = ${row.id})`,
        ),
      ),
    verified: ctx.db
      .update(domains)
      .set({ verifiedAt })
      .where(
        and(
          eq(domains.id, row.id),
          isNull(domains.verifiedAt),
          sql`NOT EXISTS (SELECT 1 FROM domains other WHERE other.name = ${name} AND other.verified_at IS NOT NULL)`,
        ),
      )
      .returning(),
    isGivenUp: isGivenUp ? [queueRoutes(ctx, holder.siteId, sql`1`)] : [],
    routes: queueRoutes(
      ctx,
      site.id,
      sql`(SELECT verified_at FROM domains WHERE id = ${row.id}) IS NOT NULL`,
    ),
  });
  if (!verified)
    throw conflict(
      `${name} is in use by another site. Remove it there first, or delete that site's TXT record and try again in an hour.`,
    );
  if (site.hostId) ctx.hosts.wake(site.hostId);
  if (isGivenUp && holder.hostId) ctx.hosts.wake(holder.hostId);
  return domainView(ctx, site, verified);
}

export type Holder = Awaited<ReturnType<typeof holderOf>>[number];

/** The query for the site that holds the name. */
export const holderOf = (ctx: Ctx, name: string) =>
  ctx.db
    .select({ id: domains.id, siteId: domains.siteId, challenge: domains.challenge, hostId: sites.hostId })
    .from(domains)
    .innerJoin(sites, eq(sites.id, domains.siteId))
    .where(and(eq(domains.name, name), isNotNull(domains.verifiedAt)));
