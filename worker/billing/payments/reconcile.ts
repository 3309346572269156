import { and, asc, eq, inArray, lte, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { checkouts, invoices, refunds } from "../../db/schema.ts";
import { eachAlone } from "../../each-alone.ts";
import { applySession } from "./apply-session.ts";
import { active, proceed, type CheckoutRow } from "./checkout.ts";
import { finishRefund } from "./refund.ts";

const atOnce = 20;
const [soonestMs, latestMs] = [2 * 60_000, 60 * 60_000];

/** Polls the processor about everything open here, which recovers lost events, and resumes interrupted refunds. */
export async function reconcilePayments(ctx: Ctx): Promise<void> {
  const now = ctx.now();
  const due = await ctx.db
    .select()
    .from(checkouts)
    .where(and(inArray(checkouts.status, [...active]), lte(checkouts.checkAt, now)))
    .orderBy(asc(checkouts.checkAt))
    .limit(atOnce);
  await eachAlone("reconcile checkouts", due, async (checkout) => {
    // The next check comes after half its age, so that one failing checkout does not hold up the others.
    const age = now.getTime() - checkout.createdAt.getTime();
    const checkAt = new Date(now.getTime() + Math.min(Math.max(age / 2, soonestMs), latestMs));
    await ctx.db.update(checkouts).set({ checkAt }).where(eq(checkouts.id, checkout.id));
    await reconcileCheckout(ctx, checkout);
  });
  // A bank may take days: rotate through the pending refunds, however many there are.
  const pending = await ctx.db
    .select()
    .from(refunds)
    .where(eq(refunds.status, "pending"))
    .orderBy(sql`random()`)
    .limit(atOnce);
  await eachAlone("reconcile refunds", pending, (refund) => finishRefund(ctx, refund));
}

/** Runs when a customer returns from the processor. */
export async function reconcileInvoice(ctx: Ctx, { id }: { id: string }): Promise<void> {
  const open = await ctx.db
    .select()
    .from(checkouts)
    .where(
      and(eq(checkouts.invoiceId, id as CheckoutRow["invoiceId"]), inArray(checkouts.status, [...active])),
    );
  await eachAlone("reconcile checkouts", open, (checkout) => reconcileCheckout(ctx, checkout));
}

async function reconcileCheckout(ctx: Ctx, checkout: CheckoutRow): Promise<void> {
  const [invoice] = await ctx.db.select().from(invoices).where(eq(invoices.id, checkout.invoiceId));
  if (!invoice) return;
  const isOver = checkout.expiresAt <= ctx.now();
  // Close what can no longer be paid; a payment that came first is flagged.
  if (invoice.status !== "unpaid" && checkout.status === "open" && checkout.sessionId !== null && !isOver)
    await applySession(ctx, await ctx.payments.expire(checkout.sessionId));
  // A checkout without a session has never been shown; it is opened when the customer wants to pay.
  else if (checkout.sessionId !== null || isOver) await proceed(ctx, invoice, checkout);
}
