import { and, eq, sql } from "drizzle-orm";
import type { KeptDeployment } from "../../../protocol/agent/jobs.ts";
import type { DeploymentRow } from "../../db/rows.ts";
import { deployments, sites } from "../../db/schema.ts";
import { splitLastLines } from "../../domain/last-lines.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { queueRoutes } from "../queue-routes.ts";
import { linksFollowed } from "../databases/linked-env.ts";
import { reconcileDatabases } from "../databases/reconcile.ts";
import { forgetOldBuilds } from "../deployments/forget-builds.ts";
import { hintDns } from "../dns/reconcile.ts";
import { arrive, giveUpMove } from "../hosts/arrive.ts";
import { moveSites } from "../hosts/move-sites.ts";
import { giveRoomAway } from "../hosts/placement.ts";
import { limitsFollowed } from "../queue-restart.ts";
import { deploymentIdOf, ending, siteIdOf, siteOf, type Kind } from "./kind.ts";
import { runOf } from "./run-spec.ts";
import { setStatusAfterDeployment, stopAgain } from "./site-status.ts";
import { sourceOf } from "./source.ts";

export const siteDeploy: Kind<"site.deploy"> = {
  args(ctx, material) {
    const { job, deployment } = material;
    const site = siteOf(material);
    const { rootDir, dockerfilePath, buildCommand, buildOptions } = deployment?.build ?? site;
    return {
      run: runOf(ctx, material),
      deploymentId: deploymentIdOf(job),
      source: deployment?.rollbackOf
        ? { type: "kept", deploymentId: deployment.rollbackOf, otherwise: sourceOf(ctx, material) }
        : sourceOf(ctx, material),
      rootDir,
      dockerfilePath,
      buildCommand,
      releaseCommand: site.releaseCommand,
      // Deployments from before build options have none.
      options: buildOptions ?? {},
      buildTimeoutSeconds: ctx.config.BUILD_TIMEOUT_SECONDS,
      // Not for a rollback or a move: the command has run for that version, and running it again could undo a newer
      // one's work.
      ...(deployment?.rollbackOf === null &&
        deployment.trigger !== "move" && {
          release: { command: site.releaseCommand, timeoutSeconds: ctx.config.RELEASE_TIMEOUT_SECONDS },
        }),
      rebuild: deployment?.rebuild ?? false,
      kept: material.kept.flatMap(keptOf),
      ...(deployment?.trigger === "move" && site.wanted === "STOPPED" && { parked: true }),
    };
  },

  succeeded(ctx, { job, ended }, { durations: { clone, build, start, swap }, ...done }) {
    const [id, siteId] = [deploymentIdOf(job), siteIdOf(job)];
    const now = ctx.now();
    return ending(
      {
        followed: linksFollowed(ctx, siteId, ended),
        arrived: job.hostId === null ? undefined : arrive(ctx, siteId, job.hostId, job.leasedAt, ended),
        // Names and rules that were set meanwhile were told to the host that the site has left.
        routes: queueRoutes(
          ctx,
          siteId,
          sql`s.leaving_host_id IS NOT NULL AND ${ended} AND EXISTS (SELECT 1 FROM jobs told
            WHERE told.lane = s.id || ':route' AND told.created_at >= ${job.leasedAt?.getTime() ?? 0})`,
        ),
        superseded: ctx.db
          .update(deployments)
          .set({ status: "SUPERSEDED" })
          .where(and(eq(deployments.siteId, siteId), eq(deployments.status, "LIVE"), ended)),
        live: ctx.db
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
        current: ctx.db
          .update(sites)
          .set({ currentDeploymentId: id, serving: !done.parked, updatedAt: now })
          .where(and(eq(sites.id, siteId), ended)),
        // STOPPED even if the owner has requested a start in the meantime, which is queued.
        parked: done.parked
          ? ctx.db
              .update(sites)
              .set({ status: siteEvents.stopped.to })
              .where(
                and(
                  eq(sites.id, siteId),
                  eq(sites.status, "DEPLOYING"),
                  sql`NOT EXISTS (SELECT 1 FROM deployments WHERE site_id = sites.id AND status = 'QUEUED')`,
                  ended,
                ),
              )
          : undefined,
        status: setStatusAfterDeployment(ctx, siteId, ended),
        limits: limitsFollowed(ctx, "sites", siteId, job.leasedAt, ended),
        oldBuilds: forgetOldBuilds(ctx, siteId, ended),
      },
      async ({ followed, arrived }) => {
        ctx.logs.finish(
          id,
          done.parked ? "The site is stopped: this version runs once it is started." : "Deployment is live.",
        );
        const moved = arrived?.[0][0];
        if (moved?.from) ctx.hosts.letGo(moved.from, moved.id);
        for (const hostId of moved ? [moved.from, job.hostId] : []) if (hostId) ctx.hosts.tellPeers(hostId);
        if (moved) hintDns(ctx);
        if (moved) await moveSites(ctx);
        if (followed.length > 0) await reconcileDatabases(ctx);
      },
    );
  },

  failed(ctx, { job, ended }, { error, cancelled, durations }) {
    const [id, siteId] = [deploymentIdOf(job), siteIdOf(job)];
    return ending(
      {
        deployment: ctx.db
          .update(deployments)
          .set({
            status: cancelled ? "CANCELLED" : "FAILED",
            error: cancelled ? null : error,
            cloneMs: durations?.clone,
            buildMs: durations?.build,
            startMs: durations?.start,
            swapMs: durations?.swap,
            finishedAt: ctx.now(),
          })
          .where(and(eq(deployments.id, id), ended)),
        status: setStatusAfterDeployment(ctx, siteId, ended),
        stopped: cancelled ? stopAgain(ctx, siteId, ended) : undefined,
        move: giveUpMove(ctx, siteId, job.hostId, ended),
        room: ctx.statement(giveRoomAway(sql`id = ${siteId} AND ${ended}`)),
        oldBuilds: forgetOldBuilds(ctx, siteId, ended),
      },
      // Its last lines stand above in the log.
      () =>
        ctx.logs.finish(
          id,
          cancelled ? "Deployment cancelled." : `Deployment failed: ${splitLastLines(error).said}`,
        ),
    );
  },
};

function keptOf(row: DeploymentRow): KeptDeployment[] {
  if (row.imageDigest === null) return [];
  const { id, number, commit, commitMessage, imageDigest, buildKey } = row;
  const imageId = row.imageId ?? imageDigest;
  return [{ deploymentId: id, number, commit, commitMessage, imageDigest, imageId, buildKey }];
}
