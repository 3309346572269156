import { and, desc, eq } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import { invoices } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import type { SiteRow } from "./owned.ts";

/** 402 with the invoice that would settle it, for a site nobody has paid (again). */
export async function refuseUnpaid(ctx: Ctx, site: Pick<SiteRow, "id" | "status">): Promise<void> {
  if (site.status !== "PENDING" && site.status !== "SUSPENDED") return;
  const [open] = await ctx.db
    .select({ token: invoices.token })
    .from(invoices)
    .where(and(eq(invoices.resourceId, site.id), eq(invoices.status, "unpaid")))
    .orderBy(desc(invoices.id))
    .limit(1);
  throw new AppError("payment_required", open ? { invoiceToken: open.token } : {});
}
