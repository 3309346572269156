import { and, desc, eq, isNull } from "drizzle-orm";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Key } from "../../../protocol/api/keys.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";
import { before, page } from "../page.ts";

type KeyRow = typeof apiKeys.$inferSelect;

const keyView = (row: KeyRow): Key => ({
  id: row.id,
  name: row.name,
  start: row.start,
  origin: row.origin,
  createdAt: row.createdAt.toISOString(),
  lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
});

/** The account's valid keys, newest first. */
export async function listKeys(ctx: Ctx, query: ListQuery): Promise<Page<Key>> {
  const rows = await ctx.db
    .select()
    .from(apiKeys)
    .where(and(eq(apiKeys.accountId, accountOf(ctx)), isNull(apiKeys.revokedAt), before(apiKeys.id, query)))
    .orderBy(desc(apiKeys.id))
    .limit(query.limit + 1);
  return page(rows, query, keyView);
}
