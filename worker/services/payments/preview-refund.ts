import { sql } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { RefundPreview } from "../../../protocol/api/invoices.ts";
import type { InvoiceKind, InvoiceStatus } from "../../../protocol/states.ts";
import { refunded } from "../../billing/effects/index.ts";
import { unpaidFrom } from "../../billing/effects/renewal.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";

type Row = {
  kind: InvoiceKind;
  status: InvoiceStatus;
  amountCents: number;
  currency: string;
  resourceId: string | null;
  unpaidFrom: number;
  paidUntil: number | null;
  isExtended: 0 | 1;
  purchased: number;
  available: number;
  processor: string | null;
  refund: string | null;
};

/** What beginRefund and refundedTerm would do now; it changes nothing. @throws AppError not_found */
export async function previewRefund(ctx: Ctx, { id }: ById): Promise<RefundPreview> {
  const [row] = await ctx.db.all<Row>(sql`
    SELECT i.kind, i.status, i.amount_cents AS amountCents, i.currency, i.resource_id AS resourceId,
      ${unpaidFrom(sql`i.resource_id`, sql`i.id`, sql`coalesce(i.period_end, 0)`)} AS unpaidFrom,
      coalesce((SELECT paid_until FROM sites WHERE id = i.resource_id),
        (SELECT paid_until FROM databases WHERE id = i.resource_id)) AS paidUntil,
      EXISTS (SELECT 1 FROM invoices l WHERE l.resource_id = i.resource_id AND l.kind = 'renewal' AND l.status = 'paid'
        AND l.period_end > coalesce(i.period_end, 0)) AS isExtended,
      coalesce((SELECT credits FROM credit_purchases WHERE invoice_id = i.id), 0) AS purchased,
      coalesce((SELECT balance - held FROM ledger_accounts WHERE id = i.account_id), 0) AS available,
      (SELECT processor FROM payments WHERE invoice_id = i.id) AS processor,
      (SELECT status FROM refunds WHERE invoice_id = i.id AND status <> 'failed') AS refund
    FROM invoices i WHERE i.id = ${id}`);
  if (!row) throw new AppError("not_found");
  const { kind, amountCents, currency, resourceId, paidUntil, purchased, available } = row;
  const refusal = refusalOf(ctx, row);
  const endsAt = Math.min(paidUntil ?? 0, Math.max(ctx.now().getTime(), row.unpaidFrom));
  const endsTerm = refusal === null && refunded[kind] !== undefined && row.isExtended === 0;
  return {
    invoiceId: id,
    amountCents,
    currency,
    refusal,
    credits: { purchased, missing: purchased - Math.min(purchased, Math.max(0, available)) },
    term:
      endsTerm && resourceId !== null && paidUntil !== null && endsAt < paidUntil
        ? {
            resourceId,
            paidUntil: new Date(paidUntil).toISOString(),
            endsAt: new Date(endsAt).toISOString(),
          }
        : null,
  };
}

function refusalOf({ payments }: Ctx, { status, processor, refund }: Row): string | null {
  if (status !== "paid") return `This invoice is ${status}: only a paid one can be refunded.`;
  if (refund !== null) return "It is being refunded: the payment processor has not confirmed it yet.";
  if (processor !== payments.name)
    return `It was paid through the ${processor ?? "unknown"} processor, which this installation no longer uses.`;
  return null;
}
