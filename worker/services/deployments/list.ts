import { and, desc, eq } from "drizzle-orm";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { Ctx } from "../../context.ts";
import { deployments } from "../../db/schema.ts";
import { before, page } from "../page.ts";
import { siteOwnedBy } from "../sites/owned.ts";
import { deploymentView } from "./view.ts";

/** A site's deployments, newest first. */
export async function listDeployments(ctx: Ctx, siteId: string, query: ListQuery): Promise<Page<Deployment>> {
  const site = await siteOwnedBy(ctx, siteId);
  const rows = await ctx.db
    .select()
    .from(deployments)
    .where(and(eq(deployments.siteId, site.id), before(deployments.id, query)))
    .orderBy(desc(deployments.id))
    .limit(query.limit + 1);
  return page(rows, query, deploymentView);
}
