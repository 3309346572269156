import { and, eq, sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import { eachAlone } from "../each-alone.ts";
import { checkouts } from "./schema.ts";

/**
 * For a batch that voids invoices, after that statement: their open checkouts, which the cron asks about next.
 * @param which a condition on `invoices`
 */
export const openCheckoutsOfVoid = (ctx: Ctx, which: SQL) =>
  ctx.db
    .update(checkouts)
    .set({ checkAt: ctx.now() })
    .where(
      and(
        eq(checkouts.status, "open"),
        eq(checkouts.processor, ctx.payments.name),
        sql`${checkouts.invoiceId} IN (SELECT id FROM invoices WHERE status = 'void' AND ${which})`,
      ),
    )
    .returning({ id: checkouts.id, sessionId: checkouts.sessionId });

/** Closes their payment pages, so that nobody pays what is void. Where that fails, and in the record, the cron does it. */
export function closeCheckouts(ctx: Ctx, open: readonly { id: string; sessionId: string | null }[]): void {
  if (open.length === 0) return;
  ctx.defer(
    eachAlone("close checkouts", open, async ({ sessionId }) => {
      if (sessionId !== null) await ctx.payments.expire(sessionId);
    }),
  );
}
