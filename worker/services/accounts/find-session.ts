import { and, eq, gt } from "drizzle-orm";
import type { Actor, Ctx } from "../../ctx.ts";
import { accounts, sessions } from "../../db/schema.ts";
import { sha256Hex } from "../../domain/tokens.ts";

type Session = { actor: Actor & { type: "session" }; expiresAt: Date };

/** The account and expiry of a session; null for an unknown or ended one. */
export async function findSession(ctx: Ctx, token: string): Promise<Session | null> {
  const [row] = await ctx.db
    .select({
      sessionId: sessions.id,
      accountId: accounts.id,
      role: accounts.role,
      plan: accounts.plan,
      suspendedFor: accounts.suspendedFor,
      expiresAt: sessions.expiresAt,
    })
    .from(sessions)
    .innerJoin(accounts, eq(accounts.id, sessions.accountId))
    .where(and(eq(sessions.token, sha256Hex(token)), gt(sessions.expiresAt, ctx.now())));
  if (!row) return null;
  const { expiresAt, ...who } = row;
  return { actor: { type: "session", ...who }, expiresAt };
}
