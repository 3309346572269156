import { getTableColumns, sql } from "drizzle-orm";
import type { Command } from "../../../protocol/api/commands.ts";
import type { Db } from "../../ctx.ts";
import { openJob } from "../../db/job-conditions.ts";
import { commands } from "../../db/schema.ts";
import { isoTime } from "../../domain/iso-time.ts";
import { silentHost, waitReasons } from "../../domain/wait-reasons.ts";
import { hostIsClosed } from "../../jobs/hosts/placement.ts";

/** Commands with everything in their public representation. */
export const selectCommands = (db: Db) =>
  db
    .select({
      ...getTableColumns(commands),
      silentSince: sql<number | null>`(SELECT h.offline_since FROM jobs j JOIN hosts h ON h.id = j.host_id
        WHERE j.lane = commands.id AND j.${openJob})`.as("silent_since"),
      hostClosed: sql<number>`EXISTS (SELECT 1 FROM jobs j
        WHERE j.lane = commands.id AND j.status = 'QUEUED' AND ${hostIsClosed})`.as("host_closed"),
    })
    .from(commands);
export type CommandRow = Awaited<ReturnType<typeof selectCommands>>[number];

function waitsFor({ status, silentSince, hostClosed }: CommandRow): string | null {
  if (status === "QUEUED" && silentSince === null)
    return hostClosed === 1 ? waitReasons.closed : waitReasons.turn;
  if (status === "QUEUED") return waitReasons.host;
  return status === "RUNNING" && silentSince !== null ? silentHost(silentSince) : null;
}

export const commandView = (row: CommandRow): Command => ({
  id: row.id,
  siteId: row.siteId,
  command: row.command,
  timeoutSeconds: row.timeoutSeconds,
  status: row.status,
  trigger: row.trigger,
  scheduleId: row.scheduleId,
  deploymentId: row.deploymentId,
  exitCode: row.exitCode,
  error: row.error,
  waitsFor: waitsFor(row),
  createdAt: isoTime(row.createdAt),
  startedAt: isoTime(row.startedAt),
  finishedAt: isoTime(row.finishedAt),
});
