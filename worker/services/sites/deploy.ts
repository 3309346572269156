import { and, eq, inArray, sql } from "drizzle-orm";
import type { SiteActionAccepted } from "../../../protocol/api/sites.ts";
import type { DeploymentTrigger } from "../../../protocol/states.ts";
import type { Ctx } from "../../context.ts";
import { sites } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { queueDeployment } from "../deployments/queue.ts";
import { refuseUnpaid } from "./refuse-unpaid.ts";
import type { SiteRow } from "./owned.ts";

/** Move the site to DEPLOYING and queue a deployment, or change nothing at all. A waiting one is joined, not doubled. */
export async function deploySite(
  ctx: Ctx,
  site: SiteRow,
  trigger: DeploymentTrigger,
): Promise<SiteActionAccepted & { deploymentId: string }> {
  await refuseUnpaid(ctx, site);
  const { from, to, wanted } = siteEvents.deployRequested;
  const [[moved], , , [waiting]] = await ctx.db.batch([
    ctx.db
      .update(sites)
      .set({ status: to, wanted, updatedAt: ctx.now() })
      .where(and(eq(sites.id, site.id), inArray(sites.status, [...from])))
      .returning(),
    ...queueDeployment(ctx, sql`${site.id}`, trigger),
  ]);
  if (!moved || !waiting) throw conflict(`A ${site.status} site cannot be deployed.`);
  ctx.hosts.wake(moved.hostId);
  return { id: moved.id, status: moved.status, deploymentId: waiting.id };
}
