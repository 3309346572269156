import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, isNull } from "drizzle-orm";
import type { KeyRevoked } from "../../../protocol/api/keys.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { idIn, requireOwned } from "../owned.ts";
import { tellGuard } from "./finish-revocations.ts";

type KeyRow = typeof apiKeys.$inferSelect;

/**
 * After this answer, every request with the key is rejected. Updates the record first, then the guard that caches it;
 * the next request or the timer completes an interrupted revocation.
 */
export async function revokeKey(ctx: Ctx, { id }: ById): Promise<KeyRevoked> {
  const [found] = await ctx.db
    .select()
    .from(apiKeys)
    .where(eq(apiKeys.id, idIn("key", id)));
  const row = requireOwned(ctx, found);
  if (row.revokedAt) {
    if (!row.guardToldAt) await tellGuard(ctx, row);
    throw new AppError("not_found");
  }
  await endKey(ctx, row);
  return { id: row.id, revoked: true };
}

async function endKey(ctx: Ctx, row: KeyRow): Promise<void> {
  await ctx.db.batch([
    ctx.db
      .update(apiKeys)
      .set({ revokedAt: ctx.now() })
      .where(and(eq(apiKeys.id, row.id), isNull(apiKeys.revokedAt))),
  ]);
  await tellGuard(ctx, row);
}

/** Ends a key that was given out for a code which is presented again. */
export async function revokeDisputedKey(ctx: Ctx, id: Id<"key">): Promise<void> {
  const [row] = await ctx.db
    .select()
    .from(apiKeys)
    .where(and(eq(apiKeys.id, id), isNull(apiKeys.revokedAt)));
  if (row) await endKey(ctx, row);
}
