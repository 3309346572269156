import { and, eq, isNotNull, isNull, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import type { SiteRow } from "../../db/rows.ts";
import { domains, sites } from "../../db/schema.ts";
import { takenMail } from "../../domain/domain-mails.ts";
import { queueMail } from "../../mails/queue.ts";
import { queueRoutes } from "../../jobs/queue-routes.ts";
import { proofRecord, type DomainRow } from "./view.ts";

/**
 * Gives the name to the site, whose record is among those found. The first site to prove a name gets it. Another site
 * can take it over once the holder's record is gone, because a domain's new owner must not depend on its previous one.
 * @returns null if another site holds the name
 */
export async function prove(
  ctx: Ctx,
  site: Pick<SiteRow, "id" | "hostId">,
  row: DomainRow,
  records: readonly string[],
): Promise<DomainRow | null> {
  const { name } = row;
  const [holder] = await holderOf(ctx, name);
  const isGivenUp = holder !== undefined && !records.includes(holder.challenge);
  const now = ctx.now();
  const {
    verified: [verified],
  } = await batch(ctx, {
    released: ctx.db
      .update(domains)
      .set({ verifiedAt: null, lostSince: null, certificate: null, looks: 0, nextCheckAt: now })
      .where(
        and(
          sql`${domains.id} = ${isGivenUp ? holder.id : null}`,
          isNotNull(domains.verifiedAt),
          sql`EXISTS (SELECT 1 FROM domains own WHERE own.id = ${row.id})`,
        ),
      ),
    verified: ctx.db
      .update(domains)
      .set({ verifiedAt: now, state: "VERIFIED", looks: 0, nextCheckAt: now, lostSince: null })
      .where(
        and(
          eq(domains.id, row.id),
          isNull(domains.verifiedAt),
          sql`NOT EXISTS (SELECT 1 FROM domains other WHERE other.name = ${name} AND other.verified_at IS NOT NULL)`,
        ),
      )
      .returning(),
    isGivenUp: isGivenUp ? [queueRoutes(ctx, holder.siteId, sql`1`)] : [],
    mail: isGivenUp
      ? [
          queueMail(
            ctx,
            {
              id: `domain-taken:${holder.id}:${now.getTime()}`,
              accountId: holder.accountId,
              ...takenMail({ name, site: holder.site, record: proofRecord({ ...holder, name }) }),
            },
            sql`(SELECT verified_at FROM domains WHERE id = ${holder.id}) IS NULL`,
          ),
        ]
      : [],
    routes: queueRoutes(
      ctx,
      site.id,
      sql`(SELECT verified_at FROM domains WHERE id = ${row.id}) IS NOT NULL`,
    ),
  });
  if (!verified) return null;
  if (site.hostId) ctx.hosts.wake(site.hostId);
  if (isGivenUp && holder.hostId) ctx.hosts.wake(holder.hostId);
  return verified;
}

/** The query for the site that holds the name. */
const holderOf = (ctx: Ctx, name: string) =>
  ctx.db
    .select({
      id: domains.id,
      siteId: domains.siteId,
      challenge: domains.challenge,
      provedAs: domains.provedAs,
      hostId: sites.hostId,
      accountId: sites.accountId,
      site: sites.name,
    })
    .from(domains)
    .innerJoin(sites, eq(sites.id, domains.siteId))
    .where(and(eq(domains.name, name), isNotNull(domains.verifiedAt)));
