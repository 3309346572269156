import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { mayComeBack } from "./kept.ts";

/**
 * A statement for the batch that ends a deployment: what the site's others were made of goes, a pasted Dockerfile among it,
 * but of those that wait or run, move with the site, or may be brought back.
 */
export const forgetOldBuilds = (ctx: Ctx, siteId: Id<"site">, ended: SQL) =>
  ctx.statement(sql`
    UPDATE deployments SET build = NULL
    WHERE site_id = ${siteId} AND build IS NOT NULL AND status NOT IN ('QUEUED', 'BUILDING', 'STARTING')
      AND id IS NOT (SELECT current_deployment_id FROM sites WHERE id = ${siteId}) AND NOT ${mayComeBack} AND ${ended}`);
