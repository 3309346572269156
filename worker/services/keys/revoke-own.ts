import type { KeyRevoked } from "../../../protocol/api/keys.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";
import { revokeKey } from "./revoke.ts";

/** Revokes the key that acts. @throws AppError conflict if something else acts, such as a session */
export async function revokeOwnKey(ctx: Ctx): Promise<KeyRevoked> {
  if (ctx.actor.type !== "key")
    throw new AppError("conflict", {
      reason: "This request was made without an API key, so there is none to revoke. Use DELETE /keys/{id}.",
    });
  return revokeKey(ctx, { id: ctx.actor.keyId });
}
