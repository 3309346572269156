import { desc, eq, sql } from "drizzle-orm";
import type { Invoice } from "../../../protocol/api/invoices.ts";
import type { Ctx } from "../../ctx.ts";
import { tableOf, termedOf } from "../../db/resource.ts";
import { checkouts, invoices } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import type { InvoiceRow } from "../../db/rows.ts";
import { invoiceView } from "./view.ts";

const tokenPattern = /^inv_[0-9a-z][0-9A-Za-z]{43}$/;

/** The token is the credential. @throws AppError not_found */
export async function invoiceByToken(ctx: Ctx, token: string): Promise<InvoiceRow> {
  if (!tokenPattern.test(token)) throw new AppError("not_found");
  const [row] = await ctx.db.select().from(invoices).where(eq(invoices.token, token));
  if (!row) throw new AppError("not_found");
  return row;
}

export const getInvoiceByToken = async (ctx: Ctx, token: string): Promise<Invoice> =>
  invoiceView(await invoiceByToken(ctx, token));

/** Whether the site or database that an invoice is for belongs to this account. */
export async function isOwnerOf(ctx: Ctx, accountId: string, { id }: { id: string }): Promise<boolean> {
  const kind = termedOf(id);
  if (kind === null) return false;
  const found = await ctx.db.all(
    sql`SELECT 1 FROM ${tableOf(kind)} WHERE id = ${id} AND account_id = ${accountId}`,
  );
  return found.length > 0;
}

export type LastPayment = "processing" | "failed" | "to return" | null;

/**
 * How the newest payment stands: the bank has not confirmed it yet, has refused it, or it came when the invoice was void, and the
 * operator has yet to return it; null: none of these.
 */
export async function lastPayment(ctx: Ctx, invoice: { id: string }): Promise<LastPayment> {
  const [last] = await ctx.db
    .select({
      status: checkouts.status,
      sessionId: checkouts.sessionId,
      isFlagged: sql<number>`EXISTS (SELECT 1 FROM payment_flags f
        WHERE f.invoice_id = ${invoice.id} AND f.reason = 'invoice_void' AND f.resolved_at IS NULL)`,
    })
    .from(checkouts)
    .where(eq(checkouts.invoiceId, invoice.id as InvoiceRow["id"]))
    .orderBy(desc(checkouts.number))
    .limit(1);
  if (last?.isFlagged) return "to return";
  if (last?.status === "processing") return "processing";
  // Without a session the processor refused the request, and nobody paid.
  return last?.status === "failed" && last.sessionId !== null ? "failed" : null;
}
