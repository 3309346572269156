import { sql } from "drizzle-orm";
import type { Id } from "../../protocol/ids.ts";
import type { Ctx } from "../ctx.ts";
import { queueSiteJob } from "./sites/queue.ts";
import { idleLane } from "../db/job-conditions.ts";

/**
 * A host lost the record of which containers serve these sites. Sites that should run are swapped to new containers,
 * others are stopped again; open jobs have the same effect.
 */
export async function tellAnew(ctx: Ctx, hostId: Id<"host">, siteIds: readonly Id<"site">[]): Promise<void> {
  const idle = sql`s.host_id = ${hostId} AND ${idleLane(sql`s.id`)}`;
  for (const siteId of siteIds)
    await ctx.db.batch([
      queueSiteJob(
        ctx,
        "site.restart",
        siteId,
        sql`${idle} AND s.status = 'RUNNING' AND s.wanted = 'RUNNING'`,
      ),
      queueSiteJob(ctx, "site.stop", siteId, sql`${idle} AND s.status IN ('STOPPED', 'SUSPENDED')`),
    ]);
}
