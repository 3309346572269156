import { sql } from "drizzle-orm";
import { eq, inArray } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { domains, sites } from "../../db/schema.ts";
import { eachAlone } from "../../each-alone.ts";
import { lookAt } from "./look.ts";

/** Each takes some twenty requests to resolvers, and a Worker may make a thousand. */
const perRound = 25;
const atOnce = 5;
/** If this round is interrupted, they are due again after this. */
const claimMs = 5 * 60_000;

/**
 * Run by cron. Accounts take turns, so that one with many domains delays nobody else's. What serves is looked at last: somebody waits for
 * the others, and after an outage all are due.
 */
export async function lookAtDueDomains(ctx: Ctx): Promise<void> {
  const now = ctx.now();
  const serves = sql`d.verified_at IS NOT NULL AND d.state = 'ACTIVE'`;
  const claimed = await ctx.db
    .update(domains)
    .set({ nextCheckAt: new Date(now.getTime() + claimMs) })
    .where(
      sql`id IN (SELECT id FROM (
        SELECT d.id, coalesce(d.next_check_at, 0) AS due, ${serves} AS serves,
          row_number() OVER (PARTITION BY s.account_id ORDER BY ${serves}, coalesce(d.next_check_at, 0)) AS turn
        FROM domains d JOIN sites s ON s.id = d.site_id
        WHERE (d.next_check_at IS NULL OR d.next_check_at <= ${now.getTime()}) AND s.status <> 'DELETING'
      ) ORDER BY turn, serves, due LIMIT ${perRound})`,
    )
    .returning({ id: domains.id });
  if (claimed.length === 0) return;
  const rows = await ctx.db
    .select({ domain: domains, site: sites })
    .from(domains)
    .innerJoin(sites, eq(sites.id, domains.siteId))
    .where(
      inArray(
        domains.id,
        claimed.map(({ id }) => id),
      ),
    );
  await eachAlone(
    "domains",
    rows.map((row) => ({ ...row, id: row.domain.id })),
    ({ site, domain }) => lookAt(ctx, site, domain),
    atOnce,
  );
}
