import { and, eq, inArray, sql, type SQL } from "drizzle-orm";
import { jobResults, jobTraits, type JobKind, type JobTraits } from "../../protocol/agent/jobs.ts";
import type { Id } from "../../protocol/ids.ts";
import type { Ctx } from "../ctx.ts";
import { openJob } from "../db/job-conditions.ts";
import { batch } from "../db/batch.ts";
import type { JobRow } from "../db/rows.ts";
import { deployments, jobs } from "../db/schema.ts";
import type { Lease } from "../domain/lease.ts";
import { kinds } from "./kinds/index.ts";
import { ending, type Ended, type Ending, type Failure, type Kind } from "./kinds/kind.ts";
import { setStatusAfterDeployment } from "./kinds/site-status.ts";

/** Whether the lease was current. A stale report changes nothing and is acknowledged all the same. */
export type Recorded = { recorded: boolean; deploymentId: Id<"deployment"> | null };

const stale: Recorded = { recorded: false, deploymentId: null };

/** The host reports success. @throws ZodError when the result is not of the job's kind */
export async function finishJob(
  ctx: Ctx,
  hostId: Id<"host">,
  lease: Lease,
  result: unknown,
): Promise<Recorded> {
  const job = await heldBy(ctx, hostId, lease);
  if (!job) return stale;
  const parsed = jobResults[job.kind].parse(result);
  return endJob(ctx, job, { status: "DONE", error: null }, (kind, end) => kind.succeeded(ctx, end, parsed));
}

/** The host reports failure: an older version goes on serving, and the site says so. */
export async function failJob(
  ctx: Ctx,
  hostId: Id<"host">,
  lease: Lease,
  failure: Failure,
): Promise<Recorded> {
  const job = await heldBy(ctx, hostId, lease);
  return job ? endAsFailed(ctx, job, failure) : stale;
}

/** Ends a leased or waiting job with an honest reason; also for jobs that no host reports. */
export function endAsFailed(ctx: Ctx, job: JobRow, failure: Failure): Promise<Recorded> {
  const { error, cancelled } = failure;
  return endJob(ctx, job, { status: cancelled ? "CANCELLED" : "FAILED", error }, (kind, end) =>
    namesItsSubject(job) ? kind.failed(ctx, end, failure) : failedAlone(ctx, end, error),
  );
}

async function heldBy(ctx: Ctx, hostId: Id<"host">, { jobId, attempt }: Lease): Promise<JobRow | undefined> {
  const [job] = await ctx.db
    .select()
    .from(jobs)
    .where(
      and(eq(jobs.id, jobId), eq(jobs.attempt, attempt), eq(jobs.hostId, hostId), eq(jobs.status, "LEASED")),
    );
  return job;
}

/** The one way in which a job ends on a report: the job and what follows from its end, in one batch. */
async function endJob(
  ctx: Ctx,
  job: JobRow,
  outcome: { status: "DONE" | "FAILED" | "CANCELLED"; error: string | null },
  followsFrom: (kind: Kind<JobKind>, end: Ended) => Ending | Promise<Ending>,
): Promise<Recorded> {
  const mark = ctx.newMark();
  const ended: SQL = sql`EXISTS (SELECT 1 FROM jobs WHERE mark = ${mark} AND status <> 'LEASED')`;
  const { statements, after } = await followsFrom(kinds[job.kind], { job, ended });
  const { endedJob, follows: answers } = await batch(ctx, {
    endedJob: ctx.db
      .update(jobs)
      .set({ ...outcome, mark, finishedAt: ctx.now() })
      .where(and(eq(jobs.id, job.id), eq(jobs.attempt, job.attempt), eq(jobs.status, job.status)))
      .returning({ id: jobs.id }),
    follows: statements,
  });
  if (endedJob.length === 0) return stale;
  await after?.(answers as never);
  return { recorded: true, deploymentId: job.kind === "site.deploy" ? job.deploymentId : null };
}

/** Of a row that an older or newer version of this Worker wrote, this may be missing. */
function namesItsSubject(job: JobRow): boolean {
  const about = (jobTraits[job.kind] as JobTraits | undefined)?.about;
  const ids = {
    site: job.siteId,
    deployment: job.siteId && job.deploymentId,
    command: job.commandId,
    database: job.databaseId,
    backup: job.backupId,
  };
  return about !== undefined && ids[about] !== null;
}

/** Nobody knows what the job was for: the deployment that no job is about any more ends with it. */
function failedAlone(ctx: Ctx, { job, ended }: Ended, error: string): Ending {
  return ending(
    {
      orphans: ctx.db
        .update(deployments)
        .set({ status: "FAILED", error, finishedAt: ctx.now() })
        .where(
          and(
            sql`${deployments.siteId} = ${job.siteId}`,
            inArray(deployments.status, ["QUEUED", "BUILDING", "STARTING"]),
            sql`NOT EXISTS (SELECT 1 FROM jobs j WHERE j.deployment_id = ${deployments.id} AND j.${openJob})`,
            ended,
          ),
        )
        .returning({ id: deployments.id }),
      status: setStatusAfterDeployment(ctx, job.siteId, ended),
    },
    ({ orphans }) => {
      for (const { id } of orphans) ctx.logs.finish(id, `Deployment failed: ${error}`);
    },
  );
}
