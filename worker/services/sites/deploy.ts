import { and, eq, inArray, sql, type SQL } from "drizzle-orm";
import type { SiteActionAccepted } from "../../../protocol/api/sites.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { DeploymentTrigger } from "../../../protocol/states.ts";
import type { Ctx } from "../../context.ts";
import { sites } from "../../db/schema.ts";
import { conflict, type AppError } from "../../domain/app-error.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { queueDeployment } from "../deployments/queue.ts";
import { roomAgain } from "../hosts/placement.ts";
import { refuseUnpaid } from "./refuse-unpaid.ts";
import type { SiteRow } from "./owned.ts";

type How = {
  rebuild?: boolean | undefined;
  rollbackOf?: Id<"deployment">;
  /** Must hold when the site moves. */
  only?: { condition: SQL; refusal: AppError };
};

/** Move the site to DEPLOYING and queue a deployment, or change nothing at all. A waiting one is joined, not doubled. */
export async function deploySite(
  ctx: Ctx,
  site: SiteRow,
  trigger: DeploymentTrigger,
  { rebuild, rollbackOf, only }: How = {},
): Promise<SiteActionAccepted & { deploymentId: string }> {
  await refuseUnpaid(ctx, site);
  const { from, to, wanted } = siteEvents.deployRequested;
  const mark = ctx.newMark();
  // The image of a rollback is on its host only.
  const room = roomAgain(ctx.now(), { stays: rollbackOf !== undefined });
  const [[moved], replaced, , , , , [waiting]] = await ctx.db.batch([
    ctx.db
      .update(sites)
      .set({ status: to, wanted, mark, updatedAt: ctx.now(), ...room.set })
      .where(and(eq(sites.id, site.id), inArray(sites.status, [...from]), only?.condition))
      .returning(),
    ...queueDeployment(ctx, sql`(SELECT id FROM sites WHERE id = ${site.id} AND mark = ${mark})`, {
      trigger,
      rebuild,
      rollbackOf,
    }),
  ]);
  if (!moved || !waiting)
    throw (from as readonly string[]).includes(site.status) && only
      ? only.refusal
      : conflict(`A ${site.status} site cannot be deployed.`);
  for (const { id } of replaced) ctx.logs.finish(id, "Cancelled: a later request took its place.");
  ctx.hosts.wake(moved.hostId);
  return { id: moved.id, status: moved.status, deploymentId: waiting.id };
}
