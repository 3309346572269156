import { and, desc, eq, getTableColumns, isNull, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { isDatabaseJob, isLongJob, jobKinds, type Job } from "../../protocol/agent/jobs.ts";
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
import { maxCommandsRunning, timeoutMsOf, unfitReason, type JobLimits } from "../domain/job-rules.ts";
import type { LogId, Offer } from "../domain/lease.ts";
import { backupFrameOf } from "./backups/frame.ts";
import { replacedVolumes } from "./databases/replaced-volumes.ts";
import { databaseFrameOf, specOf } from "./databases/frame.ts";
import { linkedEnvOf, offerLinks } from "./databases/linked-env.ts";
import { imageKept, oldestKeptNumber } from "./deployments/kept.ts";
import { mayPlace, takeRoom, waitsForRoom } from "./hosts/placement.ts";
import { param } from "../db/param.ts";
import { logError } from "../log-error.ts";
import { endAsFailed } from "./finish.ts";
import { frameOf } from "./frame.ts";
import { hadNoTurn, kindsThat, othersWait, servedOn, shortKinds, slotOf } from "./turns.ts";

export const logIdOf = (job: typeof jobs.$inferSelect): LogId | null =>
  job.kind === "site.deploy" ? job.deploymentId : job.commandId;

/** What a frame holds beside its job. */
const aroundJobBytes = 256;

export const isUnplaced = and(isNull(jobs.hostId), eq(jobs.status, "QUEUED"));

/** What a host has room for: commands and short jobs have slots of their own, so that none waits for the others. */
export type Room = { jobs: boolean; commands: boolean; short: boolean };

const longKinds = sql.raw(kindsThat(isLongJob));

/** How long a leased job has on its host. */
export const leaseMs = ({ leasedAt, deadlineAt }: { leasedAt: Date | null; deadlineAt: Date }): number =>
  deadlineAt.getTime() - (leasedAt ?? deadlineAt).getTime();

const limitsOf = ({ config }: Ctx): JobLimits => ({
  buildSeconds: config.BUILD_TIMEOUT_SECONDS,
  releaseSeconds: config.RELEASE_TIMEOUT_SECONDS,
  startSeconds: config.START_TIMEOUT_SECONDS,
});

const timeoutsOf = (ctx: Ctx) =>
  JSON.stringify(Object.fromEntries(jobKinds.map((kind) => [kind, timeoutMsOf(kind, limitsOf(ctx))])));

// What a lease's statements are given; they are written once, as every job waits for them.
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
          + 1000 * iif(kind IN ('site.deploy', 'site.start', 'site.restart'),
            coalesce((SELECT start_timeout_seconds FROM sites WHERE id = jobs.site_id), 0), 0)`,
        deploymentId: sql`CASE WHEN kind IN ('site.start', 'site.restart', 'site.command')
          THEN (SELECT current_deployment_id FROM sites WHERE id = jobs.site_id) ELSE deployment_id END`,
        // A deployment runs with the environment it was asked for with, a start or restart with the newest.
        envVersion: sql`CASE WHEN kind = 'site.deploy' THEN (SELECT env_version FROM deployments WHERE id = jobs.deployment_id)
          ELSE coalesce((SELECT max(version) FROM site_env_versions WHERE site_id = jobs.site_id), 0) END`,
        mark,
      })
      .where(which)
      .returning();

/** The oldest waiting job `j` of those `whose`, by the index that has them in their order: others' queues are not read through. */
const oldest = (whose: SQL) => sql`
  SELECT j.id, j.seq FROM jobs j
  WHERE j.status = 'QUEUED' AND ${whose}
    -- A restore is waited for; of what nobody waits for, one at a time.
    AND NOT (j.kind IN ('database.backup', 'database.verify') AND EXISTS (
      SELECT 1 FROM jobs l WHERE l.host_id = ${hostId} AND l.status = 'LEASED' AND l.kind IN ${longKinds}))
    AND CASE WHEN j.kind = 'site.command' THEN ${param("commands")} AND ${sql.raw(String(maxCommandsRunning))} > (
      SELECT count(*) FROM jobs r WHERE r.site_id = j.site_id AND r.kind = 'site.command' AND r.status = 'LEASED')
      WHEN j.kind IN ${sql.raw(shortKinds)} THEN ${param("short")} ELSE ${param("jobs")} END
    -- A backup that waits for those of others holds up nobody: it is made of a stopped database as well.
    AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.lane = j.lane AND o.status IN ('QUEUED', 'LEASED')
      AND (o.status = 'LEASED' OR o.seq < j.seq AND NOT (o.kind = 'database.backup'
        AND j.kind IN ('database.start', 'database.stop', 'database.restart', 'database.rotate', 'database.expose'))))
  ORDER BY j.seq LIMIT 1`;

/** What this host may take of those `whose`: its own, and what has no host yet. */
const ofHost = (whose: SQL) => [
  oldest(sql`j.host_id = ${hostId} AND ${whose} AND NOT ${waitsForRoom}`),
  oldest(sql`j.host_id IS NULL AND ${whose} AND (${mayPlace(hostId, now)} OR j.kind IN ('site.delete', 'database.delete', 'database.verify')
      AND EXISTS (SELECT 1 FROM hosts h WHERE h.id = ${hostId} AND h.status <> 'REMOVED'))`),
];
const [ownOfOthers, newOfOthers] = ofHost(hadNoTurn) as [SQL, SQL];
const [ownOfServed, newOfServed] = ofHost(sql`j.account_id = v.account_id AND ${slotOf("j")} = v.slot`) as [
  SQL,
  SQL,
];
/** Of each account that had a turn. */
const eachServed = (found: SQL) => sql`
  SELECT w.id, w.seq, v.leased, v.turn_at FROM served v CROSS JOIN jobs w
  WHERE w.id = (SELECT id FROM (${found}))`;

/**
 * Accounts take turns: the oldest job of one that had none of late; otherwise of the one with the least work under way, and of
 * those the one whose turn was longest ago.
 */
const takeOldest = take(sql`id = (
  WITH ${servedOn(hostId)}
  SELECT coalesce(
    (SELECT id FROM (SELECT * FROM (${ownOfOthers}) UNION ALL SELECT * FROM (${newOfOthers})) ORDER BY seq LIMIT 1),
    (SELECT id FROM (${eachServed(ownOfServed)} UNION ALL ${eachServed(newOfServed)}) ORDER BY leased, turn_at, seq LIMIT 1)))`);

/** For its own host, if that has a slot for it and nothing comes before it, of its site's or of other accounts'. */
const takeAtOnce = take(
  sql`id = (
  SELECT j.id FROM jobs j JOIN hosts h ON h.id = j.host_id
  WHERE j.id = ${jobId} AND j.status = 'QUEUED' AND NOT ${waitsForRoom}
    AND h.connected_at IS NOT NULL AND h.offline_since IS NULL
    AND h.slots > (SELECT count(*) FROM jobs l WHERE l.host_id = h.id AND l.status = 'LEASED')
    AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.lane = j.lane AND o.status IN ('QUEUED', 'LEASED') AND o.id <> j.id)
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

/** A deployment runs and is built as the site is now; a rollback and a move as the one they bring back. */
const begin = (db: Db) =>
  db
    .update(deployments)
    .set({
      status: "BUILDING",
      startedAt: sql`coalesce(started_at, ${now})`,
      run: sql`CASE WHEN (rollback_of IS NOT NULL OR trigger = 'move') AND run IS NOT NULL THEN run ELSE
        (SELECT json_object('port', port, 'startCommand', start_command, 'healthCheckPath', health_check_path,
          'replicas', replicas, 'volumes', json(iif(json_valid(volumes), volumes, 'null')))
          FROM sites WHERE id = deployments.site_id) END`,
      build: sql`CASE WHEN (rollback_of IS NOT NULL OR trigger = 'move') AND build IS NOT NULL THEN build ELSE
        (SELECT json_object('githubUrl', github_url, 'branch', branch, 'submodules', json(iif(submodules, 'true', 'false')),
          'lfs', json(iif(lfs, 'true', 'false')), 'dockerfile', dockerfile, 'image', image, 'rootDir', root_dir,
          'dockerfilePath', dockerfile_path, 'buildCommand', build_command, 'builder', builder,
          'installCommand', install_command, 'outputDir', output_dir, 'singlePage',
          json(CASE single_page WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END), 'languageVersion', language_version)
          FROM sites WHERE id = deployments.site_id) END`,
    })
    .where(sql`id = (SELECT deployment_id FROM jobs WHERE mark = ${mark} AND kind = 'site.deploy')`)
    .returning();

/** A rollback may bring back a volume whose data was removed. */
const volumes = sql`
  INSERT OR IGNORE INTO site_volumes (site_id, name, created_at)
  SELECT d.site_id, v.value ->> 'name', ${now}
  FROM deployments d, json_each(iif(json_valid(d.run), d.run, NULL), '$.volumes') v
  WHERE d.id = ${deploymentId}`;

/** Of one that a host asked for: it may be anything, and for whoever takes it. */
const changes = {
  begun: begin,
  volumes,
  command: sql`
    UPDATE commands SET status = 'RUNNING', started_at = ${now}, deployment_id = ${deploymentId}
    WHERE id = ${ofTaken("command_id")} AND status = 'QUEUED'`,
  // Who cleans up behind a site does not get it back. A host that the site had left keeps what it still has of it.
  site: sql`
    UPDATE sites SET host_id = ${hostId}, reserved = 1,
      leave_at = CASE WHEN leaving_host_id = ${hostId} THEN NULL ELSE leave_at END,
      leaving_host_id = nullif(leaving_host_id, ${hostId})
    WHERE host_id IS NULL AND id = ${siteId} AND ${ofTaken("kind")} <> 'site.evict'`,
  database: sql`UPDATE databases SET host_id = ${hostId} WHERE host_id IS NULL AND id = ${databaseId}`,
  // What was asked for while it had no host is this host's as well. `+`: found by what it is for, not among all that waits.
  others: sql`
    UPDATE jobs SET host_id = ${hostId} WHERE +host_id IS NULL AND +status = 'QUEUED' AND ${ofTaken("kind")} <> 'site.evict'
      AND (site_id = ${siteId} OR database_id = ${databaseId})`,
  room: takeRoom(siteId, ofTaken("host_id"), ofTaken("kind")),
  offered: links.change,
};

// Plain reads, not a join: D1 answers a batch by column name, and joined tables share names.
const readsOfDeployment = {
  // With the environment of the job's version; null where that is gone.
  sites: (db: Db) =>
    db
      .select({
        ...getTableColumns(sites),
        env: sql`(SELECT entries FROM site_env_versions WHERE site_id = sites.id AND version = ${ofTaken("env_version")})`
          .mapWith(siteEnvVersions.entries)
          .as("env"),
        domains: sql`(SELECT json_group_array(name) FROM (
            SELECT name FROM domains WHERE site_id = sites.id AND verified_at IS NOT NULL ORDER BY id))`
          .mapWith((names: string) => JSON.parse(names) as string[])
          .as("domains"),
        // Kept since before the version in service, which mounts them.
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
          sql`coalesce((SELECT pack_id FROM sites WHERE id = ${siteId}), (SELECT pack_id FROM databases WHERE id = ${databaseId}),
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
 * The oldest job this host may take, its own or that of a site or database without a host which fits here best: leased
 * in the batch that places it, marks its deployment BUILDING and reads all it needs, so that no host is given more than it has.
 * Jobs of one lane run one at a time and in the order of acceptance, accounts take turns. null: nothing to do.
 */
export async function leaseJob(
  ctx: Ctx,
  hostId: Id<"host">,
  room: Room = { jobs: true, commands: false, short: true },
): Promise<Offer | null> {
  for (;;) {
    const given = {
      hostId,
      jobs: Number(room.jobs),
      commands: Number(room.commands),
      short: Number(room.short),
    };
    const taken = await takeLease(ctx, takeOldest, given);
    if (taken !== "ended") return taken;
  }
}

/** Offers a leased job once more, because its agent no longer works on it. */
export async function leaseAgain(ctx: Ctx, hostId: Id<"host">, jobId: Id<"job">): Promise<Offer | null> {
  const taken = await takeLease(ctx, takeAgain, { hostId, jobId });
  return taken === "ended" ? null : taken;
}

/** "ended": it could not be sent to any host, has failed for that reason, and others may be taken. */
async function takeLease(
  ctx: Ctx,
  taking: ReturnType<typeof take>,
  given: Record<string, string | number>,
): Promise<Offer | "ended" | null> {
  const batch = batchOf(ctx, { jobs: taking, ...changes, ...reads }, given);
  let read: ReturnType<typeof batch.read>;
  try {
    read = batch.read((await ctx.db.batch(batch.statements)) as unknown[]);
  } catch (error) {
    // What D1 answers for another reason than the row is asked again later.
    if (!(error instanceof SyntaxError)) throw error;
    const [unreadable] = await ctx.db.select().from(jobs).where(eq(jobs.mark, batch.mark));
    if (!unreadable) throw error;
    logError({ task: "lease a job", id: unreadable.id }, error);
    await endAsFailed(ctx, unreadable, { error: unfitReason.unreadable, cancelled: false, durations: null });
    return "ended";
  }
  // This host has less room now: another may be the best for what waits.
  if (read.jobs.length > 0 && read.unplaced.length > 0) ctx.hosts.wake(null);
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
 * For the batch that queues a deployment of a site with room on its own host: leases it there and then, so that it is one
 * round trip to D1 from a request to the host. `deliver` sends it; what is leased and never sent, the next hello or `remind`
 * makes up for.
 */
export function leaseAtOnce(ctx: Ctx, jobId: Id<"job">, isRollback: boolean) {
  const { statements, read } = batchOf(ctx, isRollback ? rollbackAtOnce : deploymentAtOnce, { jobId });
  return {
    statements,
    /** What the statements answered. false: the job waits. */
    deliver: (answers: readonly unknown[]): boolean => {
      const found = read(answers);
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

/** "ended": it could not be sent to any host, and has failed for that reason. */
async function offerOf(
  ctx: Ctx,
  read: Answers<Omit<typeof reads, "unplaced"> & { jobs: ReturnType<typeof take> }>,
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

  /** Or why there is none. */
  function fittingFrame(): Job | string {
    let framed: Job | null = null;
    try {
      framed = frame();
    } catch (error) {
      console.error(JSON.stringify({ level: "error", job: job?.id, kind: job?.kind, error: String(error) }));
    }
    if (!framed) return unfitReason.unreadable;
    const fits = Buffer.byteLength(JSON.stringify(framed)) <= maxFrameBytes - aroundJobBytes;
    return fits ? framed : unfitReason.tooLarge;
  }

  function frame(): Job | null {
    if (!job || !pack) return null;
    const { kind } = job;
    const [site] = read.sites;
    const [database] = read.databases;
    const [backup] = read.backups;
    if (kind === "database.backup" || kind === "database.verify" || kind === "database.restore")
      return backup
        ? backupFrameOf(ctx, {
            job: { ...job, kind },
            backup,
            pack,
            database: database ? specOf(ctx, { database, pack }) : null,
            serving: database?.status === "RUNNING",
          })
        : null;
    if (isDatabaseJob(kind))
      return database
        ? databaseFrameOf(
            ctx,
            { ...job, kind },
            { database, pack, replacedVolumes: database.replacedVolumes },
          )
        : null;
    if (!site) return null;
    return frameOf(ctx, {
      job: { ...job, kind },
      site,
      pack,
      env: site.env ?? (job.envVersion ? null : []),
      linkedEnv: linkedEnvOf(ctx, read.linked),
      deployment: read.deployments[0],
      command: read.commands[0],
      renewal: read.renewals[0],
      kept: read.kept,
      domains: site.domains,
      heldVolumes: site.heldVolumes,
    });
  }
}

type Statements = Record<string, SQL | ((db: Db) => unknown)>;
/** What the statements of a batch answer that say what they answer. */
type Answers<Of extends Statements> = {
  [Name in keyof Of as Of[Name] extends SQL ? never : Name]: Of[Name] extends (db: Db) => infer Query
    ? Awaited<Query>
    : never;
};

/** For one batch, in the order of their names: the changes, then what they left. */
function batchOf<Of extends Statements>(ctx: Ctx, named: Of, given: Record<string, string | number>) {
  const values = { ...given, mark: ctx.newMark(), now: ctx.now().getTime(), timeouts: timeoutsOf(ctx) };
  const items = Object.values(named).map((query) => ctx.hot(query as SQL, values));
  return {
    mark: values.mark,
    statements: items as [(typeof items)[number], ...typeof items],
    read: (answers: readonly unknown[]) =>
      Object.fromEntries(Object.keys(named).map((name, index) => [name, answers[index]])) as Answers<Of>,
  };
}
