import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { newApiKey } from "../keys/create.ts";
import { insertKey } from "../keys/insert.ts";

/**
 * The key of an approved device, made at the moment it is handed over, in place of one that could not be. null: the session
 * that approved it has ended meanwhile, as all do with a new password, or the account has as many keys as it may.
 */
export async function deliverDeviceKey(
  ctx: Ctx,
  { accountId, sessionId }: { accountId: Id<"account">; sessionId: Id<"session"> },
  clientName: string,
  keyId: Id<"key">,
): Promise<string | null> {
  const { key, row } = await newApiKey(ctx, accountId, clientName, "device");
  return (await insertKey(ctx, { ...row, id: keyId }, sessionId)) ? key : null;
}
