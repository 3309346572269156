import { and, eq, sql } from "drizzle-orm";
import type { SiteActionAccepted } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../context.ts";
import { deployments } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { imageKept, keptPerSite } from "../deployments/kept.ts";
import { selectDeployments, type DeploymentRecord } from "../deployments/view.ts";
import { requireOwned } from "../owned.ts";
import { deploySite } from "./deploy.ts";
import { siteById, siteIdOf } from "./owned.ts";
import { refuseUnpaid } from "./refuse-unpaid.ts";

/** A new deployment of an earlier one's image, environment and run settings; by default of the one before the current. */
export async function rollbackSite(
  ctx: Ctx,
  siteId: string,
  deploymentId?: string,
): Promise<SiteActionAccepted> {
  const id = siteIdOf(siteId);
  const named =
    deploymentId === undefined
      ? sql`${deployments.number} = (SELECT max(number) FROM deployments WHERE site_id = ${id} AND status = 'SUPERSEDED')`
      : sql`${deployments.id} = ${deploymentId}`;
  const [[found], [target]] = await ctx.db.batch([
    siteById(ctx, id),
    selectDeployments(ctx.db).where(and(eq(deployments.siteId, id), named)),
  ]);
  const site = requireOwned(ctx, found);
  await refuseUnpaid(ctx, site);
  if (!target && deploymentId !== undefined) throw new AppError("not_found");
  if (!target)
    throw conflict("There is no earlier deployment of this site to go back to: deploy it instead.");
  if (target.status !== "LIVE" && target.status !== "SUPERSEDED")
    throw conflict(`Deployment ${target.number} was never live: choose one that was.`);
  if (!target.imageKept) throw gone(target);
  const kept = sql`EXISTS (SELECT 1 FROM deployments WHERE id = ${target.id} AND ${imageKept})`;
  return deploySite(ctx, site, "rollback", {
    rollbackOf: target.id,
    only: { condition: kept, refusal: gone(target) },
  });
}

const gone = ({ number }: DeploymentRecord) =>
  conflict(
    `The image of deployment ${number} is no longer kept: a site keeps those of its ${keptPerSite} newest successful deployments, on the host it runs on. Choose a newer one, or deploy its commit again.`,
  );
