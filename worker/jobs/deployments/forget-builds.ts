import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { mayComeBack } from "./kept.ts";

/**
 * Statement for the batch that ends a deployment: clears the build settings, including pasted Dockerfiles, of the
 * site's deployments that are neither open, in service (a move redeploys it), possible targets of a rollback nor the
 * newest, whose failure is explained by what has changed.
 */
export const forgetOldBuilds = (ctx: Ctx, siteId: Id<"site">, ended: SQL) =>
  ctx.statement(sql`
    UPDATE deployments SET build = NULL
    WHERE site_id = ${siteId} AND build IS NOT NULL AND status NOT IN ('QUEUED', 'BUILDING', 'STARTING')
      AND number < (SELECT max(number) FROM deployments WHERE site_id = ${siteId})
      AND id IS NOT (SELECT current_deployment_id FROM sites WHERE id = ${siteId}) AND NOT ${mayComeBack} AND ${ended}`);
