import type { Invoice } from "../../../protocol/api/invoices.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import { conflict } from "../../domain/app-error.ts";
import { getInvoiceByToken } from "./get-by-token.ts";
import { settleInvoice } from "./settle.ts";

/** Pays with the embedded test processor, which takes no money. Paying a paid invoice changes nothing. */
export async function payInvoice(ctx: Ctx, token: string): Promise<Invoice> {
  const invoice = await getInvoiceByToken(ctx, token);
  if (invoice.status === "paid") return invoice;
  if (invoice.status !== "unpaid")
    throw conflict(`This invoice is ${invoice.status} and can no longer be paid.`);
  const { amountCents, currency } = invoice;
  await settleInvoice(ctx, invoice.id as Id<"invoice">, {
    processor: "test",
    reference: invoice.id,
    amountCents,
    currency,
  });
  return getInvoiceByToken(ctx, token);
}
