import { and, eq, ne, sql } from "drizzle-orm";
import { accountOf, type Ctx } from "../../ctx.ts";
import { automaticActivity } from "../../db/insert-activity.ts";
import { batch } from "../../db/batch.ts";
import { creditPurchases, invoices, payments, refunds } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { systemAccounts } from "../../domain/ledger.ts";
import { logError } from "../../log-error.ts";
import { availableCredits } from "../credits/balance.ts";
import { refunded } from "../effects/index.ts";
import { invoiceById } from "../invoices/by-id.ts";
import type { InvoiceRow } from "../../db/rows.ts";
import { flagStatement } from "./flag.ts";

type RefundRow = typeof refunds.$inferSelect;

const spentReason = (missing: number, credits: number) =>
  `${missing} of the ${credits} credits are spent or held. Send {"force": true} to refund the full amount anyway; then the remaining credits are taken back and the refund is flagged.`;

/** Records the refund before the processor is called, and holds the purchased credits. */
export async function beginRefund(ctx: Ctx, invoice: InvoiceRow, isForced: boolean): Promise<RefundRow> {
  const {
    payment: [payment],
    purchase: [purchase],
    open: [open],
  } = await batch(ctx, {
    payment: ctx.db.select().from(payments).where(eq(payments.invoiceId, invoice.id)),
    purchase: ctx.db.select().from(creditPurchases).where(eq(creditPurchases.invoiceId, invoice.id)),
    open: ctx.db
      .select()
      .from(refunds)
      .where(and(eq(refunds.invoiceId, invoice.id), ne(refunds.status, "failed"))),
  });
  if (open) return open;
  if (!payment) throw new Error(`Invoice ${invoice.id} is paid but has no payment`);
  if (payment.processor !== ctx.payments.name)
    throw conflict(
      `It was paid through the ${payment.processor} processor, which this installation no longer uses.`,
    );
  const credits = purchase?.credits ?? 0;
  const taken = Math.min(credits, await availableCredits(ctx, invoice.accountId));
  if (taken < credits && !isForced) throw conflict(spentReason(credits - taken, credits));
  const id = ctx.newId("refund");
  const now = ctx.now().getTime();
  const {
    begun: [begun],
  } = await batch(ctx, {
    refunds: ctx.statement(sql`
      INSERT INTO refunds (id, invoice_id, payment_reference, amount_cents, status, hold_id, missing_credits, created_by, created_at)
      SELECT ${id}, i.id, ${payment.reference}, i.amount_cents, 'pending', ${taken > 0 ? id : null}, ${credits - taken}, ${accountOf(ctx)}, ${now}
      FROM invoices i LEFT JOIN ledger_accounts a ON a.id = i.account_id
      WHERE i.id = ${invoice.id} AND i.status = 'paid' AND coalesce(a.balance - a.held, 0) >= ${taken}
      ON CONFLICT DO NOTHING`),
    ledgerHolds: ctx.statement(sql`
      INSERT INTO ledger_holds (id, account_id, amount, status, created_at)
      SELECT hold_id, ${invoice.accountId}, ${taken}, 'open', ${now} FROM refunds WHERE id = ${id} AND hold_id IS NOT NULL`),
    begun: ctx.db.select().from(refunds).where(eq(refunds.id, id)),
  });
  if (!begun) throw conflict("The invoice or its credits changed in the meantime: try again.");
  return begun;
}

/** Requests the refund at the processor under its own idempotency key and applies the answer. Safe to repeat. */
export async function finishRefund(ctx: Ctx, refund: RefundRow): Promise<void> {
  const invoice = await invoiceById(ctx, refund.invoiceId);
  const answer = await ctx.payments.refund(refund).catch((error: unknown) => {
    logError({ refund: refund.id }, error);
    return null;
  });
  if (!answer) return;
  if (answer.status === "pending") {
    await ctx.db.batch([
      ctx.db
        .update(refunds)
        .set({ reference: answer.reference })
        .where(and(eq(refunds.id, refund.id), eq(refunds.status, "pending"))),
    ]);
    return;
  }
  const mark = ctx.newMark();
  const now = ctx.now();
  const isDone = answer.status === "done";
  const marked = sql`EXISTS (SELECT 1 FROM refunds WHERE mark = ${mark})`;
  await ctx.db.batch([
    ctx.db
      .update(refunds)
      .set({ status: answer.status, reference: answer.reference, error: answer.error, mark })
      .where(and(eq(refunds.id, refund.id), eq(refunds.status, "pending"))),
    ctx.statement(sql`
      UPDATE ledger_holds SET status = ${isDone ? "posted" : "voided"}, mark = ${mark}
      WHERE id = ${refund.holdId} AND ${marked}`),
    ...(isDone
      ? [
          ctx.statement(sql`
            INSERT INTO ledger_transfers (id, debit_id, credit_id, amount, type, reference, created_at)
            SELECT ${ctx.newId("transaction")}, account_id, ${systemAccounts.sold}, amount, 'refund', ${refund.invoiceId}, ${now.getTime()}
            FROM ledger_holds WHERE mark = ${mark}`),
          ctx.db
            .update(invoices)
            .set({ status: "refunded" })
            .where(and(eq(invoices.id, refund.invoiceId), marked)),
          automaticActivity(ctx, "refundInvoice", sql`invoices WHERE id = ${refund.invoiceId} AND ${marked}`),
          flagStatement(
            ctx,
            {
              reason: "refund_of_spent_credits",
              reference: refund.id,
              invoiceId: refund.invoiceId,
              amountCents: refund.amountCents,
              currency: invoice.currency,
            },
            sql`${marked} AND ${refund.missingCredits} > 0`,
          ),
          ...(refunded[invoice.kind]?.(ctx, invoice, mark, now) ?? []),
        ]
      : []),
  ]);
}
