import { and, eq, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { sites } from "../../db/schema.ts";
import { addMonths } from "../../domain/pricing.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { deploymentQueue } from "../../jobs/deployments/queue.ts";
import { forgetSite } from "../../jobs/sites/forget.ts";
import { effect, type EffectOf, type Undone } from "./effect.ts";

/** Moves the site to DEPLOYING and queues its deployment and job for the host that fits best. */
export const paidSite: EffectOf = (ctx, invoice, mark, now) => {
  const siteId = sql`(SELECT resource_id FROM invoices WHERE settlement_mark = ${mark})`;
  const { from, to, wanted } = siteEvents.invoicePaid;
  return effect(
    {
      moved: ctx.db
        .update(sites)
        .set({
          status: to,
          wanted,
          paidUntil: addMonths(now, invoice.termMonths ?? 1),
          billingDay: now.getUTCDate(),
          updatedAt: now,
        })
        .where(and(eq(sites.id, siteId), sql`${sites.status} IN ${from}`))
        .returning({ hostId: sites.hostId }),
      queue: deploymentQueue(siteId)(ctx, { trigger: "payment" }),
    },
    ({ moved: [site] }) => {
      if (site) ctx.hosts.wake(site.hostId);
    },
  );
};

/** Deletes a never-paid site with its invoice; no host has any of it. */
export const voidedSite: Undone = (ctx, { resourceId }, mark) =>
  resourceId === null
    ? []
    : [
        ...forgetSite(
          ctx,
          resourceId as Id<"site">,
          sql`EXISTS (SELECT 1 FROM invoices WHERE settlement_mark = ${mark})
            AND (SELECT status FROM sites WHERE id = ${resourceId}) = 'PENDING'`,
        ),
      ];
