import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import { apiKeys } from "../../db/schema.ts";
import { newApiKey } from "../keys/create.ts";

/** The key of an approved device, made at the moment it is handed over, in place of one that could not be. */
export async function deliverDeviceKey(
  ctx: Ctx,
  accountId: Id<"account">,
  clientName: string,
  keyId: Id<"key">,
): Promise<string> {
  const { key, row } = await newApiKey(ctx, accountId, clientName, "device");
  const { hash, start, createdAt } = row;
  await ctx.db
    .insert(apiKeys)
    .values({ ...row, id: keyId })
    .onConflictDoUpdate({ target: apiKeys.id, set: { hash, start, createdAt } });
  return key;
}
