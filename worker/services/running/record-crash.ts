import { and, eq, inArray, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { redactor } from "../../../protocol/redact.ts";
import type { Ctx } from "../../ctx.ts";
import { automaticActivity } from "../../db/insert-activity.ts";
import { deployments, sites } from "../../db/schema.ts";
import { policyExitCode } from "../../domain/policy-exit.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { giveRoomAway } from "../../jobs/hosts/placement.ts";
import { masksOfSite } from "./masks.ts";

type Crash = { siteId: Id<"site">; deploymentId: Id<"deployment">; error: string };

/**
 * The version in service kept exiting and was stopped by its host, or is not started again. Reports are idempotent, and
 * those about other versions have no effect. During a deployment, its outcome decides the status.
 */
export async function recordCrash(ctx: Ctx, hostId: Id<"host">, crash: Crash): Promise<void> {
  const { from, to } = siteEvents.crashed;
  // The reason contains the last lines it wrote.
  const error = redactor(await masksOfSite(ctx, crash.siteId))(crash.error);
  // Only a crash is a notice.
  const action = policyExitCode(error) === 0 ? "reportSiteExit" : "reportSiteCrash";
  const mark = ctx.newMark();
  await ctx.db.batch([
    ctx.db
      .update(sites)
      .set({
        serving: false,
        status: sql`CASE WHEN ${inArray(sites.status, [...from])} THEN ${to} ELSE ${sites.status} END`,
        mark,
        updatedAt: ctx.now(),
      })
      .where(
        and(
          eq(sites.id, crash.siteId),
          eq(sites.hostId, hostId),
          eq(sites.currentDeploymentId, crash.deploymentId),
          eq(sites.serving, true),
          inArray(sites.status, [...from, "DEPLOYING"]),
        ),
      ),
    ctx.db
      .update(deployments)
      .set({ error })
      .where(
        and(
          eq(deployments.id, crash.deploymentId),
          sql`EXISTS (SELECT 1 FROM sites WHERE id = ${crash.siteId} AND mark = ${mark})`,
        ),
      ),
    ctx.statement(giveRoomAway(sql`id = ${crash.siteId} AND mark = ${mark}`)),
    automaticActivity(ctx, action, sql`sites WHERE id = ${crash.siteId} AND mark = ${mark}`),
  ]);
}
