import type { Schedule } from "../../../protocol/api/schedules.ts";
import type { schedules } from "../../db/schema.ts";

export type ScheduleRow = typeof schedules.$inferSelect;

export const scheduleView = (row: ScheduleRow): Schedule => ({
  id: row.id,
  siteId: row.siteId,
  name: row.name,
  cron: row.cron,
  command: row.command,
  timeoutSeconds: row.timeoutSeconds,
  enabled: row.enabled,
  nextRunAt: row.nextRunAt?.toISOString() ?? null,
  skippedRuns: row.skippedRuns,
  lastSkippedAt: row.lastSkippedAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
});
