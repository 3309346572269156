import type { KeyCreate, KeyCreated } from "../../../protocol/api/keys.ts";
import type { Id } from "../../../protocol/ids.ts";
import { accountOf, credentialOf, type Ctx } from "../../ctx.ts";
import type { apiKeys } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { mintApiKey, sha256Hex } from "../../domain/tokens.ts";
import { tokenKeys } from "../../config.ts";
import { requireSecondFactor } from "../accounts/second-factor.ts";
import { insertKey, requireRoomForKey } from "./insert.ts";

type Origin = (typeof apiKeys.$inferInsert)["origin"];

/** The row to insert, and the key to show once. */
export async function newApiKey(ctx: Ctx, accountId: Id<"account">, name: string, origin: Origin) {
  const key = await mintApiKey(ctx.random(32), tokenKeys(ctx.config, "api-key-check")[0]);
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

/**
 * Creates a key for the signed-in account. The answer is the only place that shows it. @throws AppError conflict,
 * invalid_request for a wrong code of the second step, rate_limited, unauthorized if the session has ended meanwhile
 */
export async function createKey(ctx: Ctx, { name, code }: KeyCreate): Promise<KeyCreated & { key: string }> {
  const accountId = accountOf(ctx);
  await requireRoomForKey(ctx, accountId);
  await requireSecondFactor(ctx, accountId, code ?? "");
  const { key, row } = await newApiKey(ctx, accountId, name, "dashboard");
  if (!(await insertKey(ctx, row, credentialOf(ctx)))) {
    await requireRoomForKey(ctx, accountId);
    throw new AppError("unauthorized");
  }
  const { id, start, origin } = row;
  return { id, name, start, origin, createdAt: row.createdAt.toISOString(), lastUsedAt: null, key };
}
