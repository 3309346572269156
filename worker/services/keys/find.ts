import { and, eq, isNull } from "drizzle-orm";
import type { Actor, Db } from "../../ctx.ts";
import { accounts, apiKeys } from "../../db/schema.ts";

/** The account of a key; null for an unknown or revoked one. */
export async function findKeyActor(db: Db, keyHash: string): Promise<(Actor & { type: "key" }) | null> {
  const [row] = await db
    .select({
      keyId: apiKeys.id,
      accountId: accounts.id,
      role: accounts.role,
      plan: accounts.plan,
      suspendedFor: accounts.suspendedFor,
      origin: apiKeys.origin,
    })
    .from(apiKeys)
    .innerJoin(accounts, eq(accounts.id, apiKeys.accountId))
    .where(and(eq(apiKeys.hash, keyHash), isNull(apiKeys.revokedAt)));
  if (!row) return null;
  const { origin, ...actor } = row;
  return { type: "key", ...actor, ...(origin === "mcp" && { forMcp: true }) };
}
