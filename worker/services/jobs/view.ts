import { eq, getTableColumns, sql } from "drizzle-orm";
import { jobTraits } from "../../../protocol/agent/jobs.ts";
import type { Job, JobWait } from "../../../protocol/api/console.ts";
import type { Ctx } from "../../ctx.ts";
import { openJob } from "../../db/job-conditions.ts";
import type { JobRow } from "../../db/rows.ts";
import { accounts, hosts, jobs } from "../../db/schema.ts";
import { isoTime } from "../../domain/iso-time.ts";
import { stuckAfterMs } from "../../domain/job-rules.ts";
import { waitReasons } from "../../domain/wait-reasons.ts";
import { hasPlace, hostIsClosed, waitsForRoom } from "../../jobs/hosts/placement.ts";
import { waitsForDatabase } from "../../jobs/turns.ts";

const offline = sql`EXISTS (SELECT 1 FROM hosts WHERE id = jobs.host_id AND (offline_since IS NOT NULL OR connected_at IS NULL))`;

/** Queued or leased, and no job that ends soon will help it. */
export const isStuck = (ctx: Ctx) => sql`(jobs.status IN ('QUEUED', 'LEASED') AND ${offline}
  OR jobs.status = 'QUEUED' AND jobs.created_at <= ${ctx.now().getTime() - stuckAfterMs})`;

const waitsFor = (ctx: Ctx) => sql<JobWait | null>`(SELECT CASE
    WHEN EXISTS (SELECT 1 FROM jobs o WHERE o.lane = j.lane AND o.${openJob} AND o.id <> j.id
      AND (o.status = 'LEASED' OR o.seq < j.seq)) THEN 'turn'
    WHEN j.host_id IS NULL AND NOT ${hasPlace} THEN 'no_host'
    WHEN ${offline} THEN 'host'
    WHEN ${waitsForRoom} THEN 'room'
    WHEN ${waitsForDatabase(sql`${ctx.now().getTime()}`)} THEN 'database'
    WHEN ${hostIsClosed} THEN 'closed'
    ELSE 'slot' END
  FROM jobs j WHERE j.id = jobs.id AND j.status = 'QUEUED')`;

/** Commands, restores, rotations, deletions, rollbacks and moves are not repeated without their owner. */
export const retryableKinds = [
  "site.deploy",
  "site.start",
  "site.stop",
  "site.restart",
  "database.provision",
  "database.start",
  "database.stop",
  "database.restart",
  "database.backup",
] as const satisfies JobRow["kind"][];

const retryable = sql`(jobs.status = 'FAILED' AND jobs.kind IN ${retryableKinds}
  AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.lane = jobs.lane AND o.seq > jobs.seq)
  AND NOT EXISTS (SELECT 1 FROM deployments WHERE id = jobs.deployment_id AND "trigger" IN ('rollback', 'move')))`;

export const selectJobs = (ctx: Ctx) =>
  ctx.db
    .select({
      ...getTableColumns(jobs),
      accountEmail: accounts.email,
      hostName: sql<string | null>`${hosts.name}`.as("host_name"),
      name: sql<string | null>`coalesce((SELECT name FROM sites WHERE id = jobs.site_id),
        (SELECT name FROM databases WHERE id = jobs.database_id))`.as("subject_name"),
      waitsFor: waitsFor(ctx).as("waits_for"),
      stuck: isStuck(ctx).mapWith(Boolean).as("stuck"),
      retryable: retryable.mapWith(Boolean).as("retryable"),
    })
    .from(jobs)
    .leftJoin(accounts, eq(accounts.id, jobs.accountId))
    .leftJoin(hosts, eq(hosts.id, jobs.hostId));
type JobRecord = Awaited<ReturnType<typeof selectJobs>>[number];

const reasons: Record<JobWait, string> = {
  turn: "It waits for an earlier job of the same site, database or command.",
  database: waitReasons.database,
  no_host:
    "No connected host has enough free memory, in its region and beside its databases. Add a host, or connect one.",
  host: "Its host is not connected. Start its agent, or remove the host.",
  closed:
    "Its host takes no jobs for now: its Docker engine does not answer, or its agent is being replaced. The host's problems have the reason.",
  room: "Its host has no memory left for it, and its data is there. Make room on the host.",
  slot: "It waits for a free slot on a host.",
};

/** What a host stops when it is told to. */
const stopsOnRequest = new Set<JobRow["kind"]>(["site.deploy", "site.command"]);

/** Whether cancelling it leaves nothing half done: it has not begun, or its host can stop it. */
export function isCancellable({
  kind,
  status,
  attempt,
}: Pick<JobRow, "kind" | "status" | "attempt">): boolean {
  if (status === "LEASED") return stopsOnRequest.has(kind);
  const { starts, about } = jobTraits[kind] as { starts?: boolean; about: string };
  return (
    status === "QUEUED" && attempt === 0 && (starts === true || about === "command" || about === "backup")
  );
}

export const jobView = (row: JobRecord): Job => ({
  id: row.id,
  kind: row.kind,
  status: row.status,
  stuck: row.stuck,
  accountId: row.accountId,
  accountEmail: row.accountEmail ?? "",
  siteId: row.siteId,
  databaseId: row.databaseId,
  name: row.name,
  deploymentId: row.deploymentId,
  commandId: row.commandId,
  backupId: row.backupId,
  hostId: row.hostId,
  hostName: row.hostName,
  waitsFor: row.waitsFor && { code: row.waitsFor, reason: reasons[row.waitsFor] },
  attempt: row.attempt,
  cancelRequested: row.cancelRequested,
  cancellable: isCancellable(row) && !row.cancelRequested,
  retryable: row.retryable,
  error: row.error,
  createdAt: isoTime(row.createdAt),
  leasedAt: isoTime(row.leasedAt),
  deadlineAt: isoTime(row.deadlineAt),
  finishedAt: isoTime(row.finishedAt),
});
