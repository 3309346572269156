import { and, eq, inArray, isNotNull, isNull, lt, sql } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import { databases, jobs, sites } from "../../db/schema.ts";
import { expiredReason } from "../../domain/job-rules.ts";
import { queueDatabaseJob } from "../databases/queue.ts";
import { queueDeployment, queueSiteJob } from "../deployments/queue.ts";
import { endAsFailed } from "./finish.ts";
import { limitsOf } from "./lease.ts";
import { noRoomFor } from "./no-room-for.ts";
import { idleLane } from "./idle.ts";

/** Ends what outlived its deadline, and gives every site and database that waits for work the work it waits for. */
export async function reapJobs(ctx: Ctx): Promise<void> {
  const now = ctx.now();
  const open = ["QUEUED", "LEASED"] as const;
  const [expired, idle, idleDatabases, unplaced, waiting] = await ctx.db.batch([
    ctx.db
      .select()
      .from(jobs)
      .where(and(inArray(jobs.status, [...open]), lt(jobs.deadlineAt, now)))
      .limit(100),
    ctx.db
      .select()
      .from(sites)
      .where(and(inArray(sites.status, ["DEPLOYING", "DELETING"]), idleLane(sites.id)))
      .limit(100),
    ctx.db
      .select()
      .from(databases)
      .where(and(inArray(databases.status, ["PROVISIONING", "DELETING"]), idleLane(databases.id)))
      .limit(100),
    // Whoever has room may take them by now.
    ctx.db
      .select({ id: jobs.id })
      .from(jobs)
      .where(and(isNull(jobs.hostId), eq(jobs.status, "QUEUED")))
      .limit(1),
    // Whose hint may have been lost.
    ctx.db
      .selectDistinct({ hostId: jobs.hostId })
      .from(jobs)
      .where(and(isNotNull(jobs.hostId), eq(jobs.status, "QUEUED"))),
  ]);
  for (const job of expired) {
    const failure = {
      error:
        job.hostId === null
          ? await noRoomFor(ctx, job)
          : expiredReason(job.kind, job.status === "LEASED", limitsOf(ctx)),
      cancelled: false,
      durations: null,
    };
    await endAsFailed(ctx, job, failure);
    if (job.status === "LEASED" && job.hostId)
      ctx.hosts.revise(job.hostId, { jobId: job.id, attempt: job.attempt }, "drop");
  }
  for (const site of idle) {
    if (site.status === "DELETING")
      await queueSiteJob(ctx, "site.delete", site.id, sql`s.status = 'DELETING'`);
    else await ctx.db.batch([...queueDeployment(ctx, sql`${site.id}`, { trigger: "payment" })]);
    ctx.hosts.wake(site.hostId);
  }
  for (const { id, status, hostId } of idleDatabases) {
    const kind = status === "DELETING" ? "database.delete" : "database.provision";
    await queueDatabaseJob(ctx, kind, id, sql`d.status = ${status}`);
    ctx.hosts.wake(hostId);
  }
  if (unplaced.length > 0) ctx.hosts.wake(null);
  for (const { hostId } of waiting) if (hostId) ctx.hosts.wake(hostId);
}
