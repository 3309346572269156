import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { ofSite, queueJob } from "../insert.ts";

/** One job for a site that just changed state; `guard` checks the mark set by the UPDATE of the same batch. */
export const queueSiteJob = (
  ctx: Ctx,
  kind: "site.start" | "site.stop" | "site.restart" | "site.route" | "site.delete",
  siteId: Id<"site"> | SQL,
  guard: SQL,
) =>
  queueJob(ctx, kind, {
    ...ofSite,
    // Names and rules apply at once, whatever else the site waits for.
    ...(kind === "site.route" && { lane: sql`s.id || ':route'` }),
    deploymentId: sql`s.current_deployment_id`,
    from: sql`sites s WHERE s.id = ${siteId} AND ${guard}`,
  });
