import { sql } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import { openJob } from "../db/job-conditions.ts";
import { timerRuns } from "../db/schema.ts";
import { absentAfterMs } from "../domain/job-rules.ts";

/**
 * Runs once a minute. While the control plane is down, no host can take a job or report one: every open job's
 * deadline is extended by the length of the outage, so that hosts can report first.
 */
export async function giveBackTime(ctx: Ctx): Promise<void> {
  const now = ctx.now();
  const ranAt = sql`(SELECT ran_at FROM timer_runs WHERE id = 1)`;
  await ctx.db.batch([
    ctx.statement(sql`
      UPDATE jobs SET deadline_at = deadline_at + ${now.getTime()} - max(${ranAt}, coalesce(leased_at, created_at))
      WHERE ${openJob} AND ${now.getTime()} - ${ranAt} > ${absentAfterMs}`),
    ctx.db
      .insert(timerRuns)
      .values({ id: 1, ranAt: now })
      .onConflictDoUpdate({ target: timerRuns.id, set: { ranAt: now } }),
  ]);
}
