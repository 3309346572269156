import type { Command } from "../../../protocol/api/commands.ts";
import type { commands } from "../../db/schema.ts";

export type CommandRow = typeof commands.$inferSelect;

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
  createdAt: row.createdAt.toISOString(),
  startedAt: row.startedAt?.toISOString() ?? null,
  finishedAt: row.finishedAt?.toISOString() ?? null,
});
