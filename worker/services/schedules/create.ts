import type { ById } from "../../../protocol/api/common.ts";
import { sql } from "drizzle-orm";
import type { Schedule, ScheduleCreate } from "../../../protocol/api/schedules.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { cronProblem, nextRun } from "../../domain/cron.ts";
import { maxSchedulesPerAccount, maxSchedulesPerSite } from "../../domain/job-rules.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { siteOwnedBy } from "../sites/owned.ts";
import { nameIsTaken } from "./name-is-taken.ts";
import { scheduleById } from "./owned.ts";
import { scheduleView } from "./view.ts";

/** Creates a scheduled command. The site must be paid for; runs take place while it is not stopped and has an image. */
export async function createSchedule(
  ctx: Ctx,
  { id: siteId, ...wanted }: ById & ScheduleCreate,
): Promise<Schedule> {
  const site = await siteOwnedBy(ctx, siteId);
  if (site.status === "PENDING") await refuseUnpaid(ctx, site);
  const id = ctx.newId("schedule");
  const now = ctx.now();
  const problem = cronProblem(wanted.cron, now);
  if (problem !== null) throw invalid("cron", problem);
  const { name, cron, command, timeoutSeconds, enabled } = wanted;
  const nextRunAt = enabled ? (nextRun(cron, now)?.getTime() ?? null) : null;
  const ofAccount = sql`(SELECT count(*) FROM schedules WHERE account_id = s.account_id)`;
  const {
    made: [made],
  } = await batch(ctx, {
    schedules: ctx.statement(sql`
      INSERT INTO schedules (id, site_id, account_id, name, cron, command, timeout_seconds, enabled, next_run_at, created_at, updated_at)
      SELECT ${id}, s.id, s.account_id, ${name}, ${cron}, ${command}, ${timeoutSeconds}, ${enabled ? 1 : 0}, ${nextRunAt},
        ${now.getTime()}, ${now.getTime()}
      FROM sites s WHERE s.id = ${site.id} AND s.status NOT IN ('PENDING', 'DELETING')
        AND ${maxSchedulesPerSite} > (SELECT count(*) FROM schedules WHERE site_id = s.id)
        AND ${maxSchedulesPerAccount} > ${ofAccount}
        AND NOT EXISTS (SELECT 1 FROM schedules WHERE site_id = s.id AND name = ${name})`),
    made: scheduleById(ctx, id),
  });
  if (made) return scheduleView(made, now);
  if (site.status === "DELETING") throw conflict("A site that is being deleted cannot have schedules.");
  if (await nameIsTaken(ctx, site.id, name))
    throw conflict(`This site already has a schedule named ${name}.`);
  throw conflict(
    `A site can have at most ${maxSchedulesPerSite} schedules, an account ${maxSchedulesPerAccount}. Delete one first.`,
  );
}
