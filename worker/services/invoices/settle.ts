import { and, eq, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import { invoices } from "../../db/schema.ts";
import { effects } from "./effects/index.ts";

export type Settlement = {
  processor: "test" | "stripe";
  reference: string;
  amountCents: number;
  currency: string;
};

/**
 * One batch: invoice paid, payment recorded, and what its kind causes; or nothing of it. However often it is reported,
 * the first report settles.
 * @returns whether this report settled it
 */
export async function settleInvoice(ctx: Ctx, invoiceId: Id<"invoice">, paid: Settlement): Promise<boolean> {
  const mark = ctx.newMark();
  const now = ctx.now();
  const [invoice] = await ctx.db.select().from(invoices).where(eq(invoices.id, invoiceId));
  const effectOf = invoice && effects[invoice.kind];
  if (!effectOf) return false;
  const effect = effectOf(ctx, invoice, mark, now);
  const [[settled], , ...answers] = await ctx.db.batch([
    ctx.db
      .update(invoices)
      .set({ status: "paid", paidAt: now, settlementMark: mark })
      .where(
        and(
          eq(invoices.id, invoiceId),
          eq(invoices.status, "unpaid"),
          eq(invoices.amountCents, paid.amountCents),
          eq(invoices.currency, paid.currency),
        ),
      )
      .returning({ id: invoices.id }),
    ctx.statement(sql`
      INSERT INTO payments (id, invoice_id, processor, reference, amount_cents, currency, created_at)
      SELECT ${ctx.newId("payment")}, id, ${paid.processor}, ${paid.reference}, ${paid.amountCents}, ${paid.currency}, ${now.getTime()}
      FROM invoices WHERE settlement_mark = ${mark}`),
    ...effect.statements,
  ]);
  if (settled) effect.hint?.(answers);
  return settled !== undefined;
}
