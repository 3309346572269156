import { and, eq, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { deployments, jobs } from "../../db/schema.ts";

/**
 * Statements for one batch: cancels the site's waiting deployments and requests cancellation of the running one.
 * `waited` returns the cancelled ones, `cancelling` the leases whose agents must be notified.
 */
export const cancelDeployments = (ctx: Ctx, siteId: Id<"site">, guard: SQL) => {
  const now = ctx.now();
  return {
    waited: ctx.db
      .update(deployments)
      .set({ status: "CANCELLED", finishedAt: now })
      .where(and(eq(deployments.siteId, siteId), eq(deployments.status, "QUEUED"), guard))
      .returning({ id: deployments.id }),
    cancelledJobs: ctx.statement(
      sql`UPDATE jobs SET status = 'CANCELLED', finished_at = ${now.getTime()} WHERE site_id = ${siteId} AND kind = 'site.deploy' AND status = 'QUEUED' AND ${guard}`,
    ),
    requestedCancels: ctx.statement(
      sql`UPDATE jobs SET cancel_requested = 1 WHERE site_id = ${siteId} AND kind = 'site.deploy' AND status = 'LEASED' AND ${guard}`,
    ),
    cancelling: ctx.db
      .select({ id: jobs.id, attempt: jobs.attempt, hostId: jobs.hostId })
      .from(jobs)
      .where(and(eq(jobs.siteId, siteId), eq(jobs.status, "LEASED"), eq(jobs.cancelRequested, true))),
  };
};

/** Ends the log streams of the deployments that were cancelled while waiting. */
export function tellCancelled(ctx: Ctx, waited: { id: Id<"deployment"> }[]): void {
  for (const { id } of waited) ctx.logs.finish(id, "Deployment cancelled.");
}
