import { and, asc, desc, eq, isNotNull, isNull, sql } from "drizzle-orm";
import { isDatabaseJob, isLongJob, jobKinds, type Job } from "../../../protocol/agent/jobs.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import {
  backups,
  databases,
  deployments,
  domains,
  jobs,
  packs,
  siteEnvVersions,
  sites,
} from "../../db/schema.ts";
import { jobTimeoutMs } from "../../domain/job-rules.ts";
import { backupFrameOf } from "../backups/frame.ts";
import { databaseFrameOf, specOf } from "../databases/frame.ts";
import { linkedEnvOf, offerLinks } from "../databases/linked-env.ts";
import { imageKept } from "../deployments/kept.ts";
import { mayPlace } from "../hosts/placement.ts";
import { frameOf } from "./frame.ts";

export type Offer = { job: Job; attempt: number; timeoutMs: number; deploymentId: Id<"deployment"> | null };

const longKinds = sql.raw(
  `(${jobKinds
    .filter(isLongJob)
    .map((kind) => `'${kind}'`)
    .join(", ")})`,
);

const timeoutOfKind = sql.raw(
  `CASE kind ${Object.entries(jobTimeoutMs)
    .map(([kind, ms]) => `WHEN '${kind}' THEN ${ms}`)
    .join(" ")} END`,
);

/**
 * The oldest job this host may take, its own or that of a site or database without a host which fits here best: leased in
 * the batch that places it, marks its deployment BUILDING and reads all it needs, so that no host is given more than it has.
 * Jobs of one lane run one at a time and in the order of acceptance. null: nothing to do.
 */
export async function leaseJob(ctx: Ctx, hostId: Id<"host">): Promise<Offer | null> {
  return takeLease(
    ctx,
    hostId,
    sql`id = (
    SELECT j.id FROM jobs j
    WHERE j.status = 'QUEUED' AND (j.host_id = ${hostId}
      OR j.host_id IS NULL AND (j.kind IN ('site.delete', 'database.delete', 'database.verify') OR ${mayPlace(hostId, ctx.now().getTime())}))
      -- A restore is waited for; of what nobody waits for, one at a time.
      AND NOT (j.kind IN ('database.backup', 'database.verify') AND EXISTS (
        SELECT 1 FROM jobs o WHERE o.host_id = ${hostId} AND o.status = 'LEASED' AND o.kind IN ${longKinds}))
      AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.lane = j.lane AND o.status IN ('QUEUED', 'LEASED') AND o.seq < j.seq)
    ORDER BY j.seq LIMIT 1)`,
  );
}

/** Offers a leased job once more, because its agent no longer works on it. */
export const leaseAgain = (ctx: Ctx, hostId: Id<"host">, jobId: Id<"job">): Promise<Offer | null> =>
  takeLease(ctx, hostId, sql`id = ${jobId} AND status = 'LEASED' AND host_id = ${hostId}`);

async function takeLease(ctx: Ctx, hostId: Id<"host">, which: ReturnType<typeof sql>): Promise<Offer | null> {
  const mark = ctx.newMark();
  const now = ctx.now().getTime();
  const ofTaken = (column: string) => sql`(SELECT ${sql.raw(column)} FROM jobs WHERE mark = ${mark})`;
  // Plain reads, not a join: D1 answers a batch by column name, and joined tables share names.
  const [
    ,
    ,
    ,
    ,
    ,
    ,
    [job],
    [site],
    [database],
    [pack],
    [env],
    [deployment],
    kept,
    names,
    unplaced,
    ,
    linked,
    links,
    [backup],
  ] = await ctx.db.batch([
    ctx.statement(sql`
      UPDATE jobs SET status = 'LEASED', host_id = ${hostId}, attempt = attempt + 1, leased_at = ${now},
        deadline_at = ${now} + ${timeoutOfKind}, mark = ${mark} WHERE ${which}`),
    ctx.statement(sql`
      UPDATE jobs SET
        deployment_id = CASE WHEN kind IN ('site.start', 'site.restart')
          THEN (SELECT current_deployment_id FROM sites WHERE id = jobs.site_id) ELSE deployment_id END,
        -- A deployment runs with the environment it was asked for with, a start or restart with the newest.
        env_version = CASE WHEN kind = 'site.deploy' THEN (SELECT env_version FROM deployments WHERE id = jobs.deployment_id)
          ELSE coalesce((SELECT max(version) FROM site_env_versions WHERE site_id = jobs.site_id), 0) END
      WHERE mark = ${mark}`),
    ctx.statement(sql`
      UPDATE deployments SET status = 'BUILDING', started_at = coalesce(started_at, ${now}),
        run = CASE WHEN rollback_of IS NOT NULL AND run IS NOT NULL THEN run ELSE
          (SELECT json_object('port', port, 'startCommand', start_command, 'healthCheckPath', health_check_path)
            FROM sites WHERE id = deployments.site_id) END
      WHERE id = (SELECT deployment_id FROM jobs WHERE mark = ${mark} AND kind = 'site.deploy')`),
    ctx.statement(
      sql`UPDATE sites SET host_id = ${hostId} WHERE host_id IS NULL AND id = ${ofTaken("site_id")}`,
    ),
    ctx.statement(
      sql`UPDATE databases SET host_id = ${hostId} WHERE host_id IS NULL AND id = ${ofTaken("database_id")}`,
    ),
    // What was asked for while it had no host is this host's as well.
    ctx.statement(
      sql`UPDATE jobs SET host_id = ${hostId} WHERE host_id IS NULL AND status = 'QUEUED'
        AND (site_id = ${ofTaken("site_id")} OR database_id = ${ofTaken("database_id")})`,
    ),
    ctx.db.select().from(jobs).where(eq(jobs.mark, mark)),
    ctx.db
      .select()
      .from(sites)
      .where(eq(sites.id, ofTaken("site_id"))),
    ctx.db
      .select()
      .from(databases)
      .where(eq(databases.id, ofTaken("database_id"))),
    ctx.db
      .select()
      .from(packs)
      .where(
        eq(
          packs.id,
          sql`coalesce((SELECT pack_id FROM sites WHERE id = ${ofTaken("site_id")}),
            (SELECT pack_id FROM databases WHERE id = ${ofTaken("database_id")}),
            (SELECT pack_id FROM backups WHERE id = ${ofTaken("backup_id")}))`,
        ),
      ),
    ctx.db
      .select()
      .from(siteEnvVersions)
      .where(
        and(
          eq(siteEnvVersions.siteId, ofTaken("site_id")),
          eq(siteEnvVersions.version, ofTaken("env_version")),
        ),
      ),
    ctx.db
      .select()
      .from(deployments)
      .where(eq(deployments.id, ofTaken("deployment_id"))),
    ctx.db
      .select()
      .from(deployments)
      .where(
        and(
          eq(deployments.siteId, ofTaken("site_id")),
          sql`(${imageKept} OR ${deployments.id} = (SELECT rollback_of FROM deployments WHERE id = ${ofTaken("deployment_id")}))`,
        ),
      )
      .orderBy(desc(deployments.number)),
    ctx.db
      .select({ name: domains.name })
      .from(domains)
      .where(and(eq(domains.siteId, ofTaken("site_id")), isNotNull(domains.verifiedAt)))
      .orderBy(asc(domains.id)),
    ctx.db
      .select({ id: jobs.id })
      .from(jobs)
      .where(and(isNull(jobs.hostId), eq(jobs.status, "QUEUED"), isNotNull(ofTaken("lane"))))
      .limit(1),
    ...offerLinks(ctx, ofTaken("site_id"), ofTaken("kind")),
    ctx.db
      .select()
      .from(backups)
      .where(eq(backups.id, ofTaken("backup_id"))),
  ]);
  if (!job || !pack) return null;
  // This host has less room now: another may be the best for what waits.
  if (unplaced.length > 0) ctx.hosts.wake(null);
  const frame = (): Job | null => {
    const { kind } = job;
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
      return database ? databaseFrameOf(ctx, { ...job, kind }, { database, pack }) : null;
    if (!site) return null;
    return frameOf(ctx, {
      job: { ...job, kind },
      site,
      pack,
      env: env?.entries ?? [],
      linkedEnv: linkedEnvOf(ctx, linked, links),
      deployment,
      kept,
      domains: names.map(({ name }) => name),
    });
  };
  const framed = frame();
  return (
    framed && {
      job: framed,
      attempt: job.attempt,
      timeoutMs: jobTimeoutMs[job.kind],
      deploymentId: job.kind === "site.deploy" ? job.deploymentId : null,
    }
  );
}
