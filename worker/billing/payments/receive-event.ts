import { eq, sql } from "drizzle-orm";
import { BadSignature, type News, type ProcessorEvent } from "../../adapters/payments/payments.ts";
import type { Ctx } from "../../ctx.ts";
import { processorEvents } from "../../db/schema.ts";
import { invalid } from "../../domain/app-error.ts";
import { applySession } from "./apply-session.ts";
import { flagStatement } from "./flag.ts";
import { recordEvent } from "./record-event.ts";

/** @throws AppError invalid_request unless the processor signed this body recently */
export async function readEvent(
  ctx: Ctx,
  body: string,
  signature: string | undefined,
): Promise<ProcessorEvent> {
  try {
    return await ctx.payments.readEvent(body, signature);
  } catch (error) {
    if (error instanceof BadSignature) throw invalid("Stripe-Signature", error.message);
    throw error;
  }
}

/**
 * Applies an event and records its id, in one batch. The response follows the commit, so that the processor resends
 * failed events; a resent event changes nothing.
 */
export async function receiveEvent(ctx: Ctx, event: ProcessorEvent): Promise<void> {
  const [known] = await ctx.db
    .select({ id: processorEvents.id })
    .from(processorEvents)
    .where(eq(processorEvents.id, event.id));
  if (known) return;
  const { news } = event;
  if (news.kind === "session") return applySession(ctx, news.session, event);
  if (news.kind === "other") {
    await recordEvent(ctx, event, "ignored");
    return;
  }
  if (event.isLive !== ctx.payments.isLive) {
    const { paymentReference: reference, amountCents, currency } = news;
    await ctx.db.batch([
      flagStatement(ctx, { reason: "wrong_mode", reference, invoiceId: null, amountCents, currency }),
      recordEvent(ctx, event, "flagged"),
    ]);
    return;
  }
  await ctx.db.batch([recordEvent(ctx, event, "applied"), ...statementsOf(ctx, news, event.createdAt)]);
}

type MoneyNews = Exclude<News, { kind: "session" | "other" }>;

function statementsOf(ctx: Ctx, news: MoneyNews, createdAt: Date) {
  const { paymentReference, amountCents, currency } = news;
  const invoiceId = sql`(SELECT invoice_id FROM payments WHERE processor = ${ctx.payments.name} AND reference = ${paymentReference})`;
  const money = { invoiceId, amountCents, currency };
  switch (news.kind) {
    case "refunded": {
      const ours = sql`coalesce((SELECT sum(amount_cents) FROM refunds WHERE payment_reference = ${paymentReference} AND status <> 'failed'), 0)`;
      return [
        flagStatement(
          ctx,
          { reason: "refunded_elsewhere", reference: `${paymentReference}:${amountCents}`, ...money },
          // A payment that was flagged is returned there because its flag says so.
          sql`${amountCents} > ${ours} AND (${invoiceId} IS NOT NULL
            OR NOT EXISTS (SELECT 1 FROM payment_flags WHERE reference = ${paymentReference}))`,
        ),
        // A refund started by an operator here is completed by its own batch.
        ctx.statement(sql`
          UPDATE invoices SET status = 'refunded' WHERE id = ${invoiceId} AND status = 'paid' AND amount_cents <= ${amountCents}
            AND NOT EXISTS (SELECT 1 FROM refunds WHERE invoice_id = invoices.id AND status = 'pending')`),
      ];
    }
    case "refund_failed":
      return [
        flagStatement(ctx, { reason: "refund_failed", reference: news.reference, ...money }),
        ctx.statement(
          sql`UPDATE refunds SET error = 'The processor took it back' WHERE reference = ${news.reference}`,
        ),
      ];
    case "dispute":
      return [
        ctx.statement(sql`
          INSERT INTO disputes (id, payment_reference, amount_cents, currency, status, reason, told_at)
          VALUES (${news.id}, ${paymentReference}, ${amountCents}, ${currency}, ${news.status}, ${news.reason}, ${createdAt.getTime()})
          ON CONFLICT (id) DO UPDATE SET status = excluded.status, amount_cents = excluded.amount_cents, told_at = excluded.told_at
          WHERE excluded.told_at >= disputes.told_at AND disputes.status NOT IN ('won', 'lost')`),
        flagStatement(ctx, { reason: "disputed", reference: news.id, ...money }),
      ];
  }
}
