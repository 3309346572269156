import type { Schedule } from "../../../protocol/api/schedules.ts";
import { getTableColumns, sql } from "drizzle-orm";
import type { Db } from "../../ctx.ts";
import { schedules } from "../../db/schema.ts";
import { nextRun } from "../../domain/cron.ts";
import { isoTime } from "../../domain/iso-time.ts";

/** For a site `s`: schedules pause while it is stopped or unpaid. */
export const runsSchedules = sql`s.status IN ('DEPLOYING', 'RUNNING', 'FAILED') AND s.wanted = 'RUNNING'`;

/** Schedules with everything in their public representation. */
export const selectSchedules = (db: Db) =>
  db
    .select({
      ...getTableColumns(schedules),
      isRun:
        sql`EXISTS (SELECT 1 FROM sites s WHERE s.id = ${schedules.siteId} AND s.current_deployment_id IS NOT NULL AND ${runsSchedules})`
          .mapWith(Boolean)
          .as("is_run"),
    })
    .from(schedules);
export type ScheduleRow = Awaited<ReturnType<typeof selectSchedules>>[number];

export const scheduleView = (row: ScheduleRow, now: Date): Schedule => ({
  id: row.id,
  siteId: row.siteId,
  name: row.name,
  cron: row.cron,
  command: row.command,
  timeoutSeconds: row.timeoutSeconds,
  enabled: row.enabled,
  // The timer sets it again once the site runs; missed runs are not made up for.
  nextRunAt: row.isRun && row.enabled ? isoTime(row.nextRunAt ?? nextRun(row.cron, now)) : null,
  skippedRuns: row.skippedRuns,
  lastSkippedAt: isoTime(row.lastSkippedAt),
  createdAt: isoTime(row.createdAt),
  updatedAt: isoTime(row.updatedAt),
});
