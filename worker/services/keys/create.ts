import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import { apiKeys } from "../../db/schema.ts";
import { deriveKey, mintApiKey, sha256Hex } from "../../domain/tokens.ts";

type Origin = (typeof apiKeys.$inferInsert)["origin"];

/** The row to insert and the key to show once. */
export function newApiKey(ctx: Ctx, accountId: Id<"account">, name: string, origin: Origin) {
  const key = mintApiKey(ctx.random(32), deriveKey(ctx.config.SECRET_KEY, "api-key-check"));
  const row: typeof apiKeys.$inferInsert = {
    id: ctx.newId("key"),
    accountId,
    name,
    hash: sha256Hex(key),
    start: key.slice(0, 10),
    origin,
    createdAt: ctx.now(),
  };
  return { key, row };
}
