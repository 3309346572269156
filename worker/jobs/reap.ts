import { and, getTableColumns, inArray, lt, sql } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";
import { batch } from "../db/batch.ts";
import { databases, hosts, jobs, sites } from "../db/schema.ts";
import { expiredReason, restoreToldWithinMs, takenWithinMs } from "../domain/job-rules.ts";
import { queueDatabaseJob } from "./databases/queue.ts";
import { deploymentQueue } from "./deployments/queue.ts";
import { queueSiteJob } from "./sites/queue.ts";
import { giveRoomAway, waitsForRoom } from "./hosts/placement.ts";
import { eachAlone } from "../each-alone.ts";
import { endAsFailed } from "./finish.ts";
import { isUnplaced, leaseMs } from "./lease.ts";
import { leasedAtOnce } from "./offer-anew.ts";
import { noRoomFor } from "./no-room-for.ts";
import { idleLane } from "../db/job-conditions.ts";
import { waitsForOthers } from "./turns.ts";

const hasNoRoom = sql<number>`EXISTS (
  SELECT 1 FROM jobs j WHERE j.id = jobs.id AND j.status = 'QUEUED' AND (j.host_id IS NULL OR ${waitsForRoom}))`.as(
  "has_no_room",
);

/**
 * A restore that may have switched volumes must not be reported as failed: the next start would remove the data in
 * use.
 */
const mayStillReport = (now: number) => sql`(kind = 'database.restore' AND status = 'LEASED' AND NOT EXISTS (
  SELECT 1 FROM hosts h WHERE h.id = jobs.host_id AND h.offline_since IS NULL
    AND max(h.connected_at, jobs.deadline_at) < ${now - restoreToldWithinMs}))`;

/** A backup or a restore of the same lane may take longer than a job may wait; it has a deadline of its own. */
const waitsForItsLane = (now: number) => sql`(status = 'QUEUED' AND EXISTS (
  SELECT 1 FROM jobs l WHERE l.lane = jobs.lane AND l.leased_at IS NOT NULL
    AND coalesce(l.finished_at, l.deadline_at) > max(jobs.created_at, ${now - takenWithinMs})))`;

/** Rows per query, and how many are processed concurrently. */
const pageSize = 100;
const atOnce = 10;
/** Bounds the work of one minute. */
const maxPages = 50;

/** Ends expired jobs and queues the missing job of each site and database in a transitional status without one. */
export async function reapJobs(ctx: Ctx): Promise<void> {
  await endExpired(ctx);
  const { idle, idleDatabases, unplaced, waiting, leased } = await batch(ctx, {
    idle: ctx.db
      .select()
      .from(sites)
      .where(and(inArray(sites.status, ["DEPLOYING", "DELETING"]), idleLane(sites.id)))
      .limit(100),
    idleDatabases: ctx.db
      .select()
      .from(databases)
      .where(and(inArray(databases.status, ["PROVISIONING", "DELETING"]), idleLane(databases.id)))
      .limit(100),
    // A host with free slots may take them by now.
    unplaced: ctx.db.select({ id: jobs.id }).from(jobs).where(isUnplaced).limit(1),
    // Hosts whose hint may have been lost.
    waiting: ctx.db
      .select({ hostId: hosts.id })
      .from(hosts)
      .where(sql`EXISTS (SELECT 1 FROM jobs WHERE status = 'QUEUED' AND host_id = ${hosts.id})`),
    leased: ctx.db.selectDistinct({ hostId: jobs.hostId }).from(jobs).where(leasedAtOnce(ctx.now())),
    room: ctx.statement(giveRoomAway(sql`1`)),
  });
  await eachAlone("reap sites", idle, async (site) => {
    if (site.status === "DELETING")
      await queueSiteJob(ctx, "site.delete", site.id, sql`s.status = 'DELETING'`);
    else await batch(ctx, deploymentQueue(sql`${site.id}`)(ctx, { trigger: "payment" }));
    ctx.hosts.wake(site.hostId);
  });
  await eachAlone("reap databases", idleDatabases, async ({ id, status, hostId }) => {
    const kind = status === "DELETING" ? "database.delete" : "database.provision";
    await queueDatabaseJob(ctx, kind, id, sql`d.status = ${status}`);
    ctx.hosts.wake(hostId);
  });
  if (unplaced.length > 0) ctx.hosts.wake(null);
  for (const { hostId } of waiting) if (hostId) ctx.hosts.wake(hostId);
  for (const { hostId } of leased) if (hostId) ctx.hosts.remind(hostId);
}

/** After a long outage of hosts, everything that waited for them expires in the same minute. */
async function endExpired(ctx: Ctx): Promise<void> {
  let after = 0;
  for (let count = 0; count < maxPages; count++) {
    // `+` makes SQLite use the index of deadlines instead of scanning in id order.
    const expired = await ctx.db
      .select({ ...getTableColumns(jobs), hasNoRoom })
      .from(jobs)
      .where(
        and(
          inArray(jobs.status, ["QUEUED", "LEASED"]),
          lt(jobs.deadlineAt, ctx.now()),
          sql`NOT ${mayStillReport(ctx.now().getTime())}`,
          sql`NOT ${waitsForItsLane(ctx.now().getTime())}`,
          sql`NOT ${waitsForOthers(ctx.now().getTime())}`,
          sql`+${jobs.seq} > ${after}`,
        ),
      )
      .orderBy(sql`+${jobs.seq}`)
      .limit(pageSize);
    await eachAlone("reap jobs", expired, (job) => endOne(ctx, job), atOnce);
    if (expired.length < pageSize) return;
    after = expired.at(-1)?.seq ?? after;
  }
}

async function endOne(ctx: Ctx, job: typeof jobs.$inferSelect & { hasNoRoom: number }): Promise<void> {
  const isLeased = job.status === "LEASED";
  const leasedMs = isLeased ? leaseMs(job) : null;
  const error = job.hasNoRoom === 1 ? await noRoomFor(ctx, job) : expiredReason(job.kind, leasedMs);
  await endAsFailed(ctx, job, { error, cancelled: false, durations: null });
  if (isLeased && job.hostId) ctx.hosts.revise(job.hostId, { jobId: job.id, attempt: job.attempt }, "drop");
}
