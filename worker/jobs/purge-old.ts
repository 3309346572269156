import { and, inArray, lt, notInArray, sql } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import { jobs } from "../db/schema.ts";
import { keptDays } from "../domain/job-rules.ts";
import { addDays } from "../domain/pricing.ts";

/**
 * Deletes old jobs. Deployments' jobs and evictions stay with their site, because they tell which host has an image.
 * Restores stay with their database, because they name the replaced volumes.
 */
export async function purgeOldJobs(ctx: Ctx): Promise<void> {
  await ctx.db
    .delete(jobs)
    .where(
      and(
        inArray(jobs.status, ["DONE", "FAILED", "CANCELLED"]),
        lt(jobs.deadlineAt, addDays(ctx.now(), -keptDays)),
        notInArray(jobs.kind, ["site.deploy", "site.evict"]),
        sql`NOT (kind = 'database.restore' AND status = 'DONE' AND EXISTS (SELECT 1 FROM databases d WHERE d.id = jobs.database_id))`,
      ),
    );
}
