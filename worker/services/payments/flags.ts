import { and, desc, eq, isNull } from "drizzle-orm";
import type { ById, Page } from "../../../protocol/api/common.ts";
import type { FlagQuery, FlagResolve, PaymentFlag } from "../../../protocol/api/payments.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { paymentFlags } from "../../db/schema.ts";
import { idIn, requireFound } from "../owned.ts";
import { before, page } from "../page.ts";

const flagView = (row: typeof paymentFlags.$inferSelect): PaymentFlag => ({
  id: row.id,
  reason: row.reason,
  reference: row.reference,
  invoiceId: row.invoiceId,
  amountCents: row.amountCents,
  currency: row.currency,
  createdAt: row.createdAt.toISOString(),
  resolvedAt: row.resolvedAt?.toISOString() ?? null,
  resolution: row.resolution,
});

/** Flags for an operator, newest first. */
export async function listFlags(ctx: Ctx, query: FlagQuery): Promise<Page<PaymentFlag>> {
  const rows = await ctx.db
    .select()
    .from(paymentFlags)
    .where(
      and(
        query.resolved === "1" ? undefined : isNull(paymentFlags.resolvedAt),
        before(paymentFlags.id, query),
      ),
    )
    .orderBy(desc(paymentFlags.id))
    .limit(query.limit + 1);
  return page(rows, query, flagView);
}

/** Marks a flag as resolved, with a note. The first resolution is final. */
export async function resolveFlag(
  ctx: Ctx,
  { id: flagId, resolution }: ById & FlagResolve,
): Promise<PaymentFlag> {
  const id = idIn("flag", flagId);
  await ctx.db.batch([
    ctx.db
      .update(paymentFlags)
      .set({ resolvedAt: ctx.now(), resolvedBy: accountOf(ctx), resolution })
      .where(and(eq(paymentFlags.id, id), isNull(paymentFlags.resolvedAt))),
  ]);
  const [row] = await ctx.db.select().from(paymentFlags).where(eq(paymentFlags.id, id));
  return flagView(requireFound(row));
}
