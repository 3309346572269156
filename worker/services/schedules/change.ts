import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, sql } from "drizzle-orm";
import type { Schedule, SchedulePatch } from "../../../protocol/api/schedules.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { schedules } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { cronProblem, nextRun } from "../../domain/cron.ts";
import { nameIsTaken } from "./name-is-taken.ts";
import { scheduleById, scheduleOwnedBy } from "./owned.ts";
import { scheduleView } from "./view.ts";

/**
 * A run in progress is not affected. A changed or enabled schedule counts from now; missed runs are not made up for.
 */
export async function changeSchedule(
  ctx: Ctx,
  { id: scheduleId, ...change }: ById & SchedulePatch,
): Promise<Schedule> {
  const row = await scheduleOwnedBy(ctx, scheduleId);
  const now = ctx.now();
  const { cron = row.cron, enabled = row.enabled } = change;
  const problem = cronProblem(cron, now);
  if (problem !== null) throw invalid("cron", problem);
  const isRetimed = cron !== row.cron || enabled !== row.enabled;
  const {
    changed: [changed],
    shown: [shown],
  } = await batch(ctx, {
    changed: ctx.db
      .update(schedules)
      .set({
        ...change,
        ...(isRetimed && { nextRunAt: enabled ? nextRun(cron, now) : null }),
        updatedAt: now,
      })
      .where(
        and(
          eq(schedules.id, row.id),
          // The inputs of the next time.
          sql`${schedules.cron} = ${row.cron} AND ${schedules.enabled} = ${row.enabled ? 1 : 0}`,
          change.name === undefined
            ? undefined
            : sql`NOT EXISTS (SELECT 1 FROM schedules o WHERE o.site_id = ${row.siteId} AND o.name = ${change.name} AND o.id <> ${row.id})`,
        ),
      )
      .returning({ id: schedules.id }),
    shown: scheduleById(ctx, row.id),
  });
  if (changed && shown) return scheduleView(shown, now);
  if (
    change.name !== undefined &&
    change.name !== row.name &&
    (await nameIsTaken(ctx, row.siteId, change.name))
  )
    throw conflict(`This site already has a schedule named ${change.name}.`);
  await scheduleOwnedBy(ctx, row.id);
  throw conflict("The schedule was changed concurrently. Check it, then try again.");
}
