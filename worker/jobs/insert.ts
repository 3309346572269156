import { sql, type SQL } from "drizzle-orm";
import type { JobKind } from "../../protocol/agent/jobs.ts";
import type { Ctx } from "../ctx.ts";
import type { Termed } from "../db/resource.ts";
import { queueTimeoutMs } from "../domain/job-rules.ts";

/** The columns of a new job, as expressions over the rows of `from`. */
type NewJob = {
  /** null: any host may take it. */
  hostId: SQL;
  /** Jobs of one lane run one at a time and in order. */
  lane: SQL;
  accountId: SQL;
  siteId?: SQL;
  databaseId?: SQL;
  backupId?: SQL;
  /** For volume.restore: its name. */
  volume?: SQL;
  deploymentId?: SQL;
  commandId?: SQL;
  /** Tables and an optional `WHERE`: one job is queued per row. */
  from: SQL;
};

const none = sql`NULL`;

/** For a job about site `s`, about database `d`, or about either of them as `r`: on its host and in its lane. */
export const ofSite = about("s", "siteId");
export const ofDatabase = about("d", "databaseId");
export const ofTermed = (kind: Termed) => about("r", kind === "sites" ? "siteId" : "databaseId");

function about(row: string, column: "siteId" | "databaseId"): Omit<NewJob, "from"> {
  const id = sql.raw(`${row}.id`);
  return {
    hostId: sql.raw(`${row}.host_id`),
    lane: id,
    accountId: sql.raw(`${row}.account_id`),
    [column]: id,
  };
}

/** @param deadline the time by which a host must have taken the job, in milliseconds since the epoch */
export const insertJob = (
  kind: JobKind,
  { id, now, deadline }: Record<"id" | "now" | "deadline", SQL | string | number>,
  job: NewJob,
): SQL => sql`
  INSERT INTO jobs (id, kind, status, host_id, lane, account_id, site_id, database_id, backup_id, volume, deployment_id,
    command_id, deadline_at, created_at)
  SELECT ${id}, ${kind}, 'QUEUED', ${job.hostId}, ${job.lane}, ${job.accountId}, ${job.siteId ?? none}, ${job.databaseId ?? none},
    ${job.backupId ?? none}, ${job.volume ?? none}, ${job.deploymentId ?? none}, ${job.commandId ?? none}, ${deadline}, ${now}
  FROM ${job.from}`;

/** A statement for a batch that queues one job. @param waits how long a host has to take it */
export const queueJob = (
  ctx: Ctx,
  kind: JobKind,
  job: NewJob,
  waits: number | SQL = queueTimeoutMs,
  id = ctx.newId("job"),
) => {
  const now = ctx.now().getTime();
  const deadline = typeof waits === "number" ? now + waits : waits;
  return ctx.statement(insertJob(kind, { id, now, deadline }, job));
};
