import { and, desc, eq, inArray, sql } from "drizzle-orm";
import type { Page } from "../../../protocol/api/common.ts";
import type { Job, JobsQuery } from "../../../protocol/api/console.ts";
import type { Ctx } from "../../ctx.ts";
import { jobs } from "../../db/schema.ts";
import { before, only, page } from "../page.ts";
import { isStuck, jobView, selectJobs } from "./view.ts";

/** Work for hosts, for operators, newest first. */
export async function listJobs(ctx: Ctx, query: JobsQuery): Promise<Page<Job>> {
  const rows = await selectJobs(ctx)
    .where(
      and(
        inState(ctx, query.state),
        only(jobs.hostId, query.hostId),
        only(jobs.accountId, query.accountId),
        before(jobs.id, query),
      ),
    )
    .orderBy(desc(jobs.id))
    .limit(query.limit + 1);
  return page(rows, query, jobView);
}

function inState(ctx: Ctx, state: JobsQuery["state"]) {
  switch (state) {
    case "waiting":
      return eq(jobs.status, "QUEUED");
    case "running":
      return eq(jobs.status, "LEASED");
    case "stuck":
      return isStuck(ctx);
    case "ended":
      // `+`: almost all jobs have ended, so the newest of them are not searched by status.
      return sql`+${jobs.status} IN ('DONE', 'FAILED', 'CANCELLED')`;
    case undefined:
      return inArray(jobs.status, ["QUEUED", "LEASED"]);
  }
}
