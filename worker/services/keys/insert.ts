import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Credential } from "../../actor.ts";
import type { Ctx } from "../../ctx.ts";
import { apiKeys, sessions } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";

/** Valid keys per account; each has its own limit and guard. */
export const maxLiveKeys = 50;

const liveKeysOf = (accountId: Id<"account">) =>
  sql`(SELECT count(*) FROM ${apiKeys} k WHERE k.account_id = ${accountId} AND k.revoked_at IS NULL)`;

type KeyRow = typeof apiKeys.$inferInsert;

/**
 * Inserts the row, replacing one with this id. false: the account has the maximum number of keys, or the session that
 * requested the key has ended.
 * @param once an existing row is left as it is: false
 */
export async function insertKey(
  ctx: Ctx,
  row: KeyRow,
  sessionId: Credential,
  { once = false } = {},
): Promise<boolean> {
  const { id, accountId, name, hash, start, origin, createdAt } = row;
  const isOpen = sql`EXISTS (SELECT 1 FROM ${sessions} s WHERE s.id = ${sessionId} AND s.expires_at > ${ctx.now().getTime()})`;
  const { meta } = await ctx.db.run(sql`
    INSERT INTO api_keys (id, account_id, name, hash, start, origin, created_at)
    SELECT ${id}, ${accountId}, ${name}, ${hash}, ${start}, ${origin}, ${createdAt.getTime()}
    WHERE ${isOpen} AND (${liveKeysOf(accountId)} < ${maxLiveKeys} OR EXISTS (SELECT 1 FROM api_keys WHERE id = ${id}))
    ON CONFLICT (id) DO ${
      once
        ? sql`NOTHING`
        : sql`UPDATE SET hash = excluded.hash, start = excluded.start, created_at = excluded.created_at`
    }`);
  return meta.changes > 0;
}

/** @throws AppError conflict if the account has the maximum number of keys */
export async function requireRoomForKey(ctx: Ctx, accountId: Id<"account">): Promise<void> {
  const [row] = await ctx.db.all<{ live: number }>(sql`SELECT ${liveKeysOf(accountId)} AS live`);
  if ((row?.live ?? 0) >= maxLiveKeys)
    throw conflict(
      `The account has the maximum of ${maxLiveKeys} keys. Revoke one that is no longer needed.`,
    );
}
