import type { ById } from "../../../protocol/api/common.ts";
import { sql } from "drizzle-orm";
import type { Invoice } from "../../../protocol/api/invoices.ts";
import { invoiceById } from "../../billing/invoices/by-id.ts";
import { makeVoid } from "../../billing/invoices/void.ts";
import { onItsWay } from "../../billing/payments/checkout.ts";
import type { Ctx } from "../../ctx.ts";
import { conflict } from "../../domain/app-error.ts";
import { invoiceView } from "./view.ts";

/** Nobody shall pay it any more; what it would have started and was never paid goes with it. */
export async function voidInvoice(ctx: Ctx, { id: invoiceId }: ById): Promise<Invoice> {
  const invoice = await invoiceById(ctx, invoiceId);
  if (invoice.status === "void") return invoiceView(invoice);
  // Whoever pays before the open checkout is closed is flagged.
  const after = await makeVoid(ctx, invoice, sql`status = 'processing'`);
  if (after.status === "void") return invoiceView(after);
  if (after.status === "unpaid") throw onItsWay();
  throw conflict(`This invoice is ${after.status}: only an unpaid one can be voided. Refund a paid one.`);
}
