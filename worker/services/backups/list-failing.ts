import { sql } from "drizzle-orm";
import type { FailingBackups } from "../../../protocol/api/backups.ts";
import type { BackupType } from "../../../protocol/states.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Ctx } from "../../ctx.ts";
import type { VolumeKey } from "../../domain/volume-keys.ts";
import { page } from "../page.ts";

type Row = {
  id: Id<"database"> | VolumeKey;
  accountId: string;
  hostId: string | null;
  type: BackupType;
  since: number;
  times: number;
  reason: string | null;
};

/** For operators: whose planned backups fail. Volumes first, as their ids sort after those of databases. */
export async function listFailing(ctx: Ctx, query: ListQuery): Promise<Page<FailingBackups>> {
  const rows = await ctx.db.all<Row>(sql`
    SELECT * FROM (
      SELECT id, account_id AS accountId, host_id AS hostId, type, backups_failing_since AS since,
        backup_failures AS times, backup_failure_reason AS reason
      FROM databases WHERE backup_failures > 0
      UNION ALL
      SELECT s.id || '/' || v.name, s.account_id, s.host_id, 'volume', v.backups_failing_since,
        v.backup_failures, v.backup_failure_reason
      FROM site_volumes v JOIN sites s ON s.id = v.site_id WHERE v.backup_failures > 0)
    WHERE ${query.cursor === undefined ? sql`1` : sql`id < ${query.cursor}`}
    ORDER BY id DESC LIMIT ${query.limit + 1}`);
  return page(rows, query, ({ since, reason, ...row }) => ({
    ...row,
    since: new Date(since).toISOString(),
    reason: reason ?? "",
  }));
}
