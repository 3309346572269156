import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { queueStart } from "../../jobs/queue-start.ts";
import { queueStop } from "../../jobs/queue-stop.ts";
import { type Termed } from "../../db/resource.ts";
import { selectDue, type TermRow } from "./resource.ts";
import { idleLane } from "../../db/job-conditions.ts";

const retryMs = 10 * 60_000;

/** Repeats failed stops of suspended resources, and failed starts of resources that were paid again. */
export async function reconcileSuspended(ctx: Ctx): Promise<void> {
  const now = ctx.now().getTime();
  const idle = sql`r.host_id IS NOT NULL AND ${idleLane(sql`r.id`)}`;
  const stopped = (kind: string): SQL => sql`EXISTS (SELECT 1 FROM jobs WHERE lane = r.id AND kind = ${kind}
    AND (status = 'DONE' AND created_at >= r.suspended_at OR status = 'FAILED' AND finished_at > ${now - retryMs}))`;
  const runs: Record<Termed, SQL> = {
    sites: sql`r.status = 'SUSPENDED' AND ${idle} AND (r.serving OR NOT ${stopped("site.stop")})`,
    databases: sql`r.status = 'SUSPENDED' AND ${idle} AND NOT ${stopped("database.stop")}`,
  };
  for (const kind of ["sites", "databases"] as const)
    for (const row of await ctx.db.all<TermRow>(selectDue(kind, runs[kind]))) {
      await ctx.db.batch([queueStop(ctx, kind, row.id, runs[kind])]);
      ctx.hosts.wake(row.hostId);
    }
  const waiting = sql`r.status = 'STOPPED' AND r.wanted = 'RUNNING' AND r.version IS NOT NULL AND ${idle}`;
  for (const row of await ctx.db.all<TermRow>(selectDue("databases", waiting))) {
    await queueStart(ctx, "databases", row.id, waiting);
    ctx.hosts.wake(row.hostId);
  }
}
