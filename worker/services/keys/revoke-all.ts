import { and, eq, isNotNull, isNull } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { apiKeys } from "../../db/schema.ts";
import { eachAlone } from "../../each-alone.ts";
import { tellGuard } from "./finish-revocations.ts";

const atOnce = 50;

/** A statement for the batch that is the reason; `revokeAllKeys` follows. */
export const keysRevoked = (ctx: Ctx, accountId: Id<"account">) =>
  ctx.db
    .update(apiKeys)
    .set({ revokedAt: ctx.now() })
    .where(and(eq(apiKeys.accountId, accountId), isNull(apiKeys.revokedAt)));

/** Revokes all keys of the account; the timer notifies guards that cannot be reached now. */
export async function revokeAllKeys(ctx: Ctx, accountId: Id<"account">): Promise<void> {
  const isUntold = and(isNotNull(apiKeys.revokedAt), isNull(apiKeys.guardToldAt));
  const { revoked } = await batch(ctx, {
    keys: keysRevoked(ctx, accountId),
    revoked: ctx.db
      .select({ id: apiKeys.id, hash: apiKeys.hash })
      .from(apiKeys)
      .where(and(eq(apiKeys.accountId, accountId), isUntold)),
  });
  await eachAlone("revoke all keys", revoked, (key) => tellGuard(ctx, key), atOnce);
}
