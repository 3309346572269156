import { and, eq, lt } from "drizzle-orm";
import type { Id } from "../../protocol/ids.ts";
import type { Ctx } from "../ctx.ts";
import type { JobRow } from "../db/rows.ts";
import { jobs } from "../db/schema.ts";
import { attemptsReason, interruptedReason, maxAttempts } from "../domain/job-rules.ts";
import type { Offer } from "../domain/lease.ts";
import { endAsFailed } from "./finish.ts";
import { leaseAgain } from "./lease.ts";

/** Leases a job that its agent does not know as a new attempt; null: it has ended. */
export async function offerAnew(ctx: Ctx, hostId: Id<"host">, job: JobRow): Promise<Offer | null> {
  const failed = (error: string, cancelled = false) =>
    endAsFailed(ctx, job, { error, cancelled, durations: null, abandoned: true });
  if (job.cancelRequested) await failed("Cancelled.", true);
  else if (job.kind === "site.command") await failed(interruptedReason);
  else if (job.attempt >= maxAttempts) await failed(attemptsReason);
  else return leaseAgain(ctx, hostId, job.id);
  return null;
}

/** A job leased in its own request is sent within moments, or never. */
const sentWithinMs = 30_000;

export const leasedAtOnce = (now: Date) =>
  and(
    eq(jobs.status, "LEASED"),
    eq(jobs.kind, "site.deploy"),
    lt(jobs.leasedAt, new Date(now.getTime() - sentWithinMs)),
  );

/** Deployments whose lease may never have been sent to this host. */
export const untoldJobs = (ctx: Ctx, hostId: Id<"host">): Promise<JobRow[]> =>
  ctx.db
    .select()
    .from(jobs)
    .where(and(eq(jobs.hostId, hostId), leasedAtOnce(ctx.now())));
