import { and, desc, eq } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import { invoices } from "../db/schema.ts";
import { AppError } from "../domain/app-error.ts";
import type { DatabaseRow, SiteRow } from "../db/rows.ts";

type Payable = Pick<SiteRow, "id" | "status"> | Pick<DatabaseRow, "id" | "status">;

/** 402 with the invoice to pay, for a site or database that is not paid for. */
export async function refuseUnpaid(ctx: Ctx, resource: Payable): Promise<void> {
  if (resource.status !== "PENDING" && resource.status !== "SUSPENDED") return;
  const invoiceToken = await unpaidInvoiceOf(ctx, resource.id);
  throw new AppError("payment_required", invoiceToken === null ? {} : { invoiceToken });
}

/** The token of the latest invoice of a resource that waits for payment. */
export async function unpaidInvoiceOf(ctx: Ctx, resourceId: string): Promise<string | null> {
  const [open] = await ctx.db
    .select({ token: invoices.token })
    .from(invoices)
    .where(and(eq(invoices.resourceId, resourceId), eq(invoices.status, "unpaid")))
    .orderBy(desc(invoices.id))
    .limit(1);
  return open?.token ?? null;
}
