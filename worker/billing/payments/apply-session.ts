import { sql } from "drizzle-orm";
import type { Session } from "../../adapters/payments/payments.ts";
import type { Ctx } from "../../ctx.ts";
import { settleInvoice } from "../invoices/settle.ts";
import { flagStatement } from "./flag.ts";
import { recordEvent, type ReceivedEvent } from "./record-event.ts";

/** The states from which a checkout may reach each state. None leads away from paid, so late reports change nothing. */
const from = {
  open: ["opening"],
  processing: ["opening", "open"],
  expired: ["opening", "open"],
  failed: ["opening", "open", "processing"],
} as const;

/** Applies the processor's report of a checkout. Idempotent under duplicate, late and out-of-order reports. */
export async function applySession(ctx: Ctx, session: Session, event?: ReceivedEvent): Promise<void> {
  const { status, id, invoiceId, paymentReference, amountCents, currency } = session;
  if (session.isLive !== ctx.payments.isLive) {
    const money = { invoiceId, amountCents, currency };
    await ctx.db.batch([
      flagStatement(ctx, { reason: "wrong_mode", reference: paymentReference ?? id, ...money }),
      ...(event ? [recordEvent(ctx, event, "flagged")] : []),
    ]);
    return;
  }
  if (status === "paid") {
    await settleInvoice(ctx, invoiceId, {
      processor: ctx.payments.name,
      reference: paymentReference ?? id,
      sessionId: id,
      // A payment without an amount or currency matches no invoice, so that it is flagged.
      amountCents: amountCents ?? 0,
      currency: currency ?? "",
      event,
    });
    return;
  }
  await ctx.db.batch([
    ctx.statement(sql`
      UPDATE checkouts SET status = ${status}
      WHERE processor = ${ctx.payments.name} AND session_id = ${id} AND status IN ${from[status]}`),
    ...(event ? [recordEvent(ctx, event, "applied")] : []),
  ]);
}
