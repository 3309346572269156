import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import { ofTermed, queueJob } from "./insert.ts";
import { tableOf, type Termed } from "../db/resource.ts";
import { idleLane } from "../db/job-conditions.ts";

const retryMs = 10 * 60_000;
const restart = { sites: "site.restart", databases: "database.restart" } as const;

/**
 * Whether `r` runs with another pack's limits, with no job queued that would change that and no recent failed
 * attempt. `moveOutgrown` decides when the limits end that a site keeps for want of memory.
 */
export const behind = (kind: Termed, now: number): SQL => sql`r.pack_changed_at IS NOT NULL
  AND r.status = 'RUNNING' AND r.wanted = 'RUNNING' AND r.host_id IS NOT NULL
  ${kind === "sites" ? sql`AND r.limits_pack_id IS NULL` : sql``}
  AND ${idleLane(sql`r.id`)}
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE lane = r.id AND kind = ${restart[kind]} AND status = 'FAILED'
    AND created_at >= r.pack_changed_at AND finished_at > ${now - retryMs})`;

/** Same image, new containers: a swap for a site. `guard` refers to the resource as `r`. */
export const queueRestart = (ctx: Ctx, kind: Termed, id: string, guard: SQL) =>
  queueJob(ctx, restart[kind], {
    ...ofTermed(kind),
    from: sql`${tableOf(kind)} r WHERE r.id = ${id} AND ${guard}`,
  });

/**
 * For the batch that ends a job which created containers: they have the limits of the pack that was read at the
 * lease.
 */
export const limitsFollowed = (ctx: Ctx, kind: Termed, id: string, leasedAt: Date | null, ended: SQL) =>
  ctx.statement(sql`
    UPDATE ${tableOf(kind)} SET pack_changed_at = NULL
    WHERE id = ${id} AND pack_changed_at <= ${leasedAt?.getTime() ?? 0} AND ${ended}`);
