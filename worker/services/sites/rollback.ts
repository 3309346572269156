import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, sql } from "drizzle-orm";
import type { SiteActionAccepted, SiteRollback } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { deployments } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { mayComeBack } from "../../jobs/deployments/kept.ts";
import { selectDeployments, type DeploymentRecord } from "../deployments/view.ts";
import { idIn, ownedWith } from "../owned.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { deploySite } from "./deploy.ts";
import { siteById } from "./owned.ts";

/**
 * Deploys the image, environment and run settings of an earlier deployment, by default of the previous one. A move
 * repeats a version, so it counts as a target only if there is no other.
 */
export async function rollbackSite(
  ctx: Ctx,
  { id: siteId, deploymentId, withEnv }: ById & SiteRollback,
): Promise<SiteActionAccepted> {
  const id = idIn("site", siteId);
  const named =
    deploymentId === undefined
      ? sql`${deployments.number} = (SELECT max(number) FROM deployments WHERE site_id = ${id} AND status = 'SUPERSEDED'
          AND number < (SELECT max(number) FROM deployments
            WHERE site_id = ${id} AND status IN ('LIVE', 'SUPERSEDED') AND "trigger" <> 'move'))`
      : sql`${deployments.id} = ${deploymentId}`;
  const {
    owned: site,
    target: [target],
  } = await ownedWith(ctx, siteById(ctx, id), {
    target: selectDeployments(ctx).where(and(eq(deployments.siteId, id), named)),
  });
  await refuseUnpaid(ctx, site);
  if (!target && deploymentId !== undefined) throw new AppError("not_found");
  if (!target)
    throw conflict("There is no earlier deployment of this site to roll back to. Deploy the site instead.");
  if (target.status !== "LIVE" && target.status !== "SUPERSEDED")
    throw conflict(`Deployment ${target.number} was never live. Choose one that was.`);
  if (!target.mayComeBack) throw gone(target, site.keptImages);
  const kept = sql`EXISTS (SELECT 1 FROM deployments WHERE id = ${target.id} AND ${mayComeBack})`;
  return deploySite(ctx, site, "rollback", {
    rollbackOf: target.id,
    withEnv,
    only: { condition: kept, refusal: gone(target, site.keptImages) },
  });
}

const gone = ({ number }: DeploymentRecord, kept: number) =>
  conflict(
    `Deployment ${number} is no longer kept: only the ${kept} latest successful deployments of this site (keptImages) can be rolled back to. Choose a newer one, or deploy its source again.`,
  );
