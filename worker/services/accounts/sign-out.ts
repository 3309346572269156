import { eq } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import { sessions } from "../../db/schema.ts";
import { sha256Hex } from "../../domain/tokens.ts";

/** The token is worth nothing from the next request on. */
export async function signOut(ctx: Ctx, token: string): Promise<void> {
  await ctx.db.delete(sessions).where(eq(sessions.tokenHash, sha256Hex(token)));
}
