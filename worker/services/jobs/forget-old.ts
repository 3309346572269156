import { and, inArray, lt, ne } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import { jobs } from "../../db/schema.ts";
import { keptDays } from "../../domain/job-rules.ts";
import { addDays } from "../../domain/pricing.ts";

/** What ended long ago. Deployments' jobs stay with them: they say on which host an image was made. */
export async function forgetOldJobs(ctx: Ctx): Promise<void> {
  await ctx.db
    .delete(jobs)
    .where(
      and(
        inArray(jobs.status, ["DONE", "FAILED", "CANCELLED"]),
        lt(jobs.deadlineAt, addDays(ctx.now(), -keptDays)),
        ne(jobs.kind, "site.deploy"),
      ),
    );
}
