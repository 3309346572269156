import { and, eq, lt, ne, sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { closeCheckouts, openCheckoutsOfVoid } from "../../db/close-checkouts.ts";
import { invoices } from "../../db/schema.ts";
import { beingPaid } from "../terms/resource.ts";
import { voided } from "../effects/index.ts";
import type { InvoiceRow } from "../../db/rows.ts";

/**
 * Voids overdue unpaid invoices that nobody is paying right now. Renewals stay open as long as their resource exists.
 */
export async function voidOverdue(ctx: Ctx): Promise<void> {
  const overdue = await ctx.db
    .select()
    .from(invoices)
    .where(
      and(
        eq(invoices.status, "unpaid"),
        lt(invoices.dueAt, ctx.now()),
        ne(invoices.kind, "renewal"),
        // They would be the oldest and hold up all others.
        sql`NOT ${beingPaid(sql`${invoices.id}`)}`,
      ),
    )
    .limit(50);
  for (const invoice of overdue)
    await makeVoid(ctx, invoice, sql`status IN ('opening', 'open', 'processing')`);
}

/** @returns the invoice as it is afterwards */
export async function makeVoid(ctx: Ctx, invoice: InvoiceRow, checkoutThatHolds: SQL): Promise<InvoiceRow> {
  const mark = ctx.newMark();
  const {
    after: [after],
    open,
  } = await batch(ctx, {
    invoices: ctx.db
      .update(invoices)
      .set({ status: "void", settlementMark: mark })
      .where(
        and(
          eq(invoices.id, invoice.id),
          eq(invoices.status, "unpaid"),
          sql`NOT EXISTS (SELECT 1 FROM checkouts WHERE invoice_id = ${invoice.id} AND ${checkoutThatHolds})`,
        ),
      )
      .returning({ id: invoices.id }),
    after: ctx.db.select().from(invoices).where(eq(invoices.id, invoice.id)),
    open: openCheckoutsOfVoid(ctx, sql`id = ${invoice.id}`),
    voided: voided[invoice.kind]?.(ctx, invoice, mark, ctx.now()) ?? [],
  });
  closeCheckouts(ctx, open);
  return after ?? invoice;
}
