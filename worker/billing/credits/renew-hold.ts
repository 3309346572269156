import { and, eq } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { ledgerHolds } from "../../db/schema.ts";

/** Keeps a hold for longer. @returns false: it has ended */
export async function renewHold(ctx: Ctx, holdId: string, expiresAt: Date): Promise<boolean> {
  const renewed = await ctx.db
    .update(ledgerHolds)
    .set({ expiresAt })
    .where(and(eq(ledgerHolds.id, holdId), eq(ledgerHolds.status, "open")))
    .returning({ id: ledgerHolds.id });
  return renewed.length > 0;
}
