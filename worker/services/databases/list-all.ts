import { and, desc, eq, sql } from "drizzle-orm";
import type { Page } from "../../../protocol/api/common.ts";
import type { AllDatabasesQuery, DatabaseForOperator } from "../../../protocol/api/console.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts, databases, hosts } from "../../db/schema.ts";
import { before, containing, only, page } from "../page.ts";

/** The databases of all accounts, for operators, newest first. */
export async function listAllDatabases(
  ctx: Ctx,
  query: AllDatabasesQuery,
): Promise<Page<DatabaseForOperator>> {
  const rows = await ctx.db
    .select({
      id: databases.id,
      name: databases.name,
      accountId: databases.accountId,
      accountEmail: accounts.email,
      type: databases.type,
      version: databases.version,
      status: databases.status,
      error: databases.error,
      hostId: databases.hostId,
      hostName: sql<string | null>`${hosts.name}`.as("host_name"),
      offlineSince: hosts.offlineSince,
      diskMb: databases.diskMb,
      backupsFailingSince: databases.backupsFailingSince,
      lastVerifiedBackupAt: sql<number | null>`(SELECT max(b.created_at) FROM backups b
        WHERE b.database_id = ${databases.id} AND +b.status = 'VERIFIED' AND +b.removed_at IS NULL)`.as(
        "last_verified",
      ),
      packId: databases.packId,
      paidUntil: databases.paidUntil,
      createdAt: databases.createdAt,
      updatedAt: databases.updatedAt,
    })
    .from(databases)
    .innerJoin(accounts, eq(accounts.id, databases.accountId))
    .leftJoin(hosts, eq(hosts.id, databases.hostId))
    .where(
      and(
        only(databases.status, query.status),
        only(databases.hostId, query.hostId),
        only(databases.accountId, query.accountId),
        containing(query.search, databases.id, databases.name),
        before(databases.id, query),
      ),
    )
    .orderBy(desc(databases.id))
    .limit(query.limit + 1);
  return page(rows, query, ({ offlineSince, ...row }) => ({
    ...row,
    hostOffline: offlineSince !== null,
    backupsFailingSince: row.backupsFailingSince?.toISOString() ?? null,
    lastVerifiedBackupAt:
      row.lastVerifiedBackupAt === null ? null : new Date(row.lastVerifiedBackupAt).toISOString(),
    paidUntil: row.paidUntil?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }));
}
