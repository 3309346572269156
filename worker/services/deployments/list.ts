import { and, desc, eq } from "drizzle-orm";
import type { ById, Page } from "../../../protocol/api/common.ts";
import type { Deployment, DeploymentListQuery } from "../../../protocol/api/deployments.ts";
import type { Ctx } from "../../ctx.ts";
import { deployments } from "../../db/schema.ts";
import { idIn, ownedWith } from "../owned.ts";
import { before, page } from "../page.ts";
import { siteById } from "../sites/owned.ts";
import { deploymentView, selectDeployments } from "./view.ts";

/** A site's deployments, newest first. */
export async function listDeployments(
  ctx: Ctx,
  { id: siteId, ...query }: ById & DeploymentListQuery,
): Promise<Page<Deployment>> {
  const id = idIn("site", siteId);
  const { rows } = await ownedWith(ctx, siteById(ctx, id), {
    rows: selectDeployments(ctx)
      .where(
        and(
          eq(deployments.siteId, id),
          query.status && eq(deployments.status, query.status),
          query.trigger && eq(deployments.trigger, query.trigger),
          before(deployments.id, query),
        ),
      )
      .orderBy(desc(deployments.id))
      .limit(query.limit + 1),
  });
  return page(rows, query, deploymentView);
}
