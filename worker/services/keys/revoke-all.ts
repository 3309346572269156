import { and, eq, isNull } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";

/** A statement for the batch that is the reason; `finishRevocations` follows. */
export const keysRevoked = (ctx: Ctx, accountId: Id<"account">) =>
  ctx.db
    .update(apiKeys)
    .set({ revokedAt: ctx.now() })
    .where(and(eq(apiKeys.accountId, accountId), isNull(apiKeys.revokedAt)));
