import { and, eq, getTableColumns, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { jobs } from "../../db/schema.ts";
import { silentMoveMs } from "../../domain/job-rules.ts";
import { eachAlone } from "../../each-alone.ts";
import { endAsFailed } from "../finish.ts";

/**
 * Cancels moves whose new host went silent, so that the owner can deploy again. The partial copy there is removed
 * when that host returns; until then the site does not move, so that it never runs on a third host.
 */
export async function giveUpSilentMoves(ctx: Ctx): Promise<void> {
  const silent = ctx.now().getTime() - silentMoveMs;
  const given = await ctx.db
    .select(getTableColumns(jobs))
    .from(jobs)
    .where(
      and(
        eq(jobs.status, "LEASED"),
        eq(jobs.kind, "site.deploy"),
        sql`host_id IN (SELECT id FROM hosts WHERE offline_since < ${silent})`,
        sql`host_id = (SELECT move_host_id FROM sites WHERE id = jobs.site_id)`,
      ),
    )
    .limit(100);
  await eachAlone("give up moves", given, (job) =>
    endAsFailed(ctx, job, {
      error:
        "The host that the site was moving to stopped responding. The site stays where it is and moves later.",
      cancelled: job.cancelRequested,
      durations: null,
    }),
  );
}
