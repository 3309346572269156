import { and, asc, eq, lte, sql } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import { commands, schedules, sites } from "../../db/schema.ts";
import { nextRun } from "../../domain/cron.ts";
import { keptRunsPerSchedule } from "../../domain/job-rules.ts";
import { queueCommand } from "../commands/queue.ts";
import { eachAlone } from "../each-alone.ts";
import { runsSchedules } from "./view.ts";

/** Taken in one reading, and worked on at once. */
const pageSize = 100;
const atOnce = 10;
/** One minute's work ends, whatever is due. */
const maxPages = 50;

/** Queues what is due: once for each due minute, however many ticks race, and once for all that were missed. */
export async function runDueSchedules(ctx: Ctx): Promise<void> {
  for (let count = 0; count < maxPages; count++) {
    const due = await ctx.db
      .select()
      .from(schedules)
      .where(and(lte(schedules.nextRunAt, ctx.now()), eq(schedules.enabled, true)))
      .orderBy(asc(schedules.nextRunAt))
      .limit(pageSize);
    await eachAlone("run schedules", due, (schedule) => runOne(ctx, schedule), atOnce);
    if (due.length < pageSize) return;
  }
}

type Due = typeof schedules.$inferSelect;

async function runOne(ctx: Ctx, { id, cron, nextRunAt }: Due): Promise<void> {
  const mark = ctx.newMark();
  const commandId = ctx.newId("command");
  const now = ctx.now();
  const taken = sql`(SELECT site_id FROM schedules WHERE id = ${id} AND mark = ${mark})`;
  const [, , , , gone, [queued]] = await ctx.db.batch([
    // Whoever moves the due minute on has it.
    ctx.db
      .update(schedules)
      .set({ nextRunAt: nextRun(cron, now), mark })
      .where(
        and(
          eq(schedules.id, id),
          sql`${schedules.nextRunAt} = ${nextRunAt?.getTime() ?? null}`,
          eq(schedules.cron, cron),
          eq(schedules.enabled, true),
        ),
      ),
    ...queueCommand(ctx, commandId, {
      command: sql`c.command`,
      timeoutSeconds: sql`c.timeout_seconds`,
      trigger: "schedule",
      scheduleId: sql`c.id`,
      from: sql`schedules c JOIN sites s ON s.id = c.site_id`,
      where: sql`c.id = ${id} AND c.mark = ${mark} AND ${runsSchedules}
        AND NOT EXISTS (SELECT 1 FROM commands WHERE schedule_id = c.id AND status IN ('QUEUED', 'RUNNING'))`,
    }),
    // The run before still goes on, or too many commands wait.
    ctx.statement(sql`
      UPDATE schedules SET skipped_runs = skipped_runs + 1, last_skipped_at = ${now.getTime()}
      WHERE id = ${id} AND mark = ${mark} AND NOT EXISTS (SELECT 1 FROM commands WHERE id = ${commandId})
        AND EXISTS (SELECT 1 FROM sites s WHERE s.id = schedules.site_id AND ${runsSchedules}
          AND s.current_deployment_id IS NOT NULL AND s.host_id IS NOT NULL)`),
    ctx.db
      .delete(commands)
      .where(
        sql`${commands.scheduleId} = ${id} AND ${commands.finishedAt} IS NOT NULL AND ${commands.id} <= (
          SELECT id FROM commands WHERE schedule_id = ${id} ORDER BY id DESC LIMIT 1 OFFSET ${keptRunsPerSchedule})`,
      )
      .returning({ id: commands.id }),
    ctx.db
      .select({ hostId: sites.hostId })
      .from(sites)
      .where(and(eq(sites.id, taken), sql`EXISTS (SELECT 1 FROM commands WHERE id = ${commandId})`)),
  ]);
  for (const command of gone) ctx.logs.remove(command.id);
  if (queued) ctx.hosts.wake(queued.hostId);
}
