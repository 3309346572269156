import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { queueMove } from "../../jobs/hosts/queue-move.ts";
import { ofSite, queueJob } from "../../jobs/insert.ts";
import { behind, queueRestart } from "../../jobs/queue-restart.ts";
import { queueStart } from "../../jobs/queue-start.ts";
import { tableOf, type Termed } from "../../db/resource.ts";
import { idleLane } from "../../db/job-conditions.ts";

/**
 * Before its pack changes: what failed may have lacked what the larger one has, and its host has room for.
 * @param guard a condition on the row `r`
 */
const startFailed = (ctx: Ctx, kind: Termed, id: string, guard: SQL) =>
  queueStart(
    ctx,
    kind,
    id,
    sql`r.status = 'FAILED' AND r.wanted = 'RUNNING' AND ${idleLane(sql`r.id`)} AND ${guard}
      AND (SELECT next.memory_mb > now.memory_mb OR next.disk_gb > now.disk_gb FROM packs now, packs next
        WHERE now.id = r.pack_id AND next.id = r.next_pack_id)
      ${kind === "sites" ? sql`AND r.move_host_id IS NULL` : sql``}`,
  );

/**
 * Statements for one batch: the chosen pack takes effect and containers get its limits; a site without enough memory
 * on its host moves to the host that reserved it. What failed starts again if the pack is larger.
 * @param guard a condition on the row `r`
 */
export function applyChange(
  ctx: Ctx,
  kind: Termed,
  id: Id<"site"> | Id<"database">,
  mark: string,
  guard: SQL,
) {
  const now = ctx.now().getTime();
  const moves = sql`move_host_id IS NOT NULL AND status IN ${siteEvents.moveRequested.from} AND ${idleLane(sql`r.id`)}`;
  // `moveOutgrown` decides when these limits end.
  const outgrows = sql`(limits_pack_id IS NOT NULL OR move_host_id IS NOT NULL
    AND (SELECT memory_mb FROM packs WHERE id = next_pack_id) > (SELECT memory_mb FROM packs WHERE id = pack_id))`;
  const move =
    kind === "sites"
      ? sql`, limits_pack_id = CASE WHEN ${outgrows} THEN coalesce(limits_pack_id, pack_id) END, status = CASE WHEN ${moves} THEN ${siteEvents.moveRequested.to} ELSE status END,
          move_host_id = CASE WHEN NOT (${moves}) AND ${idleLane(sql`r.id`)} THEN NULL ELSE move_host_id END`
      : sql``;
  return [
    startFailed(ctx, kind, id, guard),
    ctx.statement(sql`
      UPDATE ${tableOf(kind)} AS r SET pack_id = next_pack_id, pack_changed_at = ${now}, next_pack_id = NULL,
        next_pack_at = NULL, mark = ${mark}, updated_at = ${now} ${move}
      WHERE id = ${id} AND next_pack_id IS NOT NULL AND ${guard}`),
    ...(kind === "sites"
      ? queueMove(
          ctx,
          sql`(SELECT id FROM sites WHERE id = ${id} AND mark = ${mark} AND status = 'DEPLOYING' AND move_host_id IS NOT NULL)`,
        )
      : []),
    // A stopped site is stopped again on its new host.
    ...(kind === "sites"
      ? [
          queueJob(
            ctx,
            "site.stop",
            {
              ...ofSite,
              from: sql`sites s JOIN jobs j ON j.lane = s.id AND j.status = 'QUEUED' AND j.kind = 'site.deploy'
                  AND j.host_id = s.move_host_id
                WHERE s.id = ${id} AND s.mark = ${mark} AND s.wanted = 'STOPPED'`,
            },
            sql`j.deadline_at`,
          ),
        ]
      : []),
    queueRestart(ctx, kind, id, sql`r.mark = ${mark} AND ${behind(kind, now)}`),
  ] as const;
}

/** Releases the reservation of a change that does not happen; the months that were chosen stay. @param guard a condition on the row `r` */
export const dropChange = (ctx: Ctx, kind: Termed, id: string, guard: SQL) =>
  ctx.statement(sql`
    UPDATE ${tableOf(kind)} AS r SET next_pack_id = NULL
      ${kind === "sites" ? sql`, move_host_id = CASE WHEN ${idleLane(sql`r.id`)} THEN NULL ELSE move_host_id END` : sql``}
    WHERE id = ${id} AND next_pack_at IS NULL AND ${guard}`);
