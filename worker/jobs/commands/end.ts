import { and, eq, inArray, type SQL } from "drizzle-orm";
import type { CommandStatus } from "../../../protocol/states.ts";
import type { Ctx } from "../../ctx.ts";
import { commands, type jobs } from "../../db/schema.ts";

type Job = typeof jobs.$inferSelect;
export type Outcome = { status: CommandStatus; exitCode: number | null; error: string | null };

/** Records the end of the job's command, where `guard` holds. */
export const endCommand = (ctx: Ctx, { commandId }: Job, outcome: Outcome, guard: SQL) => {
  if (!commandId) throw new Error("A job names no command");
  return ctx.db
    .update(commands)
    .set({ ...outcome, finishedAt: ctx.now() })
    .where(and(eq(commands.id, commandId), inArray(commands.status, ["QUEUED", "RUNNING"]), guard));
};

/** Writes the last line of the command's log and ends its stream. */
export function tellEnd(ctx: Ctx, { commandId }: Job, { status, error }: Outcome): void {
  if (!commandId) return;
  const lastLine: Partial<Record<CommandStatus, string>> = {
    SUCCEEDED: "Command succeeded.",
    CANCELLED: "Command cancelled.",
  };
  ctx.logs.finish(commandId, lastLine[status] ?? `Command failed: ${error}`);
}
