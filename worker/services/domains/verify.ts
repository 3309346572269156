import { and, eq, isNotNull, isNull, sql } from "drizzle-orm";
import type { Domain } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { domains, sites } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import type { SiteRow } from "../../db/rows.ts";
import { challengeName, domainView, type DomainRow } from "./view.ts";
import { queueRoutes } from "./queue-routes.ts";

/**
 * Looks for the TXT record now. The first site that proves a name has it; it is served from then on. Another site gets it where
 * the first one's record is gone: names are sold, and who has one now is not to wait for who had it.
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
    throw conflict("The name servers could not be asked just now: try again in a minute.");
  }
  if (!records.includes(row.challenge))
    throw conflict(
      records.length === 0
        ? `There is no TXT record at ${challengeName(name)} yet: set it, wait some minutes, then verify again.`
        : `The TXT record at ${challengeName(name)} has another value: set it to ${row.challenge}.`,
    );
  const isGivenUp = holder !== undefined && !records.includes(holder.challenge);
  const verifiedAt = ctx.now();
  const [, [verified]] = await ctx.db.batch([
    ctx.db
      .update(domains)
      .set({ verifiedAt: null })
      .where(
        and(
          sql`${domains.id} = ${isGivenUp ? holder.id : null}`,
          isNotNull(domains.verifiedAt),
          sql`EXISTS (SELECT 1 FROM domains own WHERE own.id = ${row.id})`,
        ),
      ),
    ctx.db
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
    ...(isGivenUp ? [queueRoutes(ctx, holder.siteId, sql`1`)] : []),
    queueRoutes(ctx, site.id, sql`(SELECT verified_at FROM domains WHERE id = ${row.id}) IS NOT NULL`),
  ]);
  if (!verified)
    throw conflict(
      `${name} is served by another site: remove it there first, or take that site's TXT record away and try again in an hour.`,
    );
  if (site.hostId) ctx.hosts.wake(site.hostId);
  if (isGivenUp && holder.hostId) ctx.hosts.wake(holder.hostId);
  return domainView(ctx, site, verified);
}

export type Holder = Awaited<ReturnType<typeof holderOf>>[number];

/** A query of the site that has the name. */
export const holderOf = (ctx: Ctx, name: string) =>
  ctx.db
    .select({ id: domains.id, siteId: domains.siteId, challenge: domains.challenge, hostId: sites.hostId })
    .from(domains)
    .innerJoin(sites, eq(sites.id, domains.siteId))
    .where(and(eq(domains.name, name), isNotNull(domains.verifiedAt)));
