import { sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { automaticActivity } from "../../db/insert-activity.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { queueSiteJob } from "../../jobs/deployments/queue.ts";
import { bestHostFor, lacksRoom } from "../../jobs/hosts/placement.ts";
import { movedInVain, queueMove } from "../../jobs/hosts/queue-move.ts";
import { applyChange } from "./apply-change.ts";
import { idleLane } from "../../db/job-conditions.ts";
import { behind, queueRestart } from "../../jobs/queue-restart.ts";
import { termed } from "../../db/resource.ts";
import { beingPaid, selectDue, type TermRow } from "./resource.ts";

/** Packs change at the renewal they were chosen for. Restarts are repeated until the containers have the new limits. */
export async function changeDue(ctx: Ctx): Promise<void> {
  const now = ctx.now().getTime();
  // Releases reservations on other hosts for moves that did not happen.
  await ctx.statement(sql`
    UPDATE sites SET move_host_id = NULL
    WHERE move_host_id IS NOT NULL AND ${idleLane(sql`sites.id`)} AND (next_pack_id IS NULL OR next_pack_at IS NULL AND NOT EXISTS (
      SELECT 1 FROM invoices i WHERE i.resource_id = sites.id AND i.kind IN ('change', 'renewal') AND i.status = 'unpaid'
        AND ${beingPaid(sql`i.id`)}))`);
  for (const kind of termed) {
    const due = sql`r.next_pack_at <= ${now} AND r.status <> 'DELETING'`;
    for (const row of await ctx.db.all<TermRow>(selectDue(kind, due))) {
      await ctx.db.batch([...applyChange(ctx, kind, row.id, ctx.newMark(), due)]);
      ctx.hosts.wake(null);
    }
    for (const row of await ctx.db.all<TermRow>(selectDue(kind, behind(kind, now)))) {
      await queueRestart(ctx, kind, row.id, behind(kind, now));
      ctx.hosts.wake(row.hostId);
    }
  }
  await moveDue(ctx);
}

/** Moves sites whose host has no room for their pack: the move failed, or could not begin when the pack was paid. */
async function moveDue(ctx: Ctx): Promise<void> {
  const now = ctx.now().getTime();
  const { from, to } = siteEvents.moveRequested;
  const elsewhere = bestHostFor("r", sql`h.id <> r.host_id`);
  const due = sql`r.pack_changed_at IS NOT NULL AND r.status IN ${from} AND r.move_host_id IS NULL
    AND r.leaving_host_id IS NULL AND ${idleLane(sql`r.id`)} AND NOT ${movedInVain(sql`r.id`, now)}
    AND NOT EXISTS (SELECT 1 FROM site_volumes WHERE site_id = r.id) AND ${lacksRoom} AND EXISTS (${elsewhere})`;
  for (const { id } of await ctx.db.all<TermRow>(selectDue("sites", due))) {
    const mark = ctx.newMark();
    const moved = sql`(SELECT id FROM sites WHERE id = ${id} AND mark = ${mark})`;
    await ctx.db.batch([
      ctx.statement(sql`
        UPDATE sites AS r SET mark = ${mark}, status = ${to}, updated_at = ${now}, move_host_id = (${elsewhere})
        WHERE r.id = ${id} AND ${due}`),
      automaticActivity(ctx, "moveSite", sql`sites WHERE id = ${moved}`),
      ...queueMove(ctx, moved, { asIs: true }),
      queueSiteJob(ctx, "site.stop", moved, sql`s.wanted = 'STOPPED'`),
    ]);
    ctx.hosts.wake(null);
  }
}
