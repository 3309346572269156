import { and, eq, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import { invoices, sites } from "../../db/schema.ts";
import { addMonths } from "../../domain/pricing.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { databasePaid } from "../databases/paid.ts";
import { queueDeployment } from "../deployments/queue.ts";

export type Settlement = {
  processor: "test" | "stripe";
  reference: string;
  amountCents: number;
  currency: string;
};

/**
 * One batch: invoice paid, payment recorded, site DEPLOYING or database PROVISIONING, its job queued for the host that
 * fits best; or nothing of it. However often it is reported, the first report settles.
 * @returns whether this report settled it
 */
export async function settleInvoice(ctx: Ctx, invoiceId: Id<"invoice">, paid: Settlement): Promise<boolean> {
  const mark = ctx.newMark();
  const now = ctx.now();
  const [invoice] = await ctx.db.select().from(invoices).where(eq(invoices.id, invoiceId));
  if (!invoice || (invoice.kind !== "site" && invoice.kind !== "database")) return false;
  const siteId = sql`(SELECT resource_id FROM invoices WHERE settlement_mark = ${mark})`;
  const { from, to, wanted } = siteEvents.invoicePaid;
  const settling = [
    ctx.db
      .update(invoices)
      .set({ status: "paid", paidAt: now, settlementMark: mark })
      .where(
        and(
          eq(invoices.id, invoiceId),
          eq(invoices.status, "unpaid"),
          eq(invoices.amountCents, paid.amountCents),
          eq(invoices.currency, paid.currency),
        ),
      )
      .returning({ id: invoices.id }),
    ctx.statement(sql`
      INSERT INTO payments (id, invoice_id, processor, reference, amount_cents, currency, created_at)
      SELECT ${ctx.newId("payment")}, id, ${paid.processor}, ${paid.reference}, ${paid.amountCents}, ${paid.currency}, ${now.getTime()}
      FROM invoices WHERE settlement_mark = ${mark}`),
  ] as const;
  if (invoice.kind === "database") {
    const [[settled], , [database]] = await ctx.db.batch([
      ...settling,
      ...databasePaid(ctx, invoice, mark, now),
    ]);
    if (database) ctx.hosts.wake(database.hostId);
    return settled !== undefined;
  }
  const [[settled], , [site]] = await ctx.db.batch([
    ...settling,
    ctx.db
      .update(sites)
      .set({
        status: to,
        wanted,
        paidUntil: addMonths(now, invoice.termMonths ?? 1),
        updatedAt: now,
      })
      .where(and(eq(sites.id, siteId), sql`${sites.status} IN ${from}`))
      .returning({ hostId: sites.hostId }),
    ...queueDeployment(ctx, siteId, { trigger: "payment" }),
  ]);
  if (site) ctx.hosts.wake(site.hostId);
  return settled !== undefined;
}
