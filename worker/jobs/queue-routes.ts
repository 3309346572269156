import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../protocol/ids.ts";
import type { Ctx } from "../ctx.ts";
import { queueSiteJob } from "./sites/queue.ts";

/** A statement for one batch that queues a route update for the site's host; one queued job covers all changes. */
export const queueRoutes = (ctx: Ctx, siteId: Id<"site">, guard: SQL) =>
  queueSiteJob(
    ctx,
    "site.route",
    siteId,
    sql`${guard} AND s.host_id IS NOT NULL AND s.status <> 'DELETING'
      AND NOT EXISTS (SELECT 1 FROM jobs WHERE site_id = s.id AND kind = 'site.route' AND status = 'QUEUED')`,
  );
