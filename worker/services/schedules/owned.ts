import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { schedules } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";
import { selectSchedules, type ScheduleRow } from "./view.ts";

/** The query for a schedule, for a batch. */
export const scheduleById = (ctx: Ctx, id: Id<"schedule">) =>
  selectSchedules(ctx.db).where(eq(schedules.id, id));

/** A single schedule: not_found, then forbidden. */
export async function scheduleOwnedBy(ctx: Ctx, scheduleId: string): Promise<ScheduleRow> {
  const [row] = await scheduleById(ctx, idIn("schedule", scheduleId));
  return requireOwned(ctx, row);
}
