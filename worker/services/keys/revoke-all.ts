import { and, eq, isNull } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";
import { eachAlone } from "../../each-alone.ts";
import { tellGuard } from "./finish-revocations.ts";

const atOnce = 50;

/** Every key of the account; a guard that cannot be reached hears of it from the timer. */
export async function revokeAllKeys(ctx: Ctx, accountId: Id<"account">): Promise<void> {
  const revoked = await ctx.db
    .update(apiKeys)
    .set({ revokedAt: ctx.now() })
    .where(and(eq(apiKeys.accountId, accountId), isNull(apiKeys.revokedAt)))
    .returning({ id: apiKeys.id, hash: apiKeys.hash });
  await eachAlone("revoke all keys", revoked, (key) => tellGuard(ctx, key), atOnce);
}
