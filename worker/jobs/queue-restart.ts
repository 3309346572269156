import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import { queueTimeoutMs } from "../domain/job-rules.ts";
import { tableOf, type Termed } from "../db/resource.ts";
import { idleLane } from "./idle.ts";

const retryMs = 10 * 60_000;
const restart = { sites: "site.restart", databases: "database.restart" } as const;

/** Of `r`: it runs with another pack's limits, nothing that would change that waits, and no try has just failed. */
export const behind = (kind: Termed, now: number): SQL => sql`r.pack_changed_at IS NOT NULL
  AND r.status = 'RUNNING' AND r.wanted = 'RUNNING' AND r.host_id IS NOT NULL
  AND ${idleLane(sql`r.id`)}
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE lane = r.id AND kind = ${restart[kind]} AND status = 'FAILED'
    AND created_at >= r.pack_changed_at AND finished_at > ${now - retryMs})`;

/** Same image, new containers: a swap, where it is a site. `guard` speaks of it as `r`. */
export const queueRestart = (ctx: Ctx, kind: Termed, id: string, guard: SQL) => {
  const now = ctx.now().getTime();
  return ctx.statement(sql`
    INSERT INTO jobs (id, kind, status, host_id, lane, ${sql.raw(kind === "sites" ? "site_id" : "database_id")}, account_id,
      deadline_at, created_at)
    SELECT ${ctx.newId("job")}, ${restart[kind]}, 'QUEUED', r.host_id, r.id, r.id, r.account_id, ${now + queueTimeoutMs}, ${now}
    FROM ${tableOf(kind)} r WHERE r.id = ${id} AND ${guard}`);
};

/** Behind the end of a job that made new containers: they have the limits of the pack that was read when a host took it. */
export const limitsFollowed = (ctx: Ctx, kind: Termed, id: string, leasedAt: Date | null, ended: SQL) =>
  ctx.statement(sql`
    UPDATE ${tableOf(kind)} SET pack_changed_at = NULL
    WHERE id = ${id} AND pack_changed_at <= ${leasedAt?.getTime() ?? 0} AND ${ended}`);
