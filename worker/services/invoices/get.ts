import type { ById } from "../../../protocol/api/common.ts";
import { eq } from "drizzle-orm";
import type { Invoice } from "../../../protocol/api/invoices.ts";
import { isId } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { invoices } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";
import { invoiceView } from "./view.ts";

/** One invoice of the account: not_found, then forbidden. */
export async function getInvoice(ctx: Ctx, { id: invoiceId }: ById): Promise<Invoice> {
  if (!isId("invoice", invoiceId)) throw new AppError("not_found");
  const [row] = await ctx.db.select().from(invoices).where(eq(invoices.id, invoiceId));
  return invoiceView(requireOwned(ctx, row));
}
