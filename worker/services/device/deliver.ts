import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { newApiKey } from "../keys/create.ts";
import { insertKey } from "../keys/insert.ts";

/**
 * Creates the key of an approved device at the moment of delivery, replacing one whose delivery failed. null: the
 * approving session has ended, as all do when the password changes, or the account has the maximum number of keys.
 */
export async function deliverDeviceKey(
  ctx: Ctx,
  { accountId, sessionId }: { accountId: Id<"account">; sessionId: Id<"session"> },
  { clientName, origin }: { clientName: string; origin: "device" | "mcp" },
  keyId: Id<"key">,
): Promise<string | null> {
  const { key, row } = await newApiKey(ctx, accountId, clientName, origin);
  return (await insertKey(ctx, { ...row, id: keyId }, sessionId)) ? key : null;
}
