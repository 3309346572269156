import { and, eq, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import { jobs } from "../../db/schema.ts";

/**
 * Statements for one batch: waiting deployments of the site end as CANCELLED, the running one is asked to.
 * The last statement answers the leases whose agent must hear of it.
 */
export const cancelDeployments = (ctx: Ctx, siteId: Id<"site">, guard: SQL) => {
  const now = ctx.now().getTime();
  return [
    ctx.statement(
      sql`UPDATE deployments SET status = 'CANCELLED', finished_at = ${now} WHERE site_id = ${siteId} AND status = 'QUEUED' AND ${guard}`,
    ),
    ctx.statement(
      sql`UPDATE jobs SET status = 'CANCELLED', finished_at = ${now} WHERE site_id = ${siteId} AND kind = 'site.deploy' AND status = 'QUEUED' AND ${guard}`,
    ),
    ctx.statement(
      sql`UPDATE jobs SET cancel_requested = 1 WHERE site_id = ${siteId} AND kind = 'site.deploy' AND status = 'LEASED' AND ${guard}`,
    ),
    ctx.db
      .select({ jobId: jobs.id, attempt: jobs.attempt, hostId: jobs.hostId })
      .from(jobs)
      .where(and(eq(jobs.siteId, siteId), eq(jobs.status, "LEASED"), eq(jobs.cancelRequested, true))),
  ] as const;
};

export function reviseCancelled(
  ctx: Ctx,
  leases: { jobId: Id<"job">; attempt: number; hostId: Id<"host"> | null }[],
): void {
  for (const { jobId, attempt, hostId } of leases)
    if (hostId) ctx.hosts.revise(hostId, { jobId, attempt }, "cancel");
}
