import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, inArray } from "drizzle-orm";
import type { Command } from "../../../protocol/api/commands.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { jobs } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { endAsFailed } from "../../jobs/finish.ts";
import { requestCancel, reviseCancelled } from "../../jobs/request-cancel.ts";
import { idIn, ownedWith, requireOwned } from "../owned.ts";
import { commandById } from "./owned.ts";
import { commandView } from "./view.ts";

/** A queued command ends at once, a running one when its host has stopped it. */
export async function cancelCommand(ctx: Ctx, { id: commandId }: ById): Promise<Command> {
  const id = idIn("command", commandId);
  const {
    owned: command,
    job: [job],
  } = await ownedWith(ctx, commandById(ctx, id), {
    job: ctx.db
      .select()
      .from(jobs)
      .where(and(eq(jobs.lane, id), inArray(jobs.status, ["QUEUED", "LEASED"]))),
  });
  if (job?.status === "QUEUED") {
    const now = ctx.now();
    const failure = { error: "Cancelled", cancelled: true, durations: null };
    const ended = await endAsFailed({ ...ctx, now: () => now }, job, failure);
    if (ended.recorded) return commandView({ ...command, status: "CANCELLED", finishedAt: now });
  }
  // It is running, or a host has just taken it.
  const {
    leased: [leased],
    running: [running],
  } = await batch(ctx, {
    leased: requestCancel(ctx, job?.id ?? null),
    running: commandById(ctx, id),
  });
  if (!leased) throw conflict("This command has already finished.");
  reviseCancelled(ctx, [leased]);
  return commandView(requireOwned(ctx, running));
}
