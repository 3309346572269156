import { and, desc, eq, getTableColumns, or, sql } from "drizzle-orm";
import type { Page } from "../../../protocol/api/common.ts";
import type { AllInvoicesQuery, InvoiceForOperator } from "../../../protocol/api/console.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts, invoices } from "../../db/schema.ts";
import { before, containing, only, page } from "../page.ts";
import { invoiceView } from "./view.ts";

/** The invoices of all accounts, for operators, newest first. */
export async function listAllInvoices(ctx: Ctx, query: AllInvoicesQuery): Promise<Page<InvoiceForOperator>> {
  const rows = await ctx.db
    .select({ ...getTableColumns(invoices), accountEmail: accounts.email })
    .from(invoices)
    .innerJoin(accounts, eq(accounts.id, invoices.accountId))
    .where(
      and(
        only(invoices.status, query.status),
        only(invoices.kind, query.kind),
        only(invoices.accountId, query.accountId),
        or(
          containing(query.search, invoices.id, invoices.resourceId, accounts.email),
          query.search === undefined ? undefined : sql`${invoices.number} = ${query.search}`,
        ),
        before(invoices.id, query),
      ),
    )
    .orderBy(desc(invoices.id))
    .limit(query.limit + 1);
  return page(rows, query, ({ accountEmail, ...row }) => ({
    ...invoiceView(row),
    accountId: row.accountId,
    accountEmail,
  }));
}
