import { and, desc, eq, getTableColumns, gte, sql, type SQL } from "drizzle-orm";
import type { Activity, ActivityQuery, AllActivityQuery } from "../../../protocol/api/activity.ts";
import type { Page } from "../../../protocol/api/common.ts";
import { operations } from "../../../protocol/api/operations.ts";
import type { Id } from "../../../protocol/ids.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { activity, apiKeys, sessions } from "../../db/schema.ts";
import { before, page } from "../page.ts";

/** Changes in the caller's account, and what its assistant called, newest first. */
export const listActivity = (ctx: Ctx, query: ActivityQuery): Promise<Page<Activity>> =>
  list(ctx, query, eq(activity.accountId, accountOf(ctx)));

/** The same of all accounts, for operators. */
export const listAllActivity = (ctx: Ctx, query: AllActivityQuery): Promise<Page<Activity>> =>
  list(
    ctx,
    query,
    query.accountId === undefined ? undefined : eq(activity.accountId, query.accountId as Id<"account">),
  );

const reads = JSON.stringify(
  Object.entries(operations).flatMap(([id, { method }]) => (method === "get" ? [id] : [])),
);

/**
 * Tools have an underscore in their names, and operations none. Of all but calls there is an index, by this very condition.
 * Reads are recorded of operators only who see the account as its owner does.
 */
const kinds = {
  changes: sql`instr(${activity.operation}, '_') = 0
    AND NOT (${activity.actor} = 'operator' AND ${activity.operation} IN (SELECT value FROM json_each(${reads})))`,
  calls: sql`instr(${activity.operation}, '_') > 0`,
} as const;

async function list(ctx: Ctx, query: ActivityQuery, whose: SQL | undefined): Promise<Page<Activity>> {
  const rows = await ctx.db
    .select({
      ...getTableColumns(activity),
      key: { name: apiKeys.name, start: apiKeys.start, origin: apiKeys.origin },
      browser: sessions.userAgent,
    })
    .from(activity)
    // An operator's keys and sessions are not told to the account that they acted on.
    .leftJoin(
      apiKeys,
      and(eq(apiKeys.id, sql`${activity.actorId}`), eq(apiKeys.accountId, activity.accountId)),
    )
    .leftJoin(
      sessions,
      and(eq(sessions.id, sql`${activity.actorId}`), eq(sessions.accountId, activity.accountId)),
    )
    .where(
      and(
        whose,
        query.resource === undefined ? undefined : eq(activity.resourceId, query.resource),
        query.actor === undefined ? undefined : eq(activity.actor, query.actor),
        query.only === undefined ? undefined : kinds[query.only],
        query.since === undefined ? undefined : gte(activity.createdAt, new Date(query.since)),
        before(activity.id, query),
      ),
    )
    .orderBy(desc(activity.id))
    .limit(query.limit + 1);
  return page(rows, query, ({ createdAt, ...row }) => ({ ...row, at: createdAt.toISOString() }));
}
