import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { apiKeys, sessions } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";

/** Live keys of an account: each has a limit and a guard of its own. */
export const maxLiveKeys = 50;

export const tooManyKeys = () =>
  conflict(`The account has ${maxLiveKeys} keys, which is the most: revoke one that is not needed any more.`);

const liveKeysOf = (accountId: Id<"account">) =>
  sql`(SELECT count(*) FROM ${apiKeys} k WHERE k.account_id = ${accountId} AND k.revoked_at IS NULL)`;

type KeyRow = typeof apiKeys.$inferInsert;

/**
 * Writes the row, in place of one of this id; false: the account has as many keys as it may, or the session that the key is
 * made for has ended.
 */
export async function insertKey(ctx: Ctx, row: KeyRow, sessionId?: Id<"session">): Promise<boolean> {
  const { id, accountId, name, hash, start, origin, createdAt } = row;
  const isOpen =
    sessionId === undefined
      ? sql`true`
      : sql`EXISTS (SELECT 1 FROM ${sessions} s WHERE s.id = ${sessionId} AND s.expires_at > ${ctx.now().getTime()})`;
  const { meta } = await ctx.db.run(sql`
    INSERT INTO api_keys (id, account_id, name, hash, start, origin, created_at)
    SELECT ${id}, ${accountId}, ${name}, ${hash}, ${start}, ${origin}, ${createdAt.getTime()}
    WHERE ${isOpen} AND (${liveKeysOf(accountId)} < ${maxLiveKeys} OR EXISTS (SELECT 1 FROM api_keys WHERE id = ${id}))
    ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, start = excluded.start, created_at = excluded.created_at`);
  return meta.changes > 0;
}

/** @throws AppError conflict where the account may have no more keys */
export async function requireRoomForKey(ctx: Ctx, accountId: Id<"account">): Promise<void> {
  const [row] = await ctx.db.all<{ live: number }>(sql`SELECT ${liveKeysOf(accountId)} AS live`);
  if ((row?.live ?? 0) >= maxLiveKeys) throw tooManyKeys();
}
