import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";

/** Removes a key whose delivery was interrupted. Nobody has received it, so no guard knows it. */
export async function withdrawDeviceKey(ctx: Ctx, keyId: Id<"key">): Promise<void> {
  await ctx.db.delete(apiKeys).where(eq(apiKeys.id, keyId));
}
