import { eq } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { sessions } from "../../db/schema.ts";
import { sha256Hex } from "../../domain/tokens.ts";

/** Use extends a session. */
export async function extendSession(ctx: Ctx, token: string, expiresAt: Date): Promise<void> {
  await ctx.db
    .update(sessions)
    .set({ expiresAt, updatedAt: ctx.now() })
    .where(eq(sessions.token, sha256Hex(token)));
}
