import { inArray, lt, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { commands } from "../../db/schema.ts";
import { keepCommandsMs } from "../../domain/job-rules.ts";

/** Deletes commands after thirty days, together with their logs. */
export async function purgeOldCommands(ctx: Ctx): Promise<void> {
  const before = new Date(ctx.now().getTime() - keepCommandsMs);
  const old = ctx.db
    .select({ id: commands.id })
    .from(commands)
    .where(lt(commands.finishedAt, before))
    .limit(100);
  const gone = await ctx.db
    .delete(commands)
    .where(inArray(commands.id, sql`(${old})`))
    .returning({ id: commands.id });
  for (const { id } of gone) ctx.logs.remove(id);
}
