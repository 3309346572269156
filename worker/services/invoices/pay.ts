import type { Invoice } from "../../../protocol/api/invoices.ts";
import type { Ctx } from "../../ctx.ts";
import { applySession } from "../../billing/payments/apply-session.ts";
import { openCheckout } from "../../billing/payments/checkout.ts";
import { invoiceByToken } from "./get-by-token.ts";
import { invoiceView } from "./view.ts";

/** The URL where the customer pays; null if the invoice is already paid. This does not pay it. */
export async function payInvoice(ctx: Ctx, token: string): Promise<{ url: string } | null> {
  const { id } = await invoiceByToken(ctx, token);
  const session = await openCheckout(ctx, id);
  return session?.url ? { url: session.url } : null;
}

/**
 * For clients without a browser: the test processor settles the invoice at once; for any other processor, the answer
 * is the URL of its page.
 */
export async function payInvoiceAtOnce(ctx: Ctx, token: string): Promise<Invoice | { url: string }> {
  const { id } = await invoiceByToken(ctx, token);
  const session = await openCheckout(ctx, id);
  if (session?.url && !ctx.payments.payAtOnce) return { url: session.url };
  if (session) {
    await ctx.payments.payAtOnce?.(session.id);
    await applySession(ctx, await ctx.payments.retrieve(session.id));
  }
  return invoiceView(await invoiceByToken(ctx, token));
}
