import { and, desc, eq, isNull } from "drizzle-orm";
import type { Backup, BackupListQuery } from "../../../protocol/api/backups.ts";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import { accountOf, type Ctx } from "../../context.ts";
import { backups } from "../../db/schema.ts";
import { databaseIdOf, databaseOwnedBy } from "../databases/owned.ts";
import { before, page } from "../page.ts";
import { backupView } from "./view.ts";

/** The caller's backups, newest first; those of deleted databases as well. */
export async function listBackups(
  ctx: Ctx,
  { databaseId, ...query }: BackupListQuery,
): Promise<Page<Backup>> {
  const rows = await ctx.db
    .select()
    .from(backups)
    .where(
      and(
        eq(backups.accountId, accountOf(ctx)),
        databaseId === undefined ? undefined : eq(backups.databaseId, databaseIdOf(databaseId)),
        isNull(backups.removedAt),
        before(backups.id, query),
      ),
    )
    .orderBy(desc(backups.id))
    .limit(query.limit + 1);
  return page(rows, query, backupView);
}

/** Of a database that is there: not_found, then forbidden. */
export async function listBackupsOf(ctx: Ctx, databaseId: string, query: ListQuery): Promise<Page<Backup>> {
  await databaseOwnedBy(ctx, databaseId);
  return listBackups(ctx, { ...query, databaseId });
}
