import { and, desc, eq } from "drizzle-orm";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Invoice } from "../../../protocol/api/invoices.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { invoices } from "../../db/schema.ts";
import { before, page } from "../page.ts";
import { invoiceView } from "./view.ts";

/** The account's invoices, newest first. */
export async function listInvoices(ctx: Ctx, query: ListQuery): Promise<Page<Invoice>> {
  const rows = await ctx.db
    .select()
    .from(invoices)
    .where(and(eq(invoices.accountId, accountOf(ctx)), before(invoices.id, query)))
    .orderBy(desc(invoices.id))
    .limit(query.limit + 1);
  return page(rows, query, invoiceView);
}
