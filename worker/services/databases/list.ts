import { and, desc, eq } from "drizzle-orm";
import type { Page } from "../../../protocol/api/common.ts";
import type { Database, DatabaseListQuery } from "../../../protocol/api/databases.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { databases } from "../../db/schema.ts";
import { before, page } from "../page.ts";
import { databaseView, selectDatabases } from "./view.ts";

/** The caller's databases, newest first. */
export async function listDatabases(ctx: Ctx, query: DatabaseListQuery): Promise<Page<Database>> {
  const rows = await selectDatabases(ctx.db)
    .where(
      and(
        eq(databases.accountId, accountOf(ctx)),
        query.status && eq(databases.status, query.status),
        before(databases.id, query),
      ),
    )
    .orderBy(desc(databases.id))
    .limit(query.limit + 1);
  return page(rows, query, databaseView);
}
