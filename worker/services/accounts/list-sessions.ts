import { and, desc, eq, gt } from "drizzle-orm";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Session } from "../../../protocol/api/self-service.ts";
import { accountOf, credentialOf, type Ctx } from "../../ctx.ts";
import { sessions } from "../../db/schema.ts";
import { before, page } from "../page.ts";

/** The browsers that are signed in to the account, newest first. */
export async function listSessions(ctx: Ctx, query: ListQuery): Promise<Page<Session>> {
  const rows = await ctx.db
    .select()
    .from(sessions)
    .where(
      and(
        eq(sessions.accountId, accountOf(ctx)),
        gt(sessions.expiresAt, ctx.now()),
        before(sessions.id, query),
      ),
    )
    .orderBy(desc(sessions.id))
    .limit(query.limit + 1);
  return page(rows, query, (row) => ({
    id: row.id,
    current: row.id === credentialOf(ctx),
    ipAddress: row.ipAddress === "" ? null : row.ipAddress,
    userAgent: row.userAgent === "" ? null : row.userAgent,
    createdAt: row.createdAt.toISOString(),
    lastUsedAt: row.updatedAt.toISOString(),
    expiresAt: row.expiresAt.toISOString(),
  }));
}
