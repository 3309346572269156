import { and, desc, eq } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { invoices } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import type { DatabaseRow } from "../../db/rows.ts";

/** 402 with the invoice to pay, for a database that is not paid for. */
export async function refuseUnpaid(ctx: Ctx, database: DatabaseRow): Promise<void> {
  if (database.status !== "PENDING" && database.status !== "SUSPENDED") return;
  const [open] = await ctx.db
    .select({ token: invoices.token })
    .from(invoices)
    .where(and(eq(invoices.resourceId, database.id), eq(invoices.status, "unpaid")))
    .orderBy(desc(invoices.id))
    .limit(1);
  throw new AppError("payment_required", open ? { invoiceToken: open.token } : {});
}
