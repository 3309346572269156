import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { automaticActivity } from "../../db/insert-activity.ts";
import { batch } from "../../db/batch.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { addDays } from "../../domain/pricing.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { termMail } from "../../domain/term-mails.ts";
import { graceDays } from "../../domain/terms.ts";
import { cancelCommands, endOrphans, tellOrphans } from "../../jobs/commands/cancel-all.ts";
import { cancelDeployments, tellCancelled } from "../../jobs/deployments/cancel-all.ts";
import { reviseCancelled } from "../../jobs/request-cancel.ts";
import { queueMail } from "../../mails/queue.ts";
import { renewalLink } from "./renewal-link.ts";
import { queueStop } from "../../jobs/queue-stop.ts";
import { tableOf, termed, wordOf, type Termed } from "../../db/resource.ts";
import { selectDue, type TermRow } from "./resource.ts";

const events = { sites: siteEvents.suspended, databases: databaseEvents.suspended };

/**
 * Suspends resources that were not renewed: stopped, with their data kept. Not while a payment is pending at the
 * bank, and not before the owner has had the invoice for the whole grace period.
 */
export async function suspendOverdue(ctx: Ctx): Promise<void> {
  for (const kind of termed)
    for (const row of await ctx.db.all<TermRow>(selectDue(kind, overdue(ctx, kind))))
      await suspend(ctx, kind, row, overdue(ctx, kind), "tells its owner");
}

/** Stops what belongs to accounts that operators have suspended, or to one of them; the account itself was told. */
export async function suspendOfAccounts(ctx: Ctx, accountId?: Id<"account">): Promise<void> {
  const whose = accountId === undefined ? sql`1` : sql`r.account_id = ${accountId}`;
  for (const kind of termed) {
    const due = sql`r.account_id IN (SELECT id FROM accounts WHERE suspended_at IS NOT NULL) AND +r.status IN ${events[kind].from}`;
    for (const row of await ctx.db.all<TermRow>(selectDue(kind, sql`${due} AND ${whose}`)))
      await suspend(ctx, kind, row, due);
  }
}

const overdue = (ctx: Ctx, kind: Termed) => {
  const since = addDays(ctx.now(), -graceDays).getTime();
  return sql`r.paid_until <= ${since} AND +r.status IN ${events[kind].from}
    AND EXISTS (SELECT 1 FROM invoices WHERE resource_id = r.id AND kind = 'renewal' AND status = 'unpaid' AND created_at <= ${since})
    AND NOT EXISTS (SELECT 1 FROM invoices i JOIN checkouts c ON c.invoice_id = i.id
      WHERE i.resource_id = r.id AND i.kind = 'renewal' AND c.status = 'processing')`;
};

/** @param due the condition on `r`, which still holds when the statements run */
async function suspend(
  ctx: Ctx,
  kind: Termed,
  row: TermRow,
  due: SQL,
  tells?: "tells its owner",
): Promise<void> {
  const mark = ctx.newMark();
  const now = ctx.now().getTime();
  const suspended = sql`(SELECT mark FROM ${tableOf(kind)} WHERE id = ${row.id}) = ${mark}`;
  const siteId = row.id as Id<"site">;
  const change = ctx.statement(sql`
    UPDATE ${tableOf(kind)} AS r SET status = ${events[kind].to}, suspended_at = ${now}, mark = ${mark}, updated_at = ${now}
    WHERE id = ${row.id} AND ${due}`);
  const stop = queueStop(ctx, kind, row.id, sql`r.mark = ${mark}`);
  const tell = tells && queueMail(ctx, await mailOf(ctx, kind, row), suspended);
  const activity = automaticActivity(
    ctx,
    kind === "sites" ? "suspendSite" : "suspendDatabase",
    sql`${tableOf(kind)} WHERE id = ${row.id} AND mark = ${mark}`,
  );
  if (kind === "databases") await batch(ctx, { change, stop, tell, activity });
  else {
    const {
      deployments: { waited, cancelling },
      orphans,
    } = await batch(ctx, {
      change,
      tell,
      commands: cancelCommands(ctx, siteId, suspended),
      deployments: cancelDeployments(ctx, siteId, suspended),
      // They would run after the stop. What its volumes' backups ask for does not start it.
      waitingJobs: ctx.statement(sql`
        UPDATE jobs SET status = 'CANCELLED', finished_at = ${now}
        WHERE site_id = ${row.id} AND status = 'QUEUED' AND kind LIKE 'site.%' AND kind <> 'site.evict' AND ${suspended}`),
      orphans: endOrphans(ctx, siteId),
      activity,
      stop,
    });
    tellCancelled(ctx, waited);
    reviseCancelled(ctx, cancelling);
    tellOrphans(ctx, orphans);
  }
  ctx.hosts.wake(row.hostId);
}

const mailOf = async (ctx: Ctx, kind: Termed, row: TermRow) => ({
  id: `suspended:${row.id}:${row.paidUntil}`,
  accountId: row.accountId,
  ...termMail("suspended", {
    what: wordOf(kind),
    name: row.name,
    paidUntil: new Date(row.paidUntil),
    payUrl: await renewalLink(ctx, row.id),
  }),
});
