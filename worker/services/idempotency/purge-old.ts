import { lt } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { idempotentRequests } from "../../db/schema.ts";
import { addDays } from "../../domain/pricing.ts";

/** Answers are replayed for one day. */
export async function purgeOldRequests(ctx: Ctx): Promise<void> {
  await ctx.db.delete(idempotentRequests).where(lt(idempotentRequests.createdAt, addDays(ctx.now(), -1)));
}
