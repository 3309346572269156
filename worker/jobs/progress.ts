import { and, eq, sql } from "drizzle-orm";
import type { Id } from "../../protocol/ids.ts";
import type { DeploymentStep } from "../../protocol/deployment-steps.ts";
import type { Ctx } from "../ctx.ts";
import { deployments } from "../db/schema.ts";

/** Records a phase of a currently leased deployment; from `start` on it shows as STARTING. */
export async function recordPhase(
  ctx: Ctx,
  hostId: Id<"host">,
  report: {
    jobId: Id<"job">;
    attempt: number;
    phase: DeploymentStep;
    commit: string | null;
    commitMessage: string | null;
  },
): Promise<void> {
  // The lease set BUILDING and `start` set STARTING, so these phases change nothing.
  if (report.phase === "clone" || report.phase === "swap") return;
  await ctx.db
    .update(deployments)
    .set({
      status: report.phase === "start" ? "STARTING" : "BUILDING",
      ...(report.commit !== null && { commit: report.commit, commitMessage: report.commitMessage }),
    })
    .where(
      and(
        sql`${deployments.status} IN ('BUILDING', 'STARTING')`,
        eq(
          deployments.id,
          sql`(SELECT deployment_id FROM jobs WHERE id = ${report.jobId} AND attempt = ${report.attempt} AND host_id = ${hostId} AND status = 'LEASED')`,
        ),
      ),
    );
}
