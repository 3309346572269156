import { and, eq, inArray, isNull, sql } from "drizzle-orm";
import { ProcessorRefused, UnknownCheckout, type Session } from "../../adapters/payments/payments.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { checkouts, invoices, paymentFlags } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { dayOf } from "../../domain/times.ts";
import { logError } from "../../log-error.ts";
import type { InvoiceRow } from "../../db/rows.ts";
import { keepRoomForPack, roomForNew } from "../terms/room-for-pack.ts";
import { applySession } from "./apply-session.ts";

export type CheckoutRow = typeof checkouts.$inferSelect;
export const active = ["opening", "open", "processing"] as const;

/** A checkout lives for an hour; Stripe's minimum is 30 minutes. */
const checkoutMs = 60 * 60_000;
const firstCheckMs = 2 * 60_000;

export const onItsWay = () =>
  conflict("A payment for this invoice is pending: wait until the bank has confirmed or refused it.");

/**
 * The invoice's open checkout, or a new one; null once it is paid. Concurrent requests share one checkout, because
 * only one may be active and its number is its idempotency key at the processor.
 */
export async function openCheckout(ctx: Ctx, invoiceId: InvoiceRow["id"]): Promise<Session | null> {
  for (let round = 0; round < 5; round++) {
    const {
      invoice: [invoice],
      checkout: [checkout],
      flag: [flag],
    } = await batch(ctx, {
      invoice: ctx.db.select().from(invoices).where(eq(invoices.id, invoiceId)),
      checkout: ctx.db
        .select()
        .from(checkouts)
        .where(and(eq(checkouts.invoiceId, invoiceId), inArray(checkouts.status, [...active]))),
      flag: ctx.db
        .select({ id: paymentFlags.id })
        .from(paymentFlags)
        .where(and(eq(paymentFlags.invoiceId, invoiceId), isNull(paymentFlags.resolvedAt))),
    });
    if (!invoice) throw new AppError("not_found");
    if (invoice.status === "paid") return null;
    if (invoice.status !== "unpaid")
      throw conflict(`This invoice is ${invoice.status} and can no longer be paid.`);
    if (flag)
      throw conflict(
        "A payment was received that does not match this invoice. The operator will look into it.",
      );
    if (!checkout) {
      // Else one checkout after another would keep what was never paid for: its memory, and a term without its renewal.
      if (invoice.kind !== "renewal" && invoice.dueAt <= ctx.now())
        throw conflict(
          `This invoice was due on ${dayOf(invoice.dueAt)} and can no longer be paid. Place the order again.`,
        );
      await begin(ctx, invoice);
      continue;
    }
    const session = await proceed(ctx, invoice, checkout);
    if (session?.status === "processing") throw onItsWay();
    if (session?.status === "open") return session;
  }
  throw conflict("Someone else is paying this invoice right now: open it again.");
}

async function begin(ctx: Ctx, invoice: InvoiceRow): Promise<void> {
  const now = ctx.now().getTime();
  const kept = keepRoomForPack(ctx, invoice, ctx.newMark());
  const room = kept ?? roomForNew(ctx, invoice);
  const add = ctx.statement(sql`
    INSERT INTO checkouts (id, invoice_id, number, processor, status, created_at, expires_at, check_at)
    SELECT ${ctx.newId("checkout")}, id, 1 + coalesce((SELECT max(number) FROM checkouts WHERE invoice_id = invoices.id), 0),
      ${ctx.payments.name}, 'opening', ${now}, ${now + checkoutMs}, ${now + firstCheckMs}
    FROM invoices WHERE id = ${invoice.id} AND status = 'unpaid' AND ${room?.guard ?? sql`1`}
    ON CONFLICT DO NOTHING`);
  const { added } = await batch(ctx, { kept: kept?.statement, added: add });
  if (added.meta.changes === 0) await room?.refuse();
}

/** Fetches this checkout from the processor and applies its state; null: it ended without an answer. */
export async function proceed(ctx: Ctx, invoice: InvoiceRow, checkout: CheckoutRow): Promise<Session | null> {
  const isOver = checkout.sessionId === null && checkout.expiresAt <= ctx.now();
  if (checkout.processor !== ctx.payments.name || isOver) {
    // No payment page was ever shown, or the checkout belongs to another processor.
    await endCheckout(ctx, checkout, "expired");
    return null;
  }
  try {
    const session =
      checkout.sessionId === null
        ? await create(ctx, invoice, checkout)
        : await ctx.payments.retrieve(checkout.sessionId);
    await applySession(ctx, session);
    return session;
  } catch (error) {
    if (error instanceof ProcessorRefused && checkout.sessionId === null)
      await endCheckout(ctx, checkout, "failed");
    // It can no longer be paid. If it was, the processor's event settles the invoice or is flagged.
    if (error instanceof UnknownCheckout && checkout.expiresAt <= ctx.now()) {
      await endCheckout(ctx, checkout, "expired");
      return null;
    }
    logError({ checkout: checkout.id }, error);
    throw conflict(
      "The payment processor is not reachable right now. Nothing is lost: try again in a minute.",
    );
  }
}

async function create(ctx: Ctx, invoice: InvoiceRow, checkout: CheckoutRow): Promise<Session> {
  const session = await ctx.payments.createCheckout({
    key: `${invoice.id}:checkout:${checkout.number}`,
    id: checkout.id,
    invoiceId: invoice.id,
    description: invoice.lines.map(({ description }) => description).join(", "),
    amountCents: invoice.amountCents,
    currency: invoice.currency,
    expiresAt: checkout.expiresAt,
    returnUrl: `${ctx.config.SITE_URL}/invoice/${invoice.token}`,
  });
  await ctx.db
    .update(checkouts)
    .set({ sessionId: session.id, url: session.url, status: "open" })
    .where(and(eq(checkouts.id, checkout.id), eq(checkouts.status, "opening")));
  return session;
}

async function endCheckout(ctx: Ctx, { id }: CheckoutRow, status: "expired" | "failed"): Promise<void> {
  await ctx.db
    .update(checkouts)
    .set({ status })
    .where(and(eq(checkouts.id, id), inArray(checkouts.status, [...active])));
}
