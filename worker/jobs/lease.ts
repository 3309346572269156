import { and, desc, eq, getTableColumns, isNull, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { jobKinds, type Job, type JobKind } from "../../protocol/agent/jobs.ts";
import { maxFrameBytes } from "../../protocol/agent/messages.ts";
import type { Id } from "../../protocol/ids.ts";
import type { Ctx, Db } from "../ctx.ts";
import {
  commands,
  backups,
  databases,
  deployments,
  invoices,
  jobs,
  packs,
  siteEnvVersions,
  sites,
} from "../db/schema.ts";
import {
  longForOthersMs,
  maxCommandsRunning,
  timeoutMsOf,
  unfitReason,
  type JobLimits,
} from "../domain/job-rules.ts";
import type { LogId, Offer } from "../domain/lease.ts";
import { replacedVolumes } from "./databases/replaced-volumes.ts";
import { linkedEnvOf, offerLinks } from "./databases/linked-env.ts";
import { imageKept, oldestKeptNumber } from "./deployments/kept.ts";
import { buildNow, runNow } from "./deployments/snapshots.ts";
import { hintDns } from "./dns/reconcile.ts";
import { mayPlace, takeRoom, waitsForRoom } from "./hosts/placement.ts";
import { batch, hot, type Answers, type Hot } from "../db/batch.ts";
import { kindsThat, openJob, startingKinds } from "../db/job-conditions.ts";
import { param } from "../db/param.ts";
import { logError } from "../log-error.ts";
import { endAsFailed } from "./finish.ts";
import { kinds } from "./kinds/index.ts";
import type { Kind, Material } from "./kinds/kind.ts";
import {
  hadNoTurn,
  keptForOthers,
  othersWait,
  servedOn,
  slotOf,
  takesAll,
  waitsForDatabase,
} from "./turns.ts";

export const logIdOf = (job: typeof jobs.$inferSelect): LogId | null =>
  job.kind === "site.deploy" ? job.deploymentId : job.commandId;

/** Room in a message for the fields around the job. */
const aroundJobBytes = 256;

export const isUnplaced = and(isNull(jobs.hostId), eq(jobs.status, "QUEUED"));

/**
 * Free slots of a host. Commands and short jobs have their own slots, so that they do not wait for long jobs.
 * `lastJob`, `lastCommand`: one slot of that kind is left.
 */
type Room = {
  jobs: boolean;
  lastJob: boolean;
  commands: boolean;
  lastCommand: boolean;
  short: boolean;
};

const [longKinds, shortKinds, backgroundKinds, roomlessKinds, kindsOfCurrent, kindsPassingBackups] = [
  kindsThat(({ slot }) => slot === "long"),
  kindsThat(({ slot }) => slot === "short"),
  kindsThat(({ background }) => background),
  kindsThat(({ needsNoRoom }) => needsNoRoom),
  kindsThat(({ ofCurrentDeployment }) => ofCurrentDeployment),
  kindsThat(({ passesBackups }) => passesBackups),
].map((list) => sql.raw(list)) as [SQL, SQL, SQL, SQL, SQL, SQL];

/** The time a leased job has on its host. */
export const leaseMs = ({ leasedAt, deadlineAt }: { leasedAt: Date | null; deadlineAt: Date }): number =>
  deadlineAt.getTime() - (leasedAt ?? deadlineAt).getTime();

const limitsOf = ({ config }: Ctx): JobLimits => ({
  buildSeconds: config.BUILD_TIMEOUT_SECONDS,
  releaseSeconds: config.RELEASE_TIMEOUT_SECONDS,
  startSeconds: config.START_TIMEOUT_SECONDS,
});

const timeoutsOf = (ctx: Ctx) =>
  JSON.stringify(Object.fromEntries(jobKinds.map((kind) => [kind, timeoutMsOf(kind, limitsOf(ctx))])));

// Parameters of the lease's statements, which are prepared once because every job waits for them.
const [mark, hostId, now, jobId] = [param("mark"), param("hostId"), param("now"), param("jobId")];

const take =
  (which: SQL, by: SQLWrapper = hostId) =>
  (db: Db) =>
    db
      .update(jobs)
      .set({
        status: "LEASED",
        hostId: sql`${by}`,
        attempt: sql`attempt + 1`,
        leasedAt: sql`${now}`,
        deadlineAt: sql`${now} + coalesce(${param("timeouts")} ->> ('$."' || kind || '"'), 0)
          + 1000 * coalesce((SELECT timeout_seconds FROM commands WHERE id = jobs.command_id), 0)
          + 1000 * iif(kind IN ${startingKinds},
            coalesce((SELECT start_timeout_seconds FROM sites WHERE id = jobs.site_id), 0), 0)`,
        deploymentId: sql`CASE WHEN kind IN ${kindsOfCurrent}
          THEN (SELECT current_deployment_id FROM sites WHERE id = jobs.site_id) ELSE deployment_id END`,
        // A deployment runs with the environment of its request, a start or restart with the newest one.
        envVersion: sql`CASE WHEN kind = 'site.deploy' THEN (SELECT env_version FROM deployments WHERE id = jobs.deployment_id)
          ELSE coalesce((SELECT max(version) FROM site_env_versions WHERE site_id = jobs.site_id), 0) END`,
        mark,
      })
      .where(which)
      .returning();

/**
 * Selects the oldest queued job `j` that satisfies `whose`, by the index that orders them, without scanning other
 * queues.
 */
const oldest = (whose: SQL) => sql`
  SELECT j.id, j.seq FROM jobs j
  WHERE j.status = 'QUEUED' AND ${whose}
    -- Backups and verifications run one at a time per host; restores, and what they wait for, are exempt because a user is waiting.
    -- One that takes long, as its owner's functions can make it, holds up only its own account's.
    AND NOT (j.kind IN ${backgroundKinds} AND EXISTS (
      SELECT 1 FROM jobs l WHERE l.host_id = ${hostId} AND l.status = 'LEASED' AND l.kind IN ${longKinds}
        AND (l.account_id = j.account_id OR l.leased_at > ${now} - ${sql.raw(String(longForOthersMs))}))
      AND NOT (j.kind IN ('database.backup', 'volume.backup') AND EXISTS (
        SELECT 1 FROM backups b WHERE b.id = j.backup_id AND b."trigger" = 'before-restore')))
    AND CASE WHEN j.kind = 'site.command' THEN ${param("commands")} AND ${sql.raw(String(maxCommandsRunning))} > (
      SELECT count(*) FROM jobs r WHERE r.site_id = j.site_id AND r.kind = 'site.command' AND r.status = 'LEASED')
      WHEN j.kind IN ${shortKinds} THEN ${param("short")} ELSE ${param("jobs")} END
    -- A backup waiting for other backups does not block its lane, because it can also be taken of a stopped database.
    AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.lane = j.lane AND o.${openJob}
      AND (o.status = 'LEASED' OR o.seq < j.seq AND NOT (o.kind = 'database.backup'
        AND j.kind IN ${kindsPassingBackups})))
    AND NOT ${waitsForDatabase(now)}
  ORDER BY j.seq LIMIT 1`;

/** Jobs satisfying `whose` that this host may take: its own, and unplaced ones. */
const ofHost = (whose: SQL) => [
  oldest(sql`j.host_id = ${hostId} AND ${whose} AND NOT ${waitsForRoom}`),
  oldest(sql`j.host_id IS NULL AND ${whose} AND (${mayPlace(hostId, now)} OR j.kind IN ${roomlessKinds}
      AND EXISTS (SELECT 1 FROM hosts h WHERE h.id = ${hostId} AND h.status <> 'REMOVED'))`),
];
const [ownOfOthers, newOfOthers] = ofHost(hadNoTurn) as [SQL, SQL];
const [ownOfServed, newOfServed] = ofHost(
  sql`j.account_id = v.account_id AND ${slotOf("j")} = v.slot AND NOT ${takesAll(param("lastJob"), param("lastCommand"), hostId)}`,
) as [SQL, SQL];
/** Evaluates `found` once per account that had a turn recently. */
const eachServed = (found: SQL) => sql`
  SELECT w.id, w.seq, v.leased, v.turn_at FROM served v CROSS JOIN jobs w
  WHERE w.id = (SELECT id FROM (${found}))`;

/**
 * Accounts take turns: the oldest job of an account without a recent turn comes first; otherwise that of the account
 * with the least work under way and, among equals, the least recent turn. The last of several slots is never a second
 * one of the same account.
 */
const takeOldest = take(sql`id = (
  WITH ${servedOn(hostId)}
  SELECT coalesce(
    (SELECT id FROM (SELECT * FROM (${ownOfOthers}) UNION ALL SELECT * FROM (${newOfOthers})) ORDER BY seq LIMIT 1),
    (SELECT id FROM (${eachServed(ownOfServed)} UNION ALL ${eachServed(newOfServed)}) ORDER BY leased, turn_at, seq LIMIT 1)))`);

/**
 * Leases a job for its own host, if that has a free slot and neither the site's nor another account's job comes
 * first.
 */
const takeAtOnce = take(
  sql`id = (
  SELECT j.id FROM jobs j JOIN hosts h ON h.id = j.host_id
  WHERE j.id = ${jobId} AND j.status = 'QUEUED' AND NOT ${waitsForRoom} AND NOT ${waitsForDatabase(now)}
    AND h.connected_at IS NOT NULL AND h.offline_since IS NULL
    AND h.slots > ${keptForOthers} + (SELECT count(*) FROM jobs l WHERE l.host_id = h.id AND l.status = 'LEASED')
    AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.lane = j.lane AND o.${openJob} AND o.id <> j.id)
    AND NOT (${othersWait}))`,
  sql`host_id`,
);

const takeAgain = take(sql`id = ${jobId} AND status = 'LEASED' AND host_id = ${hostId}`);

const ofTaken = (column: string) => sql`(SELECT ${sql.raw(column)} FROM jobs WHERE mark = ${mark})`;
const siteId = ofTaken("site_id");
const databaseId = ofTaken("database_id");
const deploymentId = ofTaken("deployment_id");
const rollbackOf = sql`(SELECT rollback_of FROM deployments WHERE id = ${deploymentId})`;
const links = offerLinks(siteId, ofTaken("kind"));

/** A deployment runs and is built with the site's present settings; a rollback or a move with those of its target. */
const begin = (db: Db) =>
  db
    .update(deployments)
    .set({
      status: "BUILDING",
      startedAt: sql`coalesce(started_at, ${now})`,
      run: sql`CASE WHEN (rollback_of IS NOT NULL OR trigger = 'move') AND run IS NOT NULL THEN run ELSE
        ${runNow} END`,
      build: sql`CASE WHEN (rollback_of IS NOT NULL OR trigger = 'move') AND build IS NOT NULL THEN build ELSE
        ${buildNow} END`,
    })
    .where(sql`id = (SELECT deployment_id FROM jobs WHERE mark = ${mark} AND kind = 'site.deploy')`)
    .returning();

/** A rollback may bring back a volume whose data was removed. */
const volumes = sql`
  INSERT OR IGNORE INTO site_volumes (site_id, name, created_at)
  SELECT d.site_id, v.value ->> 'name', ${now}
  FROM deployments d, json_each(iif(json_valid(d.run), d.run, NULL), '$.volumes') v
  WHERE d.id = ${deploymentId}`;

/** For a job that a host polled for: any kind, with or without a host. */
const changes = {
  begun: begin,
  volumes,
  command: sql`
    UPDATE commands SET status = 'RUNNING', started_at = ${now}, deployment_id = ${deploymentId}
    WHERE id = ${ofTaken("command_id")} AND status = 'QUEUED'`,
  // An eviction must not place the site on the host it left. A host that the site returns to keeps what it still has.
  site: sql`
    UPDATE sites SET host_id = ${hostId}, reserved = 1, limits_pack_id = NULL,
      leave_at = CASE WHEN leaving_host_id = ${hostId} THEN NULL ELSE leave_at END,
      leaving_host_id = nullif(leaving_host_id, ${hostId})
    WHERE host_id IS NULL AND id = ${siteId} AND ${ofTaken("kind")} <> 'site.evict'`,
  database: sql`UPDATE databases SET host_id = ${hostId} WHERE host_id IS NULL AND id = ${databaseId}`,
  // The site's or database's other unplaced jobs follow it to this host. `+` keeps SQLite from using the index of
  // queued jobs.
  others: sql`
    UPDATE jobs SET host_id = ${hostId} WHERE +host_id IS NULL AND +status = 'QUEUED' AND ${ofTaken("kind")} <> 'site.evict'
      AND (site_id = ${siteId} OR database_id = ${databaseId})`,
  room: takeRoom(siteId, ofTaken("host_id"), ofTaken("kind")),
  offered: links.change,
};

// Plain reads, not a join: D1 returns rows keyed by column name, and joined tables share names.
const readsOfDeployment = {
  // Includes the environment of the job's version; null if that is gone.
  sites: (db: Db) =>
    db
      .select({
        ...getTableColumns(sites),
        env: sql`(SELECT entries FROM site_env_versions WHERE site_id = sites.id AND version = ${ofTaken("env_version")})`
          .mapWith(siteEnvVersions.entries)
          .as("env"),
        domains: sql`(SELECT json_group_array(json_object('name', name, 'redirectTo', redirect_to)) FROM (
            SELECT name, redirect_to FROM domains WHERE site_id = sites.id AND verified_at IS NOT NULL ORDER BY id))`
          .mapWith((found: string) => JSON.parse(found) as Material["domains"])
          .as("domains"),
        // Volumes that existed before the version in service, which mounts them.
        heldVolumes:
          sql`(SELECT json_group_array(v.name) FROM site_volumes v JOIN deployments d ON d.id = sites.current_deployment_id
            WHERE v.site_id = sites.id AND v.created_at <= d.finished_at AND EXISTS (
              SELECT 1 FROM json_each(iif(json_valid(d.run), d.run, NULL), '$.volumes') m WHERE m.value ->> 'name' = v.name))`
            .mapWith((names: string) => JSON.parse(names) as string[])
            .as("held_volumes"),
      })
      .from(sites)
      .where(eq(sites.id, siteId)),
  packs: (db: Db) =>
    db
      .select()
      .from(packs)
      .where(
        eq(
          packs.id,
          sql`coalesce((SELECT limits_pack_id FROM sites WHERE id = ${siteId} AND host_id = ${ofTaken("host_id")}),
            (SELECT pack_id FROM sites WHERE id = ${siteId}), (SELECT pack_id FROM databases WHERE id = ${databaseId}),
            (SELECT pack_id FROM backups WHERE id = ${ofTaken("backup_id")}))`,
        ),
      ),
  kept: (db: Db) =>
    db
      .select()
      .from(deployments)
      .where(
        and(
          sql`${deployments.id} IN (SELECT id FROM deployments
            WHERE site_id = ${siteId} AND number >= ${oldestKeptNumber(siteId)}
            UNION ALL SELECT ${rollbackOf})`,
          sql`(${imageKept} OR ${deployments.id} = ${rollbackOf})`,
        ),
      )
      .orderBy(desc(deployments.number)),
  linked: links.linked,
};
const reads = {
  ...readsOfDeployment,
  deployments: (db: Db) => db.select().from(deployments).where(eq(deployments.id, deploymentId)),
  databases: (db: Db) =>
    db
      .select({ ...getTableColumns(databases), replacedVolumes })
      .from(databases)
      .where(eq(databases.id, databaseId)),
  commands: (db: Db) =>
    db
      .select()
      .from(commands)
      .where(eq(commands.id, ofTaken("command_id"))),
  backups: (db: Db) =>
    db
      .select()
      .from(backups)
      .where(eq(backups.id, ofTaken("backup_id"))),
  renewals: (db: Db) =>
    db
      .select({ token: invoices.token })
      .from(invoices)
      .where(
        and(eq(invoices.resourceId, siteId), eq(invoices.kind, "renewal"), eq(invoices.status, "unpaid")),
      ),
  unplaced: (db: Db) => db.select({ id: jobs.id }).from(jobs).where(isUnplaced).limit(1),
};

/**
 * Leases the oldest job this host may take: its own, or one of an unplaced site or database that fits here best. One
 * batch places it, marks its deployment BUILDING and reads all it needs, so that no host is overcommitted. Jobs of
 * one lane run one at a time and in order of acceptance, and accounts take turns. null: nothing to do.
 */
export async function leaseJob(
  ctx: Ctx,
  hostId: Id<"host">,
  room: Room = { jobs: true, lastJob: false, commands: false, lastCommand: false, short: true },
): Promise<Offer | null> {
  for (;;) {
    const given = {
      hostId,
      jobs: Number(room.jobs),
      lastJob: Number(room.lastJob),
      commands: Number(room.commands),
      lastCommand: Number(room.lastCommand),
      short: Number(room.short),
    };
    const taken = await takeLease(ctx, takeOldest, given);
    if (taken !== "ended") return taken;
  }
}

/** Leases a job again because its agent no longer works on it. */
export async function leaseAgain(ctx: Ctx, hostId: Id<"host">, jobId: Id<"job">): Promise<Offer | null> {
  const taken = await takeLease(ctx, takeAgain, { hostId, jobId });
  return taken === "ended" ? null : taken;
}

/** "ended": the job could not be sent to any host and has failed; others may be taken. */
async function takeLease(
  ctx: Ctx,
  taking: ReturnType<typeof take>,
  given: Record<string, string | number>,
): Promise<Offer | "ended" | null> {
  const values = leaseValues(ctx, given);
  const statements = hot(ctx, { jobs: taking, ...changes, ...reads }, values);
  let read: Answers<typeof statements>;
  try {
    read = await batch(ctx, statements);
  } catch (error) {
    // Other errors of D1 are transient: the lease is retried later.
    if (!(error instanceof SyntaxError)) throw error;
    const [unreadable] = await ctx.db.select().from(jobs).where(eq(jobs.mark, values.mark));
    if (!unreadable) throw error;
    logError({ task: "lease a job", id: unreadable.id }, error);
    await endAsFailed(ctx, unreadable, { error: unfitReason.unreadable, cancelled: false, durations: null });
    return "ended";
  }
  // This host has less free memory now, so another may be the best for the remaining unplaced jobs.
  if (read.jobs.length > 0 && read.unplaced.length > 0) ctx.hosts.wake(null);
  if (read.site.meta.changes > 0) hintDns(ctx);
  return offerOf(ctx, read);
}

const deploymentAtOnce = {
  jobs: takeAtOnce,
  deployments: begin,
  offered: links.change,
  ...readsOfDeployment,
};
const rollbackAtOnce = { ...deploymentAtOnce, volumes };

/**
 * For the batch that queues a deployment of a site with memory reserved on its own host: leases the job in the same
 * batch, which saves a round trip to D1. `deliver` sends it; a lease that is never sent is recovered by the next
 * hello or by `remind`.
 */
export function leaseAtOnce(ctx: Ctx, jobId: Id<"job">, isRollback: boolean) {
  const statements = hot(ctx, isRollback ? rollbackAtOnce : deploymentAtOnce, leaseValues(ctx, { jobId }));
  return {
    statements,
    /** @param found the answers of the statements. @returns false if the job waits */
    deliver: (found: Answers<typeof statements>): boolean => {
      const host = found.jobs[0]?.hostId;
      if (!host) return false;
      const offered = offerOf(ctx, { ...found, databases: [], commands: [], backups: [], renewals: [] });
      ctx.defer(
        offered.then((offer) => void (typeof offer !== "string" && offer && ctx.hosts.deliver(host, offer))),
      );
      return true;
    },
  };
}

/** "ended": the job could not be sent to any host and has failed for that reason. */
async function offerOf(
  ctx: Ctx,
  read: Answers<Hot<Omit<typeof reads, "unplaced"> & { jobs: ReturnType<typeof take> }>>,
): Promise<Offer | "ended" | null> {
  const [job] = read.jobs;
  const [pack] = read.packs;
  if (!job) return null;
  const framed = fittingFrame();
  if (typeof framed === "string") {
    await endAsFailed(ctx, job, { error: framed, cancelled: false, durations: null });
    return "ended";
  }
  return {
    job: framed,
    attempt: job.attempt,
    timeoutMs: leaseMs(job),
    lane: job.lane,
    logId: logIdOf(job),
  };

  /** The job, or the reason why it cannot be sent. */
  function fittingFrame(): Job | string {
    let framed: Job | null = null;
    try {
      framed = frame();
    } catch (error) {
      logError({ task: "frame a job", id: job?.id, kind: job?.kind }, error);
    }
    if (!framed) return unfitReason.unreadable;
    const fits = Buffer.byteLength(JSON.stringify(framed)) <= maxFrameBytes - aroundJobBytes;
    return fits ? framed : unfitReason.tooLarge;
  }

  function frame(): Job | null {
    if (!job || !pack) return null;
    const [site] = read.sites;
    const [database] = read.databases;
    const material: Material = {
      job,
      pack,
      site,
      env: site?.env ?? (job.envVersion ? null : []),
      linkedEnv: linkedEnvOf(ctx, read.linked),
      deployment: read.deployments[0],
      command: read.commands[0],
      renewal: read.renewals[0],
      kept: read.kept,
      domains: site?.domains ?? [],
      heldVolumes: site?.heldVolumes ?? [],
      database,
      replacedVolumes: database?.replacedVolumes ?? [],
      backup: read.backups[0],
    };
    const kind = kinds[job.kind] as Kind<JobKind>;
    return { id: job.id, kind: job.kind, args: kind.args(ctx, material) } as Job;
  }
}

const leaseValues = <Given extends Record<string, string | number>>(ctx: Ctx, given: Given) => ({
  ...given,
  mark: ctx.newMark(),
  now: ctx.now().getTime(),
  timeouts: timeoutsOf(ctx),
});
