import { and, eq, inArray, sql, type SQL } from "drizzle-orm";
import { jobResults, jobTraits, type JobKind, type JobTraits } from "../../protocol/agent/jobs.ts";
import type { Id } from "../../protocol/ids.ts";
import type { Ctx } from "../ctx.ts";
import { openJob } from "../db/job-conditions.ts";
import { batch } from "../db/batch.ts";
import type { JobRow } from "../db/rows.ts";
import { deployments, jobs } from "../db/schema.ts";
import { unfitResultReason } from "../domain/job-rules.ts";
import type { Lease } from "../domain/lease.ts";
import { logError } from "../log-error.ts";
import { kinds } from "./kinds/index.ts";
import { ending, type Ended, type Ending, type Failure, type Kind } from "./kinds/kind.ts";
import { setStatusAfterDeployment } from "./kinds/site-status.ts";

/** Whether the lease was current. A stale report is acknowledged but changes nothing. */
type Recorded = { recorded: boolean; deploymentId: Id<"deployment"> | null };

const stale: Recorded = { recorded: false, deploymentId: null };

/** Records the success reported by a host, or a failure if its result is not of the job's kind. */
export async function finishJob(
  ctx: Ctx,
  hostId: Id<"host">,
  lease: Lease,
  result: unknown,
): Promise<Recorded> {
  const job = await heldBy(ctx, hostId, lease);
  if (!job) return stale;
  const { data, error } = jobResults[job.kind].safeParse(result);
  if (data)
    return endJob(ctx, job, { status: "DONE", error: null }, (kind, end) => kind.succeeded(ctx, end, data));
  logError({ host: hostId, job: job.id, kind: job.kind }, error);
  const failure = { error: unfitResultReason(job.kind), cancelled: false, durations: null };
  return endAsFailed(ctx, job, { ...failure, abandoned: true });
}

/** Records the failure reported by a host: an older version keeps serving, and the site shows the error. */
export async function failJob(
  ctx: Ctx,
  hostId: Id<"host">,
  lease: Lease,
  failure: Failure,
): Promise<Recorded> {
  const job = await heldBy(ctx, hostId, lease);
  return job ? endAsFailed(ctx, job, failure) : stale;
}

/** Ends a leased or queued job as failed; also for jobs that no host reports on. */
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

/** Ends a job and applies what follows from its end, in one batch. Every report takes this path. */
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

/** Rows written by an older or newer version of this Worker may lack the id. */
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

/** Ends a job of unknown kind or subject, together with deployments that no open job is about. */
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
