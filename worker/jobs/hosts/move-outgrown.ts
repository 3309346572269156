import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { idleLane } from "../../db/job-conditions.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { bestHostFor, hostRooms } from "./placement.ts";
import { queueOwnMove } from "./queue-move.ts";

/** Delay before a failed move is retried, times the number of moves that failed since a version went live. */
const retryMs = 10 * 60_000;

/**
 * Sites with a larger pack than their host has room for: they keep the limits of the previous one until they have
 * moved, or until their host has room.
 */
export async function moveOutgrown(ctx: Ctx): Promise<void> {
  const now = ctx.now().getTime();
  // What is reserved on the host includes the larger pack already.
  await ctx.statement(sql`
    UPDATE sites SET limits_pack_id = NULL, pack_changed_at = ${now}
    WHERE limits_pack_id IS NOT NULL AND ${idleLane(sql`sites.id`)} AND (host_id IS NULL OR NOT reserved
      OR (SELECT memory_mb FROM packs WHERE id = pack_id) <= (SELECT memory_mb FROM packs WHERE id = limits_pack_id)
      OR (SELECT h.free_mb FROM ${hostRooms} h WHERE h.id = sites.host_id) >= 0)`);
  const { from, to } = siteEvents.moveRequested;
  const target = sql`coalesce(r.move_host_id, (${bestHostFor("r", sql`h.id <> r.host_id`)}))`;
  const due = sql`r.limits_pack_id IS NOT NULL AND r.status IN ${from} AND r.leaving_host_id IS NULL AND ${idleLane(sql`r.id`)}
    AND NOT EXISTS (SELECT 1 FROM site_volumes WHERE site_id = r.id)
    AND EXISTS (SELECT 1 FROM hosts WHERE id = r.host_id AND connected_at IS NOT NULL AND offline_since IS NULL)
    AND coalesce((SELECT max(finished_at) + count(*) * ${retryMs} FROM deployments
      WHERE site_id = r.id AND trigger = 'move' AND status IN ('FAILED', 'CANCELLED')
        AND number > coalesce((SELECT number FROM deployments WHERE id = r.current_deployment_id), 0)), 0) <= ${now}
    AND ${target} IS NOT NULL`;
  const outgrown = await ctx.db.all<{ id: Id<"site"> }>(
    sql`SELECT r.id FROM sites r WHERE ${due} ORDER BY r.id LIMIT 100`,
  );
  for (const { id } of outgrown) {
    const mark = ctx.newMark();
    const moved = sql`(SELECT id FROM sites WHERE id = ${id} AND mark = ${mark})`;
    await ctx.db.batch([
      ctx.statement(sql`
        UPDATE sites AS r SET mark = ${mark}, status = ${to}, updated_at = ${now}, move_host_id = ${target}
        WHERE r.id = ${id} AND ${due}`),
      ...queueOwnMove(ctx, moved),
    ]);
    ctx.hosts.wake(null);
  }
}
