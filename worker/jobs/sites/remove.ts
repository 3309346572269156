import { and, eq, inArray, sql, type SQL } from "drizzle-orm";
import type { SiteActionAccepted } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { closeCheckouts, openCheckoutsOfVoid } from "../../db/close-checkouts.ts";
import type { SiteRow } from "../../db/rows.ts";
import { domains, invoices, sites } from "../../db/schema.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { cancelCommands, endOrphans, tellOrphans } from "../commands/cancel-all.ts";
import { cancelDeployments } from "../deployments/cancel-all.ts";
import { reviseCancelled } from "../request-cancel.ts";
import { queueSiteJob } from "./queue.ts";
import { hintDns } from "../dns/reconcile.ts";
import { forgetSite } from "./forget.ts";

/**
 * DELETING is final: open work of the site ends, its domains are released, a host cleans up, then the record is deleted.
 * @param only a condition that must hold when the deletion begins
 */
export async function deleteSite(ctx: Ctx, site: SiteRow, only?: SQL): Promise<SiteActionAccepted> {
  const { from, to } = siteEvents.deleteRequested;
  const mark = ctx.newMark();
  const deleting = sql`(SELECT mark FROM sites WHERE id = ${site.id}) = ${mark}`;
  const {
    moved: [moved],
    deployments: { waited, cancelling },
    orphans,
    open,
  } = await batch(ctx, {
    moved: ctx.db
      .update(sites)
      .set({ status: to, mark, updatedAt: ctx.now() })
      .where(and(eq(sites.id, site.id), inArray(sites.status, [...from]), only))
      .returning(),
    deletion: queueSiteJob(ctx, "site.delete", site.id, sql`s.mark = ${mark} AND s.host_id IS NOT NULL`),
    commands: cancelCommands(ctx, site.id, deleting),
    deployments: cancelDeployments(ctx, site.id, deleting),
    backups: ctx.statement(sql`
      UPDATE backups SET status = 'FAILED', error = 'The site was deleted.', finished_at = ${ctx.now().getTime()}
      WHERE status = 'RUNNING' AND ${deleting}
        AND id IN (SELECT backup_id FROM jobs WHERE site_id = ${site.id} AND kind = 'volume.backup' AND status = 'QUEUED')`),
    waitingJobs: ctx.statement(
      sql`UPDATE jobs SET status = 'CANCELLED', finished_at = ${ctx.now().getTime()} WHERE site_id = ${site.id} AND status = 'QUEUED' AND kind <> 'site.delete' AND ${deleting}`,
    ),
    // The host may be away for long, and the names serve elsewhere meanwhile.
    domains: ctx.db.delete(domains).where(and(eq(domains.siteId, site.id), deleting)),
    orphans: endOrphans(ctx, site.id),
    invoices: ctx.db
      .update(invoices)
      .set({ status: "void" })
      .where(and(eq(invoices.resourceId, site.id), eq(invoices.status, "unpaid"), deleting)),
    open: openCheckoutsOfVoid(ctx, sql`resource_id = ${site.id}`),
    // Nothing of it ever reached a host, so the record is deleted at once.
    forgotten: forgetSite(
      ctx,
      site.id,
      sql`${deleting} AND (SELECT coalesce(host_id, move_host_id, leaving_host_id) FROM sites WHERE id = ${site.id}) IS NULL`,
    ),
  });
  closeCheckouts(ctx, open);
  if (!moved) return { id: site.id, status: to };
  for (const { id } of waited) ctx.logs.remove(id);
  reviseCancelled(ctx, cancelling);
  tellOrphans(ctx, orphans);
  if (moved.hostId) {
    ctx.hosts.wake(moved.hostId);
    hintDns(ctx);
  }
  return { id: moved.id, status: moved.status };
}
