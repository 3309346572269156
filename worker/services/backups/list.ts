import { and, desc, eq, isNull } from "drizzle-orm";
import type { Backup, BackupListQuery } from "../../../protocol/api/backups.ts";
import type { ById, ListQuery, Page } from "../../../protocol/api/common.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { backups } from "../../db/schema.ts";
import { databaseById, databaseIdOf } from "../databases/owned.ts";
import { requireOwned } from "../owned.ts";
import { before, page } from "../page.ts";
import { backupView } from "./view.ts";

/** The caller's backups, newest first, including those of deleted databases. */
export async function listBackups(ctx: Ctx, query: BackupListQuery): Promise<Page<Backup>> {
  return page(await backupsOf(ctx, query), query, backupView);
}

/** For an existing database: not_found, then forbidden. */
export async function listBackupsOf(
  ctx: Ctx,
  { id: databaseId, ...query }: ById & ListQuery,
): Promise<Page<Backup>> {
  const id = databaseIdOf(databaseId);
  const {
    database: [database],
    rows,
  } = await batch(ctx, {
    database: databaseById(ctx, id),
    rows: backupsOf(ctx, { ...query, databaseId: id }),
  });
  requireOwned(ctx, database);
  return page(rows, query, backupView);
}

const backupsOf = (ctx: Ctx, { databaseId, ...query }: BackupListQuery) =>
  ctx.db
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
