import { and, desc, eq, lt, sql } from "drizzle-orm";
import type { Page } from "../../../protocol/api/common.ts";
import type { Site, SiteListQuery } from "../../../protocol/api/sites.ts";
import { accountOf, type Ctx, type Db } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { sites } from "../../db/schema.ts";
import { afterAllIds, page } from "../page.ts";
import { selectRecords, siteView } from "./view.ts";

/** The caller's sites, newest first. */
export async function listSites(ctx: Ctx, query: SiteListQuery): Promise<Page<Site>> {
  const { rows } = await batch(ctx, {
    rows: ctx.hot(records, {
      accountId: accountOf(ctx),
      status: query.status ?? null,
      before: query.cursor ?? afterAllIds,
      limit: query.limit + 1,
    }),
  });
  return page(rows, query, (row) => siteView(ctx, row));
}

const status = sql.placeholder("status");
const records = (db: Db) =>
  selectRecords(db)
    .where(
      and(
        eq(sites.accountId, sql.placeholder("accountId")),
        sql`(${status} IS NULL OR ${sites.status} = ${status})`,
        lt(sites.id, sql.placeholder("before")),
      ),
    )
    .orderBy(desc(sites.id))
    .limit(sql.placeholder("limit"));
