import type { ById } from "../../../protocol/api/common.ts";
import { eq } from "drizzle-orm";
import type { Invoice } from "../../../protocol/api/invoices.ts";
import type { Ctx } from "../../ctx.ts";
import { invoices } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";
import { invoiceView } from "./view.ts";

/** One invoice of the account: not_found, then forbidden. */
export async function getInvoice(ctx: Ctx, { id: invoiceId }: ById): Promise<Invoice> {
  const [row] = await ctx.db
    .select()
    .from(invoices)
    .where(eq(invoices.id, idIn("invoice", invoiceId)));
  return invoiceView(requireOwned(ctx, row));
}
