import { and, eq, lt } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { ledgerHolds } from "../../db/schema.ts";

/** Releases an unspent hold. @returns whether this call released it */
export async function voidHold(ctx: Ctx, holdId: string): Promise<boolean> {
  const ended = await ctx.db
    .update(ledgerHolds)
    .set({ status: "voided" })
    .where(and(eq(ledgerHolds.id, holdId), eq(ledgerHolds.status, "open")))
    .returning({ id: ledgerHolds.id });
  return ended.length > 0;
}

/** Voids holds that interrupted interactions left behind. */
export async function voidExpiredHolds(ctx: Ctx): Promise<void> {
  await ctx.db
    .update(ledgerHolds)
    .set({ status: "voided" })
    .where(and(eq(ledgerHolds.status, "open"), lt(ledgerHolds.expiresAt, ctx.now())));
}
