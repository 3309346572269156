import { and, eq, gt } from "drizzle-orm";
import type { Actor, Ctx } from "../../context.ts";
import { accounts, sessions } from "../../db/schema.ts";
import { sha256Hex } from "../../domain/tokens.ts";

/** Who a session acts for; null for an unknown or ended one. */
export async function findSessionActor(
  ctx: Ctx,
  token: string,
): Promise<(Actor & { type: "session" }) | null> {
  const [row] = await ctx.db
    .select({ accountId: accounts.id, role: accounts.role, plan: accounts.plan })
    .from(sessions)
    .innerJoin(accounts, eq(accounts.id, sessions.accountId))
    .where(and(eq(sessions.tokenHash, sha256Hex(token)), gt(sessions.expiresAt, ctx.now())));
  return row ? { type: "session", ...row } : null;
}
