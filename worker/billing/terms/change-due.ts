import { sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { applyChange } from "./apply-change.ts";
import { idleLane } from "../../db/job-conditions.ts";
import { moveOutgrown } from "../../jobs/hosts/move-outgrown.ts";
import { behind, queueRestart } from "../../jobs/queue-restart.ts";
import { termed } from "../../db/resource.ts";
import { beingPaid, selectDue, type TermRow } from "./resource.ts";

/** Packs change at the renewal they were chosen for. Restarts are repeated until the containers have the new limits. */
export async function changeDue(ctx: Ctx): Promise<void> {
  const now = ctx.now().getTime();
  await moveOutgrown(ctx);
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
}
