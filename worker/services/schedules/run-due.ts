import { and, eq, isNull, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { commands, schedules, sites } from "../../db/schema.ts";
import { nextRun } from "../../domain/cron.ts";
import { keptRunsPerSchedule } from "../../domain/job-rules.ts";
import { queueCommand } from "../../jobs/commands/queue.ts";
import { eachAlone } from "../../each-alone.ts";
import { runsSchedules } from "./view.ts";

const atOnce = 10;
/** Bounds the work of one minute. */
const mostAMinute = 5000;

const itsSiteRuns = sql`EXISTS (SELECT 1 FROM sites s WHERE s.id = c.site_id AND ${runsSchedules})`;

/** Queues due runs: once per due minute even with concurrent ticks, and once for all missed minutes. */
export async function runDueSchedules(ctx: Ctx): Promise<void> {
  await setAgain(ctx);
  const now = ctx.now().getTime();
  const { due } = await batch(ctx, {
    // Resumed when its site runs.
    schedules: ctx.statement(sql`
      UPDATE schedules AS c SET next_run_at = NULL WHERE next_run_at <= ${now} AND enabled AND NOT ${itsSiteRuns}`),
    // Fairness: the first run of each account precedes the second of any.
    due: ctx.db
      .select({ id: schedules.id, cron: schedules.cron, nextRunAt: schedules.nextRunAt })
      .from(schedules)
      .where(sql`next_run_at <= ${now} AND enabled`)
      .orderBy(sql`row_number() OVER (PARTITION BY account_id ORDER BY next_run_at, id), next_run_at`)
      .limit(mostAMinute),
  });
  await eachAlone("run schedules", due, (schedule) => runOne(ctx, schedule), atOnce);
}

/** Runs missed while the site was stopped are not made up for. */
async function setAgain(ctx: Ctx): Promise<void> {
  const parked = await ctx.db
    .select({ id: schedules.id, cron: schedules.cron })
    .from(schedules)
    .innerJoin(sql`sites s`, sql`s.id = ${schedules.siteId} AND ${runsSchedules}`)
    .where(sql`${schedules.enabled} AND ${schedules.nextRunAt} IS NULL`)
    .limit(mostAMinute);
  await eachAlone(
    "set schedules again",
    parked,
    async ({ id, cron }) => {
      await ctx.db
        .update(schedules)
        .set({ nextRunAt: nextRun(cron, ctx.now()) })
        .where(
          and(
            eq(schedules.id, id),
            eq(schedules.cron, cron),
            eq(schedules.enabled, true),
            isNull(schedules.nextRunAt),
          ),
        );
    },
    atOnce,
  );
}

type Due = Pick<typeof schedules.$inferSelect, "id" | "cron" | "nextRunAt">;

async function runOne(ctx: Ctx, { id, cron, nextRunAt }: Due): Promise<void> {
  const mark = ctx.newMark();
  const commandId = ctx.newId("command");
  const now = ctx.now();
  const taken = sql`(SELECT site_id FROM schedules WHERE id = ${id} AND mark = ${mark})`;
  const {
    gone,
    queued: [queued],
  } = await batch(ctx, {
    // The tick that advances the due minute gets to run it.
    advanced: ctx.db
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
    command: queueCommand(ctx, commandId, {
      command: sql`c.command`,
      timeoutSeconds: sql`c.timeout_seconds`,
      trigger: "schedule",
      scheduleId: sql`c.id`,
      from: sql`schedules c JOIN sites s ON s.id = c.site_id`,
      where: sql`c.id = ${id} AND c.mark = ${mark} AND ${runsSchedules}
        AND NOT EXISTS (SELECT 1 FROM commands WHERE schedule_id = c.id AND status IN ('QUEUED', 'RUNNING'))`,
    }),
    // The previous run is still active, or too many commands are queued.
    skipped: ctx.statement(sql`
      UPDATE schedules SET skipped_runs = skipped_runs + 1, last_skipped_at = ${now.getTime()}
      WHERE id = ${id} AND mark = ${mark} AND NOT EXISTS (SELECT 1 FROM commands WHERE id = ${commandId})
        AND EXISTS (SELECT 1 FROM sites s WHERE s.id = schedules.site_id AND ${runsSchedules}
          AND s.current_deployment_id IS NOT NULL AND s.host_id IS NOT NULL)`),
    gone: ctx.db
      .delete(commands)
      .where(
        sql`${commands.scheduleId} = ${id} AND ${commands.finishedAt} IS NOT NULL AND ${commands.id} <= (
          SELECT id FROM commands WHERE schedule_id = ${id} ORDER BY id DESC LIMIT 1 OFFSET ${keptRunsPerSchedule})`,
      )
      .returning({ id: commands.id }),
    queued: ctx.db
      .select({ hostId: sites.hostId })
      .from(sites)
      .where(and(eq(sites.id, taken), sql`EXISTS (SELECT 1 FROM commands WHERE id = ${commandId})`)),
  });
  for (const command of gone) ctx.logs.remove(command.id);
  if (queued) ctx.hosts.wake(queued.hostId);
}
