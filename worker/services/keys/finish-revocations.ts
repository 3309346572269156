import { and, eq, isNotNull, isNull } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";
import { eachAlone } from "../../each-alone.ts";

const atOnce = 100;

/** Notifies the guard of a revoked key; idempotent. */
export async function tellGuard(ctx: Ctx, { id, hash }: Pick<typeof apiKeys.$inferSelect, "id" | "hash">) {
  await ctx.guards.revoke(hash);
  await ctx.db.update(apiKeys).set({ guardToldAt: ctx.now() }).where(eq(apiKeys.id, id));
}

/** Completes revocations, of one account if given; until the guard is notified, the key still works. */
export async function finishRevocations(ctx: Ctx, accountId?: Id<"account">): Promise<void> {
  const untold = await ctx.db
    .select({ id: apiKeys.id, hash: apiKeys.hash })
    .from(apiKeys)
    .where(
      and(
        isNotNull(apiKeys.revokedAt),
        isNull(apiKeys.guardToldAt),
        accountId && eq(apiKeys.accountId, accountId),
      ),
    )
    .limit(atOnce);
  await eachAlone("finish revocations", untold, (key) => tellGuard(ctx, key), atOnce);
}
