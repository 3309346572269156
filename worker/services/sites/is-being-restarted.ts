import { and, eq, inArray } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { jobs } from "../../db/schema.ts";

/** The site stays RUNNING during a restart, so only its job shows it. */
export async function isBeingRestarted(ctx: Ctx, siteId: string): Promise<boolean> {
  const open = await ctx.db
    .select({ id: jobs.id })
    .from(jobs)
    .where(
      and(eq(jobs.lane, siteId), inArray(jobs.status, ["QUEUED", "LEASED"]), eq(jobs.kind, "site.restart")),
    )
    .limit(1);
  return open.length > 0;
}
