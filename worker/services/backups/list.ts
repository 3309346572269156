import { and, desc, eq, isNull, sql } from "drizzle-orm";
import type { Backup, BackupListQuery } from "../../../protocol/api/backups.ts";
import type { ById, ListQuery, Page } from "../../../protocol/api/common.ts";
import { VolumeName } from "../../../protocol/api/volumes.ts";
import type { Id } from "../../../protocol/ids.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { backups } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { volumeKey, volumeKeysOf, type VolumeKey } from "../../domain/volume-keys.ts";
import { databaseById } from "../databases/owned.ts";
import { idIn, ownedWith } from "../owned.ts";
import { before, page } from "../page.ts";
import { siteById } from "../sites/owned.ts";
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
  const id = idIn("database", databaseId);
  const { rows } = await ownedWith(ctx, databaseById(ctx, id), {
    rows: backupsOf(ctx, { ...query, databaseId: id }),
  });
  return page(rows, query, backupView);
}

/** Those of a volume, existing or deleted, of an existing site: not_found, then forbidden. */
export async function listVolumeBackups(
  ctx: Ctx,
  { id: siteId, name, ...query }: ById & { name: string } & ListQuery,
): Promise<Page<Backup>> {
  const id = idIn("site", siteId);
  const { rows } = await ownedWith(ctx, siteById(ctx, id), {
    rows: backupsOf(ctx, query, volumeKey(id, name)),
  });
  if (!VolumeName.safeParse(name).success) throw new AppError("not_found");
  return page(rows, query, backupView);
}

const ofSite = (id: Id<"site">) => {
  const [from, to] = volumeKeysOf(id);
  return and(sql`${backups.databaseId} > ${from}`, sql`${backups.databaseId} < ${to}`);
};

const backupsOf = (ctx: Ctx, { databaseId, siteId, ...query }: BackupListQuery, key?: VolumeKey) =>
  ctx.db
    .select()
    .from(backups)
    .where(
      and(
        eq(backups.accountId, accountOf(ctx)),
        databaseId === undefined ? undefined : eq(backups.databaseId, idIn("database", databaseId)),
        siteId === undefined ? undefined : ofSite(idIn("site", siteId)),
        key && eq(backups.databaseId, key),
        isNull(backups.removedAt),
        before(backups.id, query),
      ),
    )
    .orderBy(desc(backups.id))
    .limit(query.limit + 1);
