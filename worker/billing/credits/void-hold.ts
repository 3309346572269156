import { and, eq, lt } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { ledgerHolds } from "../../db/schema.ts";

/** Gives back what was held and not spent. @returns whether this call gave it back */
export async function voidHold(ctx: Ctx, holdId: string): Promise<boolean> {
  const ended = await ctx.db
    .update(ledgerHolds)
    .set({ status: "voided" })
    .where(and(eq(ledgerHolds.id, holdId), eq(ledgerHolds.status, "open")))
    .returning({ id: ledgerHolds.id });
  return ended.length > 0;
}

/** What an interaction that was cut short left. */
export async function voidExpiredHolds(ctx: Ctx): Promise<void> {
  await ctx.db
    .update(ledgerHolds)
    .set({ status: "voided" })
    .where(and(eq(ledgerHolds.status, "open"), lt(ledgerHolds.expiresAt, ctx.now())));
}
