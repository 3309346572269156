import { eq } from "drizzle-orm";
import { isId } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { invoices } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import type { InvoiceRow } from "../../db/rows.ts";

/** Any account's invoice, for operators. @throws AppError not_found */
export async function invoiceById(ctx: Ctx, invoiceId: string): Promise<InvoiceRow> {
  if (!isId("invoice", invoiceId)) throw new AppError("not_found");
  const [row] = await ctx.db.select().from(invoices).where(eq(invoices.id, invoiceId));
  if (!row) throw new AppError("not_found");
  return row;
}
