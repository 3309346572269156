import { eq, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { jobs, sites } from "../../db/schema.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { bestHostFor } from "./placement.ts";
import { queueOwnMove } from "./queue-move.ts";
import { idleLane, openJob } from "../../db/job-conditions.ts";

/** Delay before a failed move is retried; other sites move first. */
const retryMs = 10 * 60_000;

/** Starts the next move on each draining host that is connected. Sites on a silent host do not move. */
export async function moveSites(ctx: Ctx): Promise<void> {
  const draining = await ctx.db.all<{ id: Id<"host"> }>(sql`
    SELECT id FROM hosts h WHERE status = 'DRAINING' AND connected_at IS NOT NULL AND offline_since IS NULL
      AND EXISTS (SELECT 1 FROM sites WHERE host_id = h.id)`);
  for (const { id } of draining) await moveNextSite(ctx, id);
}

/** Moves one site at a time: it is deployed on another host first, and `arrive` follows once it is healthy there. */
async function moveNextSite(ctx: Ctx, hostId: Id<"host">): Promise<void> {
  const mark = ctx.newMark();
  const now = ctx.now().getTime();
  const { from, to } = siteEvents.moveRequested;
  const siteId = sql`(SELECT id FROM sites WHERE host_id = ${hostId} AND mark = ${mark})`;
  // A site with volumes stays, because their data is on this host.
  const here = sql`s.host_id = ${hostId} AND NOT EXISTS (SELECT 1 FROM site_volumes WHERE site_id = s.id) AND s.move_host_id IS NULL AND s.leaving_host_id IS NULL
    AND ${idleLane(sql`s.id`)}
    AND (SELECT status FROM hosts WHERE id = ${hostId}) = 'DRAINING'`;
  // A silent host that has not taken the job has nothing of the site.
  const silent = sql`(SELECT id FROM hosts WHERE offline_since IS NOT NULL)`;
  const waits = sql`status = 'QUEUED' AND kind = 'site.deploy' AND host_id IN ${silent}`;
  const {
    redirected,
    moved: [moved],
  } = await batch(ctx, {
    // A move whose deployment was cancelled while it waited has ended.
    ended: ctx.statement(sql`
      UPDATE sites SET move_host_id = NULL WHERE host_id = ${hostId} AND move_host_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM jobs j WHERE j.lane = sites.id AND j.host_id = sites.move_host_id AND j.${openJob})`),
    retargeted: ctx.statement(sql`
      UPDATE sites SET move_host_id = coalesce((${bestHostFor("sites", sql`h.id <> ${hostId}`)}), move_host_id)
      WHERE host_id = ${hostId} AND move_host_id IN (SELECT host_id FROM jobs WHERE lane = sites.id AND ${waits})`),
    redirected: ctx.db
      .update(jobs)
      .set({ hostId: sql`(SELECT move_host_id FROM sites WHERE id = jobs.site_id)` })
      .where(
        sql`${waits} AND site_id IN (SELECT id FROM sites WHERE host_id = ${hostId} AND move_host_id NOT IN ${silent})`,
      )
      .returning({ to: jobs.hostId }),
    // Sites that run nothing only give up their host; their next start or deployment places them.
    idle: ctx.statement(sql`
      UPDATE sites AS s SET leaving_host_id = host_id, leave_at = ${now}, host_id = NULL, reserved = 0
      WHERE ${here} AND s.status IN ('FAILED', 'SUSPENDED') AND NOT s.serving`),
    next: ctx.statement(sql`
      UPDATE sites SET mark = ${mark}, status = ${to}, updated_at = ${now}, move_host_id = (
        ${bestHostFor("sites", sql`h.id <> ${hostId}`)})
      WHERE id = (
        SELECT s.id FROM sites s WHERE ${here} AND s.status IN ${from}
          AND EXISTS (${bestHostFor("s", sql`h.id <> ${hostId}`)})
          AND NOT EXISTS (SELECT 1 FROM sites o WHERE o.host_id = ${hostId} AND o.move_host_id IS NOT NULL)
          AND NOT EXISTS (SELECT 1 FROM deployments WHERE site_id = s.id AND trigger = 'move'
            AND status IN ('FAILED', 'CANCELLED') AND finished_at > ${now - retryMs})
        ORDER BY s.id LIMIT 1)`),
    move: queueOwnMove(ctx, siteId),
    moved: ctx.db.select({ to: sites.moveHostId }).from(sites).where(eq(sites.id, siteId)),
  });
  for (const one of [...redirected, moved]) if (one) ctx.hosts.wake(one.to);
}
