import { and, eq, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { idleLane, openDeployment } from "../../db/job-conditions.ts";
import { deployments, sites } from "../../db/schema.ts";
import { siteEvents, type SiteEvent, type SiteEventName } from "../../domain/site-events.ts";

/** The site's status after a deployment has ended: another one follows, a version serves, or none does. */
export const statusAfterDeployment = sql`CASE
  WHEN status <> 'DEPLOYING' THEN status
  WHEN EXISTS (SELECT 1 FROM deployments WHERE site_id = sites.id AND ${openDeployment}) THEN 'DEPLOYING'
  WHEN serving THEN 'RUNNING'
  WHEN wanted = 'STOPPED' AND current_deployment_id IS NOT NULL THEN 'STOPPED'
  ELSE 'FAILED' END`;

export const setStatusAfterDeployment = (ctx: Ctx, siteId: Id<"site"> | null, guard: SQL) =>
  ctx.db
    .update(sites)
    .set({ status: statusAfterDeployment, updatedAt: ctx.now() })
    .where(and(sql`${sites.id} = ${siteId}`, guard));

/** Moves the site as the event says, if its status allows it. */
export const moveSite = (
  ctx: Ctx,
  siteId: Id<"site">,
  event: SiteEventName,
  guard: SQL,
  serving: boolean,
) => {
  const { from, to }: SiteEvent = siteEvents[event];
  return ctx.db
    .update(sites)
    .set({ ...(to && { status: to }), serving, updatedAt: ctx.now() })
    .where(and(eq(sites.id, siteId), sql`${sites.status} IN ${from}`, guard));
};

/** Shown with the version in service; the next success clears it. */
export const setError = (ctx: Ctx, siteId: Id<"site">, error: string | null, guard: SQL) =>
  ctx.db
    .update(deployments)
    .set({ error })
    .where(
      and(sql`${deployments.id} = (SELECT current_deployment_id FROM sites WHERE id = ${siteId})`, guard),
    );

/** A stopped site stays stopped if the job that would start it is cancelled. */
export const stopAgain = (ctx: Ctx, siteId: Id<"site">, guard: SQL) =>
  ctx.db
    .update(sites)
    .set({ status: "STOPPED", wanted: "STOPPED" })
    .where(
      and(
        eq(sites.id, siteId),
        eq(sites.status, "FAILED"),
        sql`EXISTS (SELECT 1 FROM deployments WHERE id = current_deployment_id AND error IS NULL)`,
        idleLane(sites.id),
        guard,
      ),
    );
