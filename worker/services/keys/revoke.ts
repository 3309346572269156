import { and, eq, isNull } from "drizzle-orm";
import { isId } from "../../../protocol/ids.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { tellGuard } from "./finish-revocations.ts";
import { requireSession } from "./require-session.ts";

/**
 * Works on no request that comes after this answer. The record first, then the guard that keeps a copy of it; what is cut
 * short in between, the next request or the timer finishes.
 */
export async function revokeKey(ctx: Ctx, keyId: string): Promise<{ id: string }> {
  requireSession(ctx);
  if (!isId("key", keyId)) throw new AppError("not_found");
  const [row] = await ctx.db.select().from(apiKeys).where(eq(apiKeys.id, keyId));
  if (!row) throw new AppError("not_found");
  if (row.accountId !== accountOf(ctx)) throw new AppError("forbidden");
  if (row.revokedAt) {
    if (!row.guardToldAt) await tellGuard(ctx, row);
    throw new AppError("not_found");
  }
  await ctx.db
    .update(apiKeys)
    .set({ revokedAt: ctx.now() })
    .where(and(eq(apiKeys.id, keyId), isNull(apiKeys.revokedAt)));
  await tellGuard(ctx, row);
  return { id: keyId };
}
