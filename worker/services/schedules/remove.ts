import type { ById } from "../../../protocol/api/common.ts";
import { eq } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { schedules } from "../../db/schema.ts";
import { scheduleOwnedBy } from "./owned.ts";

/** Past runs and a run in progress are kept. */
export async function removeSchedule(
  ctx: Ctx,
  { id: scheduleId }: ById,
): Promise<{ id: string; removed: true }> {
  const { id } = await scheduleOwnedBy(ctx, scheduleId);
  await ctx.db.batch([ctx.db.delete(schedules).where(eq(schedules.id, id))]);
  return { id, removed: true };
}
