import { eq } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { Job } from "../../../protocol/api/console.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { jobs } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { endAsFailed } from "../../jobs/finish.ts";
import { requestCancel, reviseCancelled } from "../../jobs/request-cancel.ts";
import { idIn } from "../owned.ts";
import { isCancellable, jobView, selectJobs } from "./view.ts";

/** A queued job ends at once, a running one when its host has stopped it. */
export async function cancelJob(ctx: Ctx, { id: jobId }: ById): Promise<Job> {
  const id = idIn("job", jobId);
  const [job] = await selectJobs(ctx).where(eq(jobs.id, id));
  if (!job) throw new AppError("not_found");
  if (job.finishedAt !== null) throw conflict("This job has already ended.");
  if (!isCancellable(job))
    throw conflict(
      job.status === "LEASED"
        ? `A host has started this ${job.kind}, and it cannot be stopped half-way. It ends by ${job.deadlineAt.toISOString()}.`
        : `A ${job.kind} is not cancelled, because its resource would be left half done.`,
    );
  const now = ctx.now();
  if (job.status === "QUEUED") {
    const failure = { error: "Cancelled by an operator.", cancelled: true, durations: null };
    const { recorded } = await endAsFailed({ ...ctx, now: () => now }, job, failure);
    if (!recorded) throw conflict("A host has just taken this job. Check it again.");
    return jobView({
      ...job,
      status: "CANCELLED",
      error: failure.error,
      finishedAt: now,
      waitsFor: null,
      stuck: false,
      retryable: false,
    });
  }
  const {
    leased: [leased],
  } = await batch(ctx, {
    leased: requestCancel(ctx, id),
  });
  if (!leased) throw conflict("This job has already ended.");
  reviseCancelled(ctx, [leased]);
  return jobView({ ...job, ...leased });
}
