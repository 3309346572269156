import type { ById } from "../../../protocol/api/common.ts";
import { eq } from "drizzle-orm";
import type { InvoiceRefund, InvoiceRefunded } from "../../../protocol/api/invoices.ts";
import { invoiceById } from "../../billing/invoices/by-id.ts";
import { beginRefund, finishRefund } from "../../billing/payments/refund.ts";
import type { Ctx } from "../../ctx.ts";
import { refunds } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";

/**
 * Gives the money of a paid invoice back, in full. First it is written down, with the bought credits held so that nobody
 * spends them meanwhile; then the processor is asked; then its answer is applied. What is cut short goes on by the cron.
 */
export async function refundInvoice(
  ctx: Ctx,
  { id: invoiceId, force }: ById & InvoiceRefund,
): Promise<InvoiceRefunded> {
  const invoice = await invoiceById(ctx, invoiceId);
  if (invoice.status !== "paid")
    throw conflict(`This invoice is ${invoice.status}: only a paid one can be refunded.`);
  const refund = await beginRefund(ctx, invoice, force);
  if (refund.status === "pending") await finishRefund(ctx, refund);
  return refundOf(ctx, refund.id);
}

async function refundOf(ctx: Ctx, id: (typeof refunds.$inferSelect)["id"]): Promise<InvoiceRefunded> {
  const [row] = await ctx.db.select().from(refunds).where(eq(refunds.id, id));
  if (!row) throw new Error(`There is no refund ${id}`);
  if (row.status === "failed")
    throw conflict(`The payment processor refused the refund: ${row.error ?? "it did not say why"}`);
  const { invoiceId, status, amountCents, missingCredits } = row;
  return { id, invoiceId, status, amountCents, missingCredits };
}
