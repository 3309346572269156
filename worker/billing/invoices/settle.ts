import { and, eq, gte, sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { automaticActivity } from "../../db/insert-activity.ts";
import { batch } from "../../db/batch.ts";
import { invoices, paymentFlags, payments } from "../../db/schema.ts";
import type { PaymentReport } from "../../domain/settlement.ts";
import { recordEvent, type ReceivedEvent } from "../payments/record-event.ts";
import type { EffectOf } from "../effects/effect.ts";
import { effects, voided } from "../effects/index.ts";

export type Settlement = PaymentReport & {
  processor: "test" | "stripe";
  sessionId: string;
  /** The event that reported it; undefined if the processor was polled. */
  event?: ReceivedEvent | undefined;
};
export type Settled = "settled" | "known" | "flagged";

/** An invoice is settled only while it is unpaid, and only by its exact amount; it may be missing. */
const reasonOf = ({ amountCents, currency }: PaymentReport): SQL => sql`
  CASE WHEN i.id IS NULL THEN 'unknown_invoice' WHEN i.currency <> ${currency} THEN 'wrong_currency'
    WHEN i.amount_cents <> ${amountCents} THEN 'wrong_amount' WHEN i.status = 'void' THEN 'invoice_void'
    ELSE 'paid_twice' END`;

const effectOf: EffectOf = (ctx, invoice, ...settled) => {
  const defined = effects[invoice.kind];
  if (!defined) throw new Error(`A paid ${invoice.kind} invoice has no effect defined`);
  return defined(ctx, invoice, ...settled);
};

/**
 * Settles money that the processor has received. One batch marks the invoice paid, records the payment and applies
 * its effects, or raises a flag for an operator if it does not match. Idempotent under duplicate and out-of-order
 * reports.
 */
export async function settleInvoice(ctx: Ctx, invoiceId: string | null, paid: Settlement): Promise<Settled> {
  const { processor, reference, amountCents, currency, sessionId, event } = paid;
  const mark = ctx.newMark();
  const now = ctx.now();
  const wasRefunded = and(
    eq(paymentFlags.reason, "refunded_elsewhere"),
    sql`${paymentFlags.reference} = ${`${reference}:`} || ${paymentFlags.amountCents}`,
    gte(paymentFlags.amountCents, amountCents),
  );
  const [invoice] = await ctx.db
    .select()
    .from(invoices)
    .where(sql`${invoices.id} = ${invoiceId}`);
  const effect = invoice && effectOf(ctx, invoice, mark, now);
  const isPayment = sql`EXISTS (SELECT 1 FROM payments WHERE processor = ${processor} AND reference = ${reference})`;
  const refundedMark = ctx.newMark();
  const isSettledNow = sql`EXISTS (SELECT 1 FROM invoices WHERE settlement_mark IN (${mark}, ${refundedMark}))`;
  const {
    settledNow: [settled],
    payment: [payment],
    effect: answers,
  } = await batch(ctx, {
    settledNow: ctx.db
      .update(invoices)
      .set({ status: "paid", paidAt: now, settlementMark: mark })
      .where(
        and(
          eq(invoices.id, invoice?.id ?? "invoice_none"),
          eq(invoices.status, "unpaid"),
          eq(invoices.amountCents, amountCents),
          eq(invoices.currency, currency),
          sql`NOT ${isPayment}`,
        ),
      )
      .returning({ id: invoices.id }),
    newPayment: ctx.statement(sql`
      INSERT INTO payments (id, invoice_id, processor, reference, amount_cents, currency, created_at)
      SELECT ${ctx.newId("payment")}, id, ${processor}, ${reference}, ${amountCents}, ${currency}, ${now.getTime()}
      FROM invoices WHERE settlement_mark = ${mark}`),
    flag: ctx.statement(sql`
      INSERT INTO payment_flags (id, reason, reference, invoice_id, amount_cents, currency, created_at)
      SELECT ${ctx.newId("flag")}, ${reasonOf(paid)}, ${reference}, ${invoiceId}, ${amountCents}, ${currency}, ${now.getTime()}
      FROM (SELECT 1) LEFT JOIN invoices i ON i.id = ${invoice?.id ?? null}
      WHERE NOT ${isPayment} ON CONFLICT DO NOTHING`),
    checkout: ctx.statement(sql`
      UPDATE checkouts SET status = 'paid' WHERE processor = ${processor} AND session_id = ${sessionId}`),
    // A refund may be reported before its payment: another mark prevents the effects, and the never-paid resource is
    // deleted.
    refunded: ctx.statement(sql`
      UPDATE invoices SET status = 'refunded', settlement_mark = ${refundedMark} WHERE settlement_mark = ${mark}
        AND EXISTS (SELECT 1 FROM payment_flags WHERE ${wasRefunded})`),
    payment: ctx.db
      .select({ id: payments.id })
      .from(payments)
      .where(and(eq(payments.processor, processor), eq(payments.reference, reference))),
    event:
      event &&
      recordEvent(
        ctx,
        event,
        sql`CASE WHEN ${isSettledNow} THEN 'applied' WHEN ${isPayment} THEN 'known' ELSE 'flagged' END`,
      ),
    effect: effect?.statements,
    activity: automaticActivity(ctx, "settleInvoice", sql`invoices WHERE settlement_mark = ${mark}`),
    undone: invoice && voided[invoice.kind]?.(ctx, invoice, refundedMark, now),
  });
  if (settled) effect?.hint?.(answers as never);
  return settled ? "settled" : payment ? "known" : "flagged";
}
