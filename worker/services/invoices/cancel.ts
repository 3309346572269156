import type { ById } from "../../../protocol/api/common.ts";
import { eq, sql } from "drizzle-orm";
import type { Invoice } from "../../../protocol/api/invoices.ts";
import { makeVoid } from "../../billing/invoices/void.ts";
import { onItsWay } from "../../billing/payments/checkout.ts";
import type { Ctx } from "../../ctx.ts";
import { invoices } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { idIn, requireOwned } from "../owned.ts";
import { invoiceView } from "./view.ts";

/**
 * Voids the caller's unpaid invoice, and deletes the site or database that waits for its first payment. A renewal is
 * owed for as long as its resource exists.
 */
export async function cancelInvoice(ctx: Ctx, { id: invoiceId }: ById): Promise<Invoice> {
  const [found] = await ctx.db
    .select()
    .from(invoices)
    .where(eq(invoices.id, idIn("invoice", invoiceId)));
  const invoice = requireOwned(ctx, found);
  if (invoice.status === "void") return invoiceView(invoice);
  requireCancellable(invoice);
  const after = await makeVoid(ctx, invoice, sql`status = 'processing'`);
  if (after.status === "void") return invoiceView(after);
  if (after.status === "unpaid") throw onItsWay();
  throw notUnpaid(after);
}

/** @throws AppError conflict where it can only be refused */
export function requireCancellable({ kind, status }: Pick<Invoice, "kind" | "status">): void {
  if (kind === "renewal")
    throw conflict(
      "A renewal cannot be cancelled: leave it unpaid and the term ends, or delete the site or database.",
    );
  if (status !== "unpaid") throw notUnpaid({ status });
}

const notUnpaid = ({ status }: Pick<Invoice, "status">) =>
  conflict(`This invoice is ${status}: only an unpaid one can be cancelled.`);
