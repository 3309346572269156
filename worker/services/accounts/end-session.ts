import { eq } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { sessions } from "../../db/schema.ts";
import { sha256Hex } from "../../domain/tokens.ts";

/** Ends a session by its token, which nobody has received yet. */
export async function endSession(ctx: Ctx, token: string): Promise<void> {
  await ctx.db.delete(sessions).where(eq(sessions.token, sha256Hex(token)));
}
