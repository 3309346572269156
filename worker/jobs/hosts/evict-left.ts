import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { evictQueueMs } from "../../domain/job-rules.ts";
import { ofSite, queueJob } from "../insert.ts";
import { idleLane } from "../../db/job-conditions.ts";

/** Whether a command of site `s` still runs on the host it leaves. */
const commandsRun =
  sql.raw(`EXISTS (SELECT 1 FROM jobs c WHERE c.site_id = s.id AND c.host_id = s.leaving_host_id
  AND c.kind = 'site.command' AND c.status = 'LEASED')`);

/**
 * After an eviction was queued: a running command ends by its own limit and is cleaned up afterwards, without a time
 * (`leave_at`). Everything else has been removed.
 */
export const afterEviction = (hostId: Id<"host">): SQL => sql`
  leaving_host_id = (SELECT CASE WHEN ${commandsRun} THEN ${hostId} END FROM sites s WHERE s.id = sites.id), leave_at = NULL`;

/** Evicts sites from hosts they left, once no traffic is sent there; repeated until it succeeds. */
export async function evictLeft(ctx: Ctx): Promise<void> {
  const now = ctx.now().getTime();
  const due = await ctx.db.all<{ siteId: Id<"site">; hostId: Id<"host"> }>(sql`
    SELECT s.id AS siteId, h.id AS hostId FROM sites s JOIN hosts h ON h.id = s.leaving_host_id
    WHERE s.leaving_host_id IS NOT NULL AND h.connected_at IS NOT NULL AND h.offline_since IS NULL
      AND CASE WHEN s.leave_at IS NULL THEN NOT ${commandsRun}
        ELSE s.leave_at <= ${now} OR s.wanted = 'STOPPED' OR s.status = 'DELETING' END
      AND ${idleLane(sql`s.id`)} LIMIT 100`);
  for (const { siteId, hostId } of due) {
    await queueJob(
      ctx,
      "site.evict",
      {
        ...ofSite,
        hostId: sql`${hostId}`,
        from: sql`sites s WHERE s.id = ${siteId} AND s.leaving_host_id = ${hostId} AND ${idleLane(sql`s.id`)}`,
      },
      evictQueueMs,
    );
    ctx.hosts.wake(hostId);
  }
}
