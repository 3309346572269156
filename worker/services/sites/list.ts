import { and, desc, eq } from "drizzle-orm";
import type { Page } from "../../../protocol/api/common.ts";
import type { Site, SiteListQuery } from "../../../protocol/api/sites.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { sites } from "../../db/schema.ts";
import { before, page } from "../page.ts";
import { selectRecords, siteView } from "./view.ts";

/** The caller's sites, newest first. */
export async function listSites(ctx: Ctx, query: SiteListQuery): Promise<Page<Site>> {
  const rows = await selectRecords(ctx.db)
    .where(
      and(
        eq(sites.accountId, accountOf(ctx)),
        query.status && eq(sites.status, query.status),
        before(sites.id, query),
      ),
    )
    .orderBy(desc(sites.id))
    .limit(query.limit + 1);
  return page(rows, query, (row) => siteView(ctx, row));
}
