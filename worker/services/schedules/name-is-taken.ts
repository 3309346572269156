import { and, eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { schedules } from "../../db/schema.ts";

export async function nameIsTaken(ctx: Ctx, siteId: Id<"site">, name: string): Promise<boolean> {
  const found = await ctx.db
    .select({ id: schedules.id })
    .from(schedules)
    .where(and(eq(schedules.siteId, siteId), eq(schedules.name, name)));
  return found.length > 0;
}
