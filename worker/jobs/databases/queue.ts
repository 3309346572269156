import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { PlainDatabaseJobKind } from "../../../protocol/agent/jobs.ts";
import { queueTimeoutMs } from "../../domain/job-rules.ts";

/** One job for a database; `guard` speaks of it as `d`, and reads the mark the UPDATE of the same batch left. */
export const queueDatabaseJob = (
  ctx: Ctx,
  kind: PlainDatabaseJobKind,
  databaseId: Id<"database"> | SQL,
  guard: SQL,
) =>
  ctx.statement(sql`
    INSERT INTO jobs (id, kind, status, host_id, lane, database_id, account_id, deadline_at, created_at)
    SELECT ${ctx.newId("job")}, ${kind}, 'QUEUED', d.host_id, d.id, d.id, d.account_id,
      ${ctx.now().getTime() + queueTimeoutMs}, ${ctx.now().getTime()}
    FROM databases d WHERE d.id = ${databaseId} AND ${guard}`);
