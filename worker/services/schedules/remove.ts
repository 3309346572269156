import { eq } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { schedules } from "../../db/schema.ts";
import { scheduleOwnedBy } from "./owned.ts";

/** What it ran, and a run that still goes on, stay. */
export async function removeSchedule(ctx: Ctx, scheduleId: string): Promise<{ id: string; removed: true }> {
  const { id } = await scheduleOwnedBy(ctx, scheduleId);
  await ctx.db.delete(schedules).where(eq(schedules.id, id));
  return { id, removed: true };
}
