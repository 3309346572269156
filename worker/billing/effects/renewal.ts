import { and, eq, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { sites } from "../../db/schema.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { queueDatabaseJob } from "../../jobs/databases/queue.ts";
import { deploymentQueue, queueSiteJob } from "../../jobs/deployments/queue.ts";
import { queueMove } from "../../jobs/hosts/queue-move.ts";
import { roomAgain } from "../../jobs/hosts/placement.ts";
import { queueStop } from "../../jobs/queue-stop.ts";
import { tableOf, termedOf } from "../../db/resource.ts";
import { addMonthsTo, inService } from "../terms/resource.ts";
import type { Ctx } from "../../ctx.ts";
import { effect, type EffectOf, type Undone } from "./effect.ts";

/**
 * Extends the term from its own end without a restart. A suspended resource gets a term from now on and starts again.
 * A pack change takes effect with the new term.
 */
export const paidRenewal: EffectOf = (ctx, invoice, mark, now) => {
  const kind = termedOf(invoice.resourceId);
  if (!kind) throw new Error(`The resource of renewal ${invoice.id} has no term`);
  const id = invoice.resourceId as Id<"site"> | Id<"database">;
  const { packId } = invoice;
  const months = sql`${invoice.termMonths ?? 1}`;
  const isPaid = sql`EXISTS (SELECT 1 FROM invoices WHERE settlement_mark = ${mark})`;
  const nowMs = now.getTime();
  return effect(
    {
      extended: ctx.statement(sql`
        UPDATE ${tableOf(kind)} SET paid_until = ${addMonthsTo(sql`paid_until`, months)}, billing_term = ${months},
          next_billing_term = NULL, next_pack_id = CASE WHEN pack_id = ${packId} THEN NULL ELSE ${packId} END,
          next_pack_at = CASE WHEN pack_id = ${packId} THEN NULL ELSE max(paid_until, ${nowMs}) END, updated_at = ${nowMs}
        WHERE id = ${id} AND status IN ${inService} AND ${isPaid}`),
      resumed: ctx.statement(sql`
        UPDATE ${tableOf(kind)} SET paid_until = ${addMonthsTo(sql`${nowMs}`, months)}, billing_term = ${months},
          next_billing_term = NULL, next_pack_id = NULL, next_pack_at = NULL,
          pack_changed_at = CASE WHEN pack_id = ${packId} THEN pack_changed_at ELSE ${nowMs} END, pack_id = ${packId},
          suspended_at = NULL, mark = ${mark}, updated_at = ${nowMs}, status = ${resumed[kind]}
        WHERE id = ${id} AND status = 'SUSPENDED' AND ${isPaid}`),
      started:
        kind === "sites"
          ? startSite(ctx, id as Id<"site">, mark)
          : startDatabase(ctx, id as Id<"database">, mark),
    },
    () => ctx.hosts.wake(null),
  );
};

/** A resource that its owner had stopped stays stopped. */
const resumed = {
  sites: sql`CASE WHEN wanted = 'STOPPED' AND current_deployment_id IS NOT NULL THEN 'STOPPED' ELSE ${siteEvents.resumed.to} END`,
  databases: sql`CASE WHEN version IS NULL AND wanted = 'RUNNING' THEN ${databaseEvents.provisionRequested.to} ELSE ${databaseEvents.resumed.to} END`,
};

/**
 * Starts the version in service on its host; deploys it again if the site has no host; deploys anew if none ever ran.
 */
function startSite(ctx: Ctx, id: Id<"site">, mark: string) {
  const mine = sql`SELECT id FROM sites WHERE id = ${id} AND mark = ${mark} AND status = 'DEPLOYING'`;
  return {
    room: ctx.db
      .update(sites)
      .set(roomAgain(sql`${ctx.now().getTime()}`).set)
      .where(and(eq(sites.id, id), eq(sites.mark, mark), eq(sites.status, "DEPLOYING"))),
    move: queueMove(ctx, sql`(${mine} AND host_id IS NULL AND current_deployment_id IS NOT NULL)`),
    queue: deploymentQueue(sql`(${mine} AND current_deployment_id IS NULL)`)(ctx, { trigger: "renewal" }),
    start: queueSiteJob(
      ctx,
      "site.start",
      id,
      sql`s.mark = ${mark} AND s.status = 'DEPLOYING' AND s.host_id IS NOT NULL AND s.current_deployment_id IS NOT NULL`,
    ),
    // Shows the page of a stopped site again.
    stop: queueStop(ctx, "sites", id, sql`r.mark = ${mark} AND r.status = 'STOPPED'`),
  };
}

const startDatabase = (ctx: Ctx, id: Id<"database">, mark: string) => ({
  provision: queueDatabaseJob(
    ctx,
    "database.provision",
    id,
    sql`d.mark = ${mark} AND d.status = 'PROVISIONING'`,
  ),
  start: queueDatabaseJob(
    ctx,
    "database.start",
    id,
    sql`d.mark = ${mark} AND d.status = 'STOPPED' AND d.wanted = 'RUNNING'`,
  ),
});

/**
 * Takes back the refunded term; a part that has begun ends now. A term that a later paid renewal extends is kept,
 * since taking it back would take the later one. The resource keeps running until its term is next checked.
 */
export const refundedTerm: Undone = (ctx, { resourceId, periodEnd }, mark, now) => {
  const kind = termedOf(resourceId);
  const begins = periodEnd?.getTime() ?? 0;
  return kind === null
    ? []
    : [
        ctx.statement(sql`
          UPDATE ${tableOf(kind)} SET paid_until = min(paid_until, max(${now.getTime()}, ${begins})), updated_at = ${now.getTime()}
          WHERE id = ${resourceId} AND EXISTS (SELECT 1 FROM refunds WHERE mark = ${mark})
            AND NOT EXISTS (SELECT 1 FROM invoices WHERE resource_id = ${resourceId} AND kind = 'renewal' AND status = 'paid'
              AND period_end > ${begins})`),
      ];
};
