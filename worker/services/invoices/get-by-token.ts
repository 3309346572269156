import { eq } from "drizzle-orm";
import type { Invoice } from "../../../protocol/api/invoices.ts";
import type { Ctx } from "../../context.ts";
import { invoices } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { invoiceView } from "./view.ts";

const tokenPattern = /^inv_[0-9a-z][0-9A-Za-z]{43}$/;

/** The token is the credential. */
export async function getInvoiceByToken(ctx: Ctx, token: string): Promise<Invoice> {
  if (!tokenPattern.test(token)) throw new AppError("not_found");
  const [row] = await ctx.db.select().from(invoices).where(eq(invoices.token, token));
  if (!row) throw new AppError("not_found");
  return invoiceView(row);
}
