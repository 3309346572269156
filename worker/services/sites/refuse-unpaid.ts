import { and, desc, eq } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { invoices } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import type { SiteRow } from "../../db/rows.ts";

type Payable = Pick<SiteRow, "id" | "status">;

/** 402 with the invoice to pay, for a site that is not paid for. */
export async function refuseUnpaid(ctx: Ctx, site: Payable): Promise<void> {
  if (site.status !== "PENDING" && site.status !== "SUSPENDED") return;
  const invoiceToken = await unpaidInvoiceOf(ctx, site.id);
  throw new AppError("payment_required", invoiceToken === null ? {} : { invoiceToken });
}

/** The token of the latest invoice of a site that waits for payment. */
export async function unpaidInvoiceOf(ctx: Ctx, siteId: string): Promise<string | null> {
  const [open] = await ctx.db
    .select({ token: invoices.token })
    .from(invoices)
    .where(and(eq(invoices.resourceId, siteId), eq(invoices.status, "unpaid")))
    .orderBy(desc(invoices.id))
    .limit(1);
  return open?.token ?? null;
}
