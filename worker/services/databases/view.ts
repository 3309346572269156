import { getTableColumns, sql } from "drizzle-orm";
import type { Database } from "../../../protocol/api/databases.ts";
import type { Db } from "../../ctx.ts";
import { openJob } from "../../db/job-conditions.ts";
import { databases } from "../../db/schema.ts";
import { shrunkNotice } from "../../domain/backup-rules.ts";
import { databaseEngines, databaseHostname, usernameOf } from "../../domain/database-engines.ts";
import { diskNotice } from "../../domain/disk-notice.ts";
import { isoTime } from "../../domain/iso-time.ts";
import { billingDayOf } from "../../domain/pricing.ts";
import { failingView } from "../backups/view.ts";
import { silentHost, waitReasons } from "../../domain/wait-reasons.ts";
import { hostIsClosed } from "../../jobs/hosts/placement.ts";

/** Databases with everything in their public representation, in one statement. */
export const selectDatabases = (db: Db) =>
  db
    .select({
      ...getTableColumns(databases),
      hostOffline:
        sql<number>`EXISTS (SELECT 1 FROM hosts WHERE id = databases.host_id AND offline_since IS NOT NULL)`.as(
          "host_offline",
        ),
      /** 0: no host has taken it. */
      silentSince: sql<number | null>`
        (SELECT CASE WHEN j.host_id IS NULL THEN 0 ELSE (SELECT offline_since FROM hosts WHERE id = j.host_id) END
        FROM jobs j WHERE j.lane = databases.id AND j.${openJob} ORDER BY j.seq LIMIT 1)`.as("silent_since"),
      hostClosed: sql<number>`EXISTS (SELECT 1 FROM jobs j
        WHERE j.lane = databases.id AND j.status = 'QUEUED' AND ${hostIsClosed})`.as("host_closed"),
      // Found by the lane, whose index contains open jobs.
      restoring: sql<{ backupId: string; since: number } | null>`
        (SELECT json_object('backupId', backup_id, 'since', created_at) FROM jobs
        WHERE lane = databases.id AND ${openJob} AND kind = 'database.restore' LIMIT 1)`
        .mapWith((text: string) => JSON.parse(text) as { backupId: string; since: number })
        .as("restoring"),
      shrunk: sql<{ from: string; at: number } | null>`
        (SELECT json_object('from', o.id, 'at', o.created_at)
        FROM (SELECT shrunk_from FROM backups WHERE database_id = databases.id AND status = 'VERIFIED' AND removed_at IS NULL
          ORDER BY id DESC LIMIT 1) b
        JOIN backups o ON o.id = b.shrunk_from AND o.status = 'VERIFIED' AND o.removed_at IS NULL)`
        .mapWith((text: string) => JSON.parse(text) as { from: string; at: number })
        .as("shrunk"),
      diskGb: sql<number>`(SELECT disk_gb FROM packs WHERE id = databases.pack_id)`.as("disk_gb"),
      links: sql<Database["links"]>`
        (SELECT json_group_array(json_object('siteId', site_id, 'variable', variable,
          'inService', json(iif(generation IS NULL, 'false', 'true'))))
        FROM (SELECT * FROM database_links WHERE database_id = databases.id ORDER BY created_at, site_id))`
        .mapWith((text: string) => JSON.parse(text) as Database["links"])
        .as("links"),
    })
    .from(databases);

function waitsFor({ silentSince, hostClosed }: { silentSince: number | null; hostClosed: number }) {
  if (silentSince === null) return hostClosed === 1 ? waitReasons.closed : null;
  return silentSince === 0 ? waitReasons.placement : silentHost(silentSince);
}

/** The public representation, without any password. */
export const databaseView = (row: Awaited<ReturnType<typeof selectDatabases>>[number]): Database => ({
  id: row.id,
  name: row.name,
  type: row.type,
  version: row.version,
  status: row.status,
  error: row.error,
  waitsFor: waitsFor(row),
  notice: [diskNotice(row), row.shrunk && shrunkNotice(row.shrunk)].filter(Boolean).join(" ") || null,
  packId: row.packId,
  nextPackId: row.nextPackId,
  billingTerm: row.billingTerm,
  nextBillingTerm: row.nextBillingTerm,
  billingDay: billingDayOf(row),
  host: databaseHostname(row.name),
  port: databaseEngines[row.type].port,
  sizeMb: row.diskMb,
  databaseName: row.type === "redis" ? null : row.databaseName,
  username: usernameOf(row.databaseName, row.generation),
  restoring: row.restoring && { ...row.restoring, since: isoTime(new Date(row.restoring.since)) },
  rotating: row.nextPasswordSealed !== null || row.previousPasswordSealed !== null,
  links: row.links,
  backups: {
    schedule: row.backupSchedule,
    hourUtc: row.backupHourUtc,
    keep: row.backupKeep,
    nextAt: isoTime(row.nextBackupAt),
    failing: failingView(row),
  },
  publicAccess: {
    enabled: row.publicEnabled,
    allow: row.publicAllow,
    applied: row.publicApplied === row.publicGeneration,
    host: row.publicAddress,
    port: row.publicPort,
    error: row.publicError,
  },
  paidUntil: isoTime(row.paidUntil),
  region: row.region,
  hostId: row.hostId,
  hostOffline: row.hostOffline === 1,
  createdAt: isoTime(row.createdAt),
  updatedAt: isoTime(row.updatedAt),
});
