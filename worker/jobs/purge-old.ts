import { and, inArray, lt, sql } from "drizzle-orm";
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
        sql`NOT (kind IN ('site.deploy', 'site.evict') AND EXISTS (SELECT 1 FROM sites s WHERE s.id = jobs.site_id))`,
        sql`NOT (kind = 'database.restore' AND status = 'DONE' AND EXISTS (SELECT 1 FROM databases d WHERE d.id = jobs.database_id))`,
      ),
    );
}

/** Of an hour; schedules and backups are due at its beginning. */
const purgedAtMinute = 50;

/** Run by cron: it reads through all jobs that are kept with their site, of which a large installation has 100,000. */
export async function purgeEachHour(ctx: Ctx): Promise<void> {
  if (ctx.now().getUTCMinutes() === purgedAtMinute) await purgeOldJobs(ctx);
}
