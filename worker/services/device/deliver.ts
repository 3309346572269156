import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import { apiKeys } from "../../db/schema.ts";
import { newApiKey } from "../keys/create.ts";

/** The key of an approved device, made at the moment it is handed over. */
export async function deliverDeviceKey(
  ctx: Ctx,
  accountId: Id<"account">,
  clientName: string,
): Promise<string> {
  const { key, row } = await newApiKey(ctx, accountId, clientName, "device");
  await ctx.db.insert(apiKeys).values(row);
  return key;
}
