import { and, eq, isNull } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";
import { eachAlone } from "../../each-alone.ts";
import { tellGuard } from "./finish-revocations.ts";

const atOnce = 50;

/** Revokes all keys of the account; the timer notifies guards that cannot be reached now. */
export async function revokeAllKeys(ctx: Ctx, accountId: Id<"account">): Promise<void> {
  const revoked = await ctx.db
    .update(apiKeys)
    .set({ revokedAt: ctx.now() })
    .where(and(eq(apiKeys.accountId, accountId), isNull(apiKeys.revokedAt)))
    .returning({ id: apiKeys.id, hash: apiKeys.hash });
  await eachAlone("revoke all keys", revoked, (key) => tellGuard(ctx, key), atOnce);
}
