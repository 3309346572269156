import { and, eq, inArray, ne, sql, type SQL } from "drizzle-orm";
import { isDatabaseJob, isLongJob, jobResults } from "../../protocol/agent/jobs.ts";
import type { Id } from "../../protocol/ids.ts";
import type { Ctx } from "../ctx.ts";
import { commands, deployments, jobs, sites } from "../db/schema.ts";
import type { Lease } from "../domain/lease.ts";
import { siteEvents, type SiteEventName } from "../domain/site-events.ts";
import { endCommand, tellEnd } from "./commands/end.ts";
import { failBackupJob, finishBackupJob } from "./backups/finish.ts";
import { failDatabaseJob, finishDatabaseJob } from "./databases/finish.ts";
import { linksFollowed } from "./databases/linked-env.ts";
import { reconcileDatabases } from "./databases/reconcile.ts";
import { forgetOldBuilds } from "./deployments/forget-builds.ts";
import { arrive, giveUpMove } from "./hosts/arrive.ts";
import { whatIsLeft } from "./hosts/evict-left.ts";
import { moveSites } from "./hosts/move-sites.ts";
import { giveRoomAway } from "./hosts/placement.ts";
import { limitsFollowed } from "./queue-restart.ts";
import { forgetSite } from "./sites/forget.ts";
import { idleLane } from "./idle.ts";

/** Whether the lease was current. A stale report changes nothing and is acknowledged all the same. */
export type Recorded = { recorded: boolean; deploymentId: Id<"deployment"> | null };

const stale: Recorded = { recorded: false, deploymentId: null };

async function heldBy(ctx: Ctx, hostId: Id<"host">, { jobId, attempt }: Lease) {
  const [job] = await ctx.db
    .select()
    .from(jobs)
    .where(
      and(eq(jobs.id, jobId), eq(jobs.attempt, attempt), eq(jobs.hostId, hostId), eq(jobs.status, "LEASED")),
    );
  return job;
}

/** Ends the job; the mark lets the rest of the batch know that this very report ended it. */
const endJob = (
  ctx: Ctx,
  lease: Lease,
  status: "DONE" | "FAILED" | "CANCELLED",
  mark: string,
  error: string | null = null,
) =>
  ctx.db
    .update(jobs)
    .set({ status, mark, error, finishedAt: ctx.now() })
    .where(and(eq(jobs.id, lease.jobId), eq(jobs.attempt, lease.attempt), eq(jobs.status, "LEASED")))
    .returning({ id: jobs.id });

const endedBy = (mark: string): SQL =>
  sql`EXISTS (SELECT 1 FROM jobs WHERE mark = ${mark} AND status <> 'LEASED')`;

/** Moves the site as the event says, where its status allows it and this report ended the job. */
const moveSite = (ctx: Ctx, siteId: Id<"site">, event: SiteEventName, guard: SQL, serving: boolean) => {
  const { from, to } = siteEvents[event] as {
    from: readonly string[];
    to?: (typeof sites.$inferSelect)["status"];
  };
  return ctx.db
    .update(sites)
    .set({ ...(to && { status: to }), serving, updatedAt: ctx.now() })
    .where(and(eq(sites.id, siteId), sql`${sites.status} IN ${from}`, guard));
};

/** Beside the version in service, where its owner looks; what succeeds takes it away. */
const sayWhy = (ctx: Ctx, siteId: Id<"site">, error: string | null, guard: SQL) =>
  ctx.db
    .update(deployments)
    .set({ error })
    .where(
      and(sql`${deployments.id} = (SELECT current_deployment_id FROM sites WHERE id = ${siteId})`, guard),
    );

/** The site after a deployment ended: another one follows, or a version serves, or none does. */
export const statusAfterDeployment = sql`CASE
  WHEN status <> 'DEPLOYING' THEN status
  WHEN EXISTS (SELECT 1 FROM deployments WHERE site_id = sites.id AND status IN ('QUEUED', 'BUILDING', 'STARTING')) THEN 'DEPLOYING'
  WHEN serving THEN 'RUNNING'
  WHEN wanted = 'STOPPED' AND current_deployment_id IS NOT NULL THEN 'STOPPED'
  ELSE 'FAILED' END`;

/** What a stopped site was to run after all is taken back. */
const stopAgain = (ctx: Ctx, siteId: Id<"site">, guard: SQL) =>
  ctx.db
    .update(sites)
    .set({ status: "STOPPED", wanted: "STOPPED" })
    .where(
      and(
        eq(sites.id, siteId),
        eq(sites.status, "FAILED"),
        sql`EXISTS (SELECT 1 FROM deployments WHERE id = current_deployment_id AND error IS NULL)`,
        idleLane(sites.id),
        guard,
      ),
    );

/** The host reports success. @throws ZodError when the result is not of the job's kind */
export async function finishJob(
  ctx: Ctx,
  hostId: Id<"host">,
  lease: Lease,
  result: unknown,
): Promise<Recorded> {
  const job = await heldBy(ctx, hostId, lease);
  if (!job) return stale;
  const mark = ctx.newMark();
  const ended = endedBy(mark);
  const end = endJob(ctx, lease, "DONE", mark);
  const now = ctx.now();
  switch (job.kind) {
    case "database.provision":
    case "database.start":
    case "database.restart":
    case "database.stop":
    case "database.rotate":
    case "database.expose":
    case "database.delete":
      await finishDatabaseJob(ctx, { ...job, kind: job.kind, databaseId: requireDatabase(job) }, result, {
        end,
        ended,
      });
      if (job.kind === "database.delete") ctx.hosts.letGo(hostId, requireDatabase(job));
      return { recorded: true, deploymentId: null };
    case "database.backup":
    case "database.verify":
    case "database.restore":
      await finishBackupJob(ctx, { ...job, kind: job.kind }, result, { end, ended });
      return { recorded: true, deploymentId: null };
    case "site.deploy": {
      const done = jobResults["site.deploy"].parse(result);
      const id = requireDeployment(job);
      const { clone, build, start, swap } = done.durations;
      const [, followed, [arrived]] = await ctx.db.batch([
        end,
        linksFollowed(ctx, requireSite(job), ended),
        ...arrive(ctx, requireSite(job), hostId, ended),
        ctx.db
          .update(deployments)
          .set({ status: "SUPERSEDED" })
          .where(and(eq(deployments.siteId, requireSite(job)), eq(deployments.status, "LIVE"), ended)),
        ctx.db
          .update(deployments)
          .set({
            status: "LIVE",
            commit: done.commit,
            commitMessage: done.commitMessage,
            imageDigest: done.imageDigest,
            imageId: done.imageId,
            buildKey: done.buildKey,
            cloneMs: clone,
            buildMs: build,
            startMs: start,
            swapMs: swap,
            finishedAt: now,
          })
          .where(and(eq(deployments.id, id), ended)),
        ctx.db
          .update(sites)
          .set({ currentDeploymentId: id, serving: !done.parked, updatedAt: now })
          .where(and(eq(sites.id, requireSite(job)), ended)),
        // Also where its owner has asked for its start meanwhile, which waits.
        ...(done.parked
          ? [
              ctx.db
                .update(sites)
                .set({ status: siteEvents.stopped.to })
                .where(
                  and(
                    eq(sites.id, requireSite(job)),
                    eq(sites.status, "DEPLOYING"),
                    sql`NOT EXISTS (SELECT 1 FROM deployments WHERE site_id = sites.id AND status = 'QUEUED')`,
                    ended,
                  ),
                ),
            ]
          : []),
        ctx.db
          .update(sites)
          .set({ status: statusAfterDeployment })
          .where(and(eq(sites.id, requireSite(job)), ended)),
        limitsFollowed(ctx, "sites", requireSite(job), job.leasedAt, ended),
        forgetOldBuilds(ctx, requireSite(job), ended),
      ]);
      ctx.logs.finish(
        id,
        done.parked ? "The site is stopped: this runs once it is started." : "Deployment is live.",
      );
      if (arrived?.from) ctx.hosts.letGo(arrived.from, arrived.id);
      if (arrived) await moveSites(ctx);
      if (followed.length > 0) await reconcileDatabases(ctx);
      return { recorded: true, deploymentId: id };
    }
    case "site.start":
    case "site.restart": {
      const [, followed] = await ctx.db.batch([
        end,
        linksFollowed(ctx, requireSite(job), ended),
        // With the environment it took, and why it once did not run is over.
        ctx.db
          .update(deployments)
          .set({ envVersion: sql`coalesce(${job.envVersion}, env_version)`, error: null })
          .where(and(eq(deployments.id, requireDeployment(job)), ended)),
        moveSite(ctx, requireSite(job), "started", ended, true),
        // Back from suspension.
        ctx.db
          .update(sites)
          .set({ serving: true })
          .where(and(eq(sites.id, requireSite(job)), eq(sites.status, "DEPLOYING"), ended)),
        ctx.db
          .update(sites)
          .set({ status: statusAfterDeployment })
          .where(and(eq(sites.id, requireSite(job)), ended)),
        limitsFollowed(ctx, "sites", requireSite(job), job.leasedAt, ended),
      ]);
      if (followed.length > 0) await reconcileDatabases(ctx);
      return { recorded: true, deploymentId: null };
    }
    case "site.stop":
      await ctx.db.batch([
        end,
        ctx.db
          .update(sites)
          .set({ serving: false })
          .where(and(eq(sites.id, requireSite(job)), ended)),
        // Of one that was suspended, why it did not run stays.
        sayWhy(
          ctx,
          requireSite(job),
          null,
          sql`${ended} AND (SELECT status FROM sites WHERE id = ${requireSite(job)}) IN ('RUNNING', 'DEPLOYING')`,
        ),
        // What was asked for behind it may be cancelled by now: then nothing is to run.
        ctx.statement(sql`
          UPDATE sites SET wanted = 'STOPPED' WHERE id = ${requireSite(job)} AND status IN ${siteEvents.stopped.from} AND ${ended}
            AND NOT EXISTS (SELECT 1 FROM jobs WHERE lane = ${requireSite(job)} AND status = 'QUEUED'
              AND kind IN ('site.deploy', 'site.start', 'site.restart'))`),
        moveSite(ctx, requireSite(job), "stopped", sql`${ended} AND ${sites.wanted} = 'STOPPED'`, false),
      ]);
      return { recorded: true, deploymentId: null };
    case "site.route":
      await end;
      return { recorded: true, deploymentId: null };
    case "site.evict":
      await ctx.db.batch([
        end,
        ctx.statement(sql`
          UPDATE sites SET ${whatIsLeft(hostId)}
          WHERE id = ${requireSite(job)} AND leaving_host_id = ${hostId} AND ${ended}`),
      ]);
      return { recorded: true, deploymentId: null };
    case "site.command": {
      const outcome = jobResults["site.command"].parse(result);
      const status = outcome.error === null ? "SUCCEEDED" : "FAILED";
      const [[hit]] = await ctx.db.batch([end, endCommand(ctx, job, { ...outcome, status }, ended)]);
      if (hit) tellEnd(ctx, job, { ...outcome, status });
      return { recorded: true, deploymentId: null };
    }
    case "site.delete": {
      const [ofDeployments, ofCommands] = await ctx.db.batch([
        ctx.db
          .select({ id: deployments.id })
          .from(deployments)
          .where(eq(deployments.siteId, requireSite(job))),
        ctx.db
          .select({ id: commands.id })
          .from(commands)
          .where(eq(commands.siteId, requireSite(job))),
      ]);
      // Not before it is gone from the host it moved away from: the reaper asks again.
      const left = sql`(SELECT leaving_host_id FROM sites WHERE id = ${requireSite(job)}) IS NULL`;
      await ctx.db.batch([end, ...forgetSite(ctx, requireSite(job), sql`${ended} AND ${left}`)]);
      for (const { id } of [...ofDeployments, ...ofCommands]) ctx.logs.remove(id);
      ctx.hosts.letGo(hostId, requireSite(job));
      return { recorded: true, deploymentId: null };
    }
  }
}

export type Failure = {
  error: string;
  cancelled: boolean;
  durations: { clone: number | null; build: number | null; start: number | null; swap: number | null } | null;
};

/** The host reports failure: an older version goes on serving, and the site says so. */
export async function failJob(
  ctx: Ctx,
  hostId: Id<"host">,
  lease: Lease,
  failure: Failure,
): Promise<Recorded> {
  const job = await heldBy(ctx, hostId, lease);
  return job ? endAsFailed(ctx, job, failure) : stale;
}

/** Also the reaper's way: ends a leased or waiting job with an honest reason. */
export async function endAsFailed(
  ctx: Ctx,
  job: typeof jobs.$inferSelect,
  failure: Failure,
): Promise<Recorded> {
  const mark = ctx.newMark();
  const ended = endedBy(mark);
  const now = ctx.now();
  const status = failure.cancelled ? "CANCELLED" : "FAILED";
  const end = ctx.db
    .update(jobs)
    .set({ status, mark, error: failure.error, finishedAt: now })
    .where(and(eq(jobs.id, job.id), eq(jobs.attempt, job.attempt), eq(jobs.status, job.status)))
    .returning({ id: jobs.id });
  if (!saysWhatItIsAbout(job)) return endAlone();
  switch (job.kind) {
    case "database.provision":
    case "database.start":
    case "database.restart":
    case "database.stop":
    case "database.rotate":
    case "database.expose":
    case "database.delete":
      await failDatabaseJob(ctx, { kind: job.kind, databaseId: requireDatabase(job) }, failure.error, {
        end,
        ended,
      });
      break;
    case "database.backup":
    case "database.verify":
    case "database.restore":
      await failBackupJob(ctx, { ...job, kind: job.kind }, failure.error, { end, ended });
      break;
    case "site.deploy": {
      const id = requireDeployment(job);
      const [[hit]] = await ctx.db.batch([
        end,
        ctx.db
          .update(deployments)
          .set({
            status,
            error: failure.cancelled ? null : failure.error,
            cloneMs: failure.durations?.clone,
            buildMs: failure.durations?.build,
            startMs: failure.durations?.start,
            swapMs: failure.durations?.swap,
            finishedAt: now,
          })
          .where(and(eq(deployments.id, id), ended)),
        ctx.db
          .update(sites)
          .set({ status: statusAfterDeployment, updatedAt: now })
          .where(and(eq(sites.id, requireSite(job)), ended)),
        ...(failure.cancelled ? [stopAgain(ctx, requireSite(job), ended)] : []),
        giveUpMove(ctx, requireSite(job), job.hostId, ended),
        ctx.statement(giveRoomAway(sql`id = ${requireSite(job)} AND ${ended}`)),
        forgetOldBuilds(ctx, requireSite(job), ended),
      ]);
      if (!hit) return stale;
      ctx.logs.finish(
        id,
        failure.cancelled ? "Deployment cancelled." : `Deployment failed: ${failure.error}`,
      );
      return { recorded: true, deploymentId: id };
    }
    case "site.command": {
      const outcome = { status, exitCode: null, error: failure.cancelled ? null : failure.error } as const;
      const [[hit]] = await ctx.db.batch([end, endCommand(ctx, job, outcome, ended)]);
      if (!hit) return stale;
      tellEnd(ctx, job, outcome);
      break;
    }
    case "site.start":
      await ctx.db.batch([
        end,
        moveSite(ctx, requireSite(job), "startFailed", ended, false),
        ctx.statement(giveRoomAway(sql`id = ${requireSite(job)} AND ${ended}`)),
        sayWhy(ctx, requireSite(job), `Not started: ${failure.error}`, ended),
      ]);
      break;
    case "site.stop":
      // The containers may still run: say so, and let the owner ask again.
      await ctx.db.batch([
        end,
        ctx.db
          .update(sites)
          .set({ wanted: "RUNNING" })
          .where(and(eq(sites.id, requireSite(job)), ne(sites.status, "SUSPENDED"), ended)),
        sayWhy(ctx, requireSite(job), `Not stopped: ${failure.error}`, ended),
      ]);
      break;
    case "site.restart":
      await ctx.db.batch([end, sayWhy(ctx, requireSite(job), `Not restarted: ${failure.error}`, ended)]);
      break;
    case "site.route":
    case "site.evict":
    case "site.delete":
      await end;
      break;
    // Of another version of this Worker.
    default:
      return endAlone();
  }
  return { recorded: true, deploymentId: null };

  /** Nobody knows what it was for: with it ends the deployment that no job is about any more. */
  async function endAlone(): Promise<Recorded> {
    const [, orphans] = await ctx.db.batch([
      end,
      ctx.db
        .update(deployments)
        .set({ status: "FAILED", error: failure.error, finishedAt: now })
        .where(
          and(
            sql`${deployments.siteId} = ${job.siteId}`,
            inArray(deployments.status, ["QUEUED", "BUILDING", "STARTING"]),
            sql`NOT EXISTS (SELECT 1 FROM jobs j WHERE j.deployment_id = ${deployments.id} AND j.status IN ('QUEUED', 'LEASED'))`,
            ended,
          ),
        )
        .returning({ id: deployments.id }),
      ctx.db
        .update(sites)
        .set({ status: statusAfterDeployment, updatedAt: now })
        .where(and(sql`${sites.id} = ${job.siteId}`, ended)),
    ]);
    for (const { id } of orphans) ctx.logs.finish(id, `Deployment failed: ${failure.error}`);
    return { recorded: true, deploymentId: null };
  }
}

function saysWhatItIsAbout(job: typeof jobs.$inferSelect): boolean {
  if (job.kind === "site.deploy") return job.siteId !== null && job.deploymentId !== null;
  if (job.kind === "site.command") return job.commandId !== null;
  if (isLongJob(job.kind)) return job.backupId !== null;
  return (isDatabaseJob(job.kind) ? job.databaseId : job.siteId) !== null;
}

function requireDeployment(job: typeof jobs.$inferSelect): Id<"deployment"> {
  if (!job.deploymentId) throw new Error(`Job ${job.id} names no deployment`);
  return job.deploymentId;
}

function requireSite(job: typeof jobs.$inferSelect): Id<"site"> {
  if (!job.siteId) throw new Error(`Job ${job.id} (${job.kind}) names no site`);
  return job.siteId;
}

function requireDatabase(job: typeof jobs.$inferSelect): Id<"database"> {
  if (!job.databaseId) throw new Error(`Job ${job.id} (${job.kind}) names no database`);
  return job.databaseId;
}
