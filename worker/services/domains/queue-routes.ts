import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import { queueSiteJob } from "../deployments/queue.ts";
import type { SiteRow } from "../sites/owned.ts";

/** A statement for one batch: the host that carries the site is told its names; one waiting job carries all changes. */
export const queueRoutes = (ctx: Ctx, site: SiteRow, guard: SQL) =>
  queueSiteJob(
    ctx,
    "site.route",
    site.id,
    sql`${guard} AND s.host_id IS NOT NULL AND s.status <> 'DELETING'
      AND NOT EXISTS (SELECT 1 FROM jobs WHERE site_id = s.id AND kind = 'site.route' AND status = 'QUEUED')`,
  );
