import { and, eq, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { deployments, sites } from "../../db/schema.ts";
import { linksFollowed } from "../databases/linked-env.ts";
import { reconcileDatabases } from "../databases/reconcile.ts";
import { limitsFollowed } from "../queue-restart.ts";
import { deploymentIdOf, ending, siteIdOf, type Ended, type Ending, type Material } from "./kind.ts";
import { runOf } from "./run-spec.ts";
import { moveSite, setStatusAfterDeployment } from "./site-status.ts";

/** Arguments of site.start and site.restart: the version in service, with its newest environment. */
export const currentVersion = (ctx: Ctx, material: Material) => ({
  run: runOf(ctx, material),
  deploymentId: deploymentIdOf(material.job),
});

/** Records that the version in service runs with the job's environment. */
export function siteStarted(ctx: Ctx, { job, ended }: Ended): Ending {
  const siteId = siteIdOf(job);
  return ending(
    {
      followed: linksFollowed(ctx, siteId, ended),
      deployment: ctx.db
        .update(deployments)
        .set({ envVersion: sql`coalesce(${job.envVersion}, env_version)`, error: null })
        .where(and(eq(deployments.id, deploymentIdOf(job)), ended)),
      started: moveSite(ctx, siteId, "started", ended, true),
      // A suspended site that has been paid for serves again.
      serving: ctx.db
        .update(sites)
        .set({ serving: true })
        .where(and(eq(sites.id, siteId), eq(sites.status, "DEPLOYING"), ended)),
      status: setStatusAfterDeployment(ctx, siteId, ended),
      limits: limitsFollowed(ctx, "sites", siteId, job.leasedAt, ended),
    },
    async ({ followed }) => {
      if (followed.length > 0) await reconcileDatabases(ctx);
    },
  );
}
