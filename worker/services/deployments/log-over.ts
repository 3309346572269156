import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import { commands, deployments } from "../../db/schema.ts";

/** What ended so long ago has its last line, or never will: its log is kept for a time, and news of the end may be lost. */
const lastLineMs = 60_000;

/** Whether nothing more comes of the log of this deployment or command, whatever the log knows. */
export async function isLogOver(ctx: Ctx, id: Id<"deployment" | "command">): Promise<boolean> {
  const since = ctx.now().getTime() - lastLineMs;
  const goesOn = sql`id = ${id} AND coalesce(finished_at, ${since}) >= ${since}`;
  const [row] = await ctx.db.all(sql`
    SELECT 1 FROM ${deployments} WHERE ${goesOn} UNION ALL SELECT 1 FROM ${commands} WHERE ${goesOn}`);
  return row === undefined;
}

/** The same of one that was read. */
export const isOver = (ctx: Ctx, finishedAt: Date | null): boolean =>
  finishedAt !== null && finishedAt.getTime() < ctx.now().getTime() - lastLineMs;
