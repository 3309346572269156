import { eq, sql } from "drizzle-orm";
import type { AccountEvent } from "../../../protocol/api/events.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { volumeOf } from "../../domain/volume-keys.ts";
import { followedAccounts } from "../../db/schema.ts";

export type Change = { seq: number; event: AccountEvent };
type Row = { seq: number; type: AccountEvent["type"]; resource_id: string; fields: string };

/** Changes at a time. */
export const changesRead = 500;
/** Longer than the reader takes to extend it, and enough for a browser that reconnects. */
export const followedMs = 10 * 60_000;

function changeOf({ seq, type, resource_id: id, fields }: Row): Change {
  const { databaseId, ...event } = { type, id, ...(JSON.parse(fields) as Partial<AccountEvent>) };
  // A volume's backup names its site and volume there.
  const volume = databaseId === undefined ? null : volumeOf(databaseId);
  if (volume) return { seq, event: { ...event, siteId: volume.siteId } };
  return { seq, event: { ...event, ...(databaseId !== undefined && { databaseId }) } };
}

/** From now on the account's changes are written down, for ten minutes at least. */
const follow = (ctx: Ctx, accountId: Id<"account">) => sql`
  INSERT INTO followed_accounts (account_id, since_seq, until)
  SELECT ${accountId}, coalesce(max(seq), 0), ${ctx.now().getTime() + followedMs} FROM changes WHERE true
  ON CONFLICT (account_id) DO UPDATE SET until = excluded.until RETURNING since_seq AS since`;

/** false: changes were not written down any more; begin anew. */
export async function extendFollowing(ctx: Ctx, accountId: Id<"account">): Promise<boolean> {
  const rows = await ctx.db
    .update(followedAccounts)
    .set({ until: new Date(ctx.now().getTime() + followedMs) })
    .where(eq(followedAccounts.accountId, accountId))
    .returning({ accountId: followedAccounts.accountId });
  return rows.length > 0;
}

/** Begins to follow. Returns the newest changes that are there, in order; all after `since` are among them. */
export async function beginFollowing(
  ctx: Ctx,
  accountId: Id<"account">,
): Promise<{ changes: Change[]; since: number; upTo: number }> {
  const { followed, found, newest } = await batch(ctx, {
    followed: ctx.statement(follow(ctx, accountId)),
    found: ctx.statement(sql`
      SELECT seq, type, resource_id, fields FROM changes
      WHERE account_id = ${accountId} ORDER BY seq DESC LIMIT ${changesRead}`),
    newest: ctx.statement(sql`SELECT coalesce(max(seq), 0) AS seq FROM changes`),
  });
  const changes = (found.results as Row[]).map(changeOf).toReversed();
  const [{ since } = { since: 0 }] = followed.results as { since: number }[];
  const [{ seq: upTo } = { seq: 0 }] = newest.results as { seq: number }[];
  const isCut = changes.length === changesRead;
  return { changes, since: Math.max(since, isCut ? (changes[0]?.seq ?? 0) : 0), upTo };
}

/** The changes after one, oldest first, at most `changesRead`. */
export async function changesAfter(ctx: Ctx, accountId: Id<"account">, seq: number): Promise<Change[]> {
  const rows = await ctx.db.all<Row>(sql`
    SELECT seq, type, resource_id, fields FROM changes
    WHERE account_id = ${accountId} AND seq > ${seq} ORDER BY seq LIMIT ${changesRead}`);
  return rows.map(changeOf);
}
