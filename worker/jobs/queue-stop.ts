import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import { queueTimeoutMs } from "../domain/job-rules.ts";
import { tableOf, type Termed } from "../db/resource.ts";

/** A job that stops it and keeps its data, where it is on a host; `guard` speaks of it as `r`. */
export const queueStop = (ctx: Ctx, kind: Termed, id: string, guard: SQL) => {
  const now = ctx.now().getTime();
  const column = sql.raw(kind === "sites" ? "site_id" : "database_id");
  return ctx.statement(sql`
    INSERT INTO jobs (id, kind, status, host_id, lane, ${column}, account_id, deadline_at, created_at)
    SELECT ${ctx.newId("job")}, ${kind === "sites" ? "site.stop" : "database.stop"}, 'QUEUED', r.host_id, r.id, r.id, r.account_id,
      ${now + queueTimeoutMs}, ${now}
    FROM ${tableOf(kind)} r WHERE r.id = ${id} AND r.host_id IS NOT NULL AND ${guard}`);
};
