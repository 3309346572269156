import { and, desc, gt } from "drizzle-orm";
import type { FailingBackups } from "../../../protocol/api/backups.ts";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Ctx } from "../../ctx.ts";
import { databases } from "../../db/schema.ts";
import { before, page } from "../page.ts";

/** For operators: whose planned backups fail. */
export async function listFailing(ctx: Ctx, query: ListQuery): Promise<Page<FailingBackups>> {
  const rows = await ctx.db
    .select()
    .from(databases)
    .where(and(gt(databases.backupFailures, 0), before(databases.id, query)))
    .orderBy(desc(databases.id))
    .limit(query.limit + 1);
  return page(rows, query, (row) => ({
    id: row.id,
    accountId: row.accountId,
    hostId: row.hostId,
    type: row.type,
    since: (row.backupsFailingSince ?? row.updatedAt).toISOString(),
    times: row.backupFailures,
    reason: row.backupFailureReason ?? "",
  }));
}
