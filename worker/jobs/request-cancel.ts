import { and, eq, sql } from "drizzle-orm";
import type { Id } from "../../protocol/ids.ts";
import type { Ctx } from "../ctx.ts";
import { jobs } from "../db/schema.ts";

/** Requests cancellation of a job that a host runs. It returns the lease whose agent must be notified, by `reviseCancelled`. */
export const requestCancel = (ctx: Ctx, id: Id<"job"> | null) =>
  ctx.db
    .update(jobs)
    .set({ cancelRequested: true })
    .where(and(sql`${jobs.id} = ${id}`, eq(jobs.status, "LEASED")))
    .returning();

export function reviseCancelled(
  ctx: Ctx,
  leases: { id: Id<"job">; attempt: number; hostId: Id<"host"> | null }[],
): void {
  for (const { id, attempt, hostId } of leases)
    if (hostId) ctx.hosts.revise(hostId, { jobId: id, attempt }, "cancel");
}
