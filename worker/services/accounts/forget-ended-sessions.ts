import { lte } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { sessions } from "../../db/schema.ts";

/** Run by cron: a browser that never comes back leaves its session, with its address. */
export async function forgetEndedSessions(ctx: Ctx): Promise<void> {
  await ctx.db.delete(sessions).where(lte(sessions.expiresAt, ctx.now()));
}
