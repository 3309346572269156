import { and, desc, eq } from "drizzle-orm";
import type { Page } from "../../../protocol/api/common.ts";
import type { Invoice, InvoiceListQuery } from "../../../protocol/api/invoices.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { invoices } from "../../db/schema.ts";
import { before, page } from "../page.ts";
import { invoiceView } from "./view.ts";

/** The account's invoices, newest first. */
export async function listInvoices(ctx: Ctx, query: InvoiceListQuery): Promise<Page<Invoice>> {
  const rows = await ctx.db
    .select()
    .from(invoices)
    .where(
      and(
        eq(invoices.accountId, accountOf(ctx)),
        query.status && eq(invoices.status, query.status),
        before(invoices.id, query),
      ),
    )
    .orderBy(desc(invoices.id))
    .limit(query.limit + 1);
  return page(rows, query, invoiceView);
}
