import { and, eq, isNull, sql } from "drizzle-orm";
import type { Domain } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../context.ts";
import { domains } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import type { SiteRow } from "../sites/owned.ts";
import { challengeName, domainView, type DomainRow } from "./view.ts";
import { queueRoutes } from "./queue-routes.ts";

/** Looks for the TXT record now. The first site that proves a name has it; it is served from then on. */
export async function verifyDomain(ctx: Ctx, site: SiteRow, row: DomainRow): Promise<Domain> {
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
  const verifiedAt = ctx.now();
  const [[verified]] = await ctx.db.batch([
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
    queueRoutes(ctx, site, sql`(SELECT verified_at FROM domains WHERE id = ${row.id}) IS NOT NULL`),
  ]);
  if (!verified) throw conflict(`${name} is served by another site: remove it there first.`);
  if (site.hostId) ctx.hosts.wake(site.hostId);
  return domainView(ctx, site, verified);
}
