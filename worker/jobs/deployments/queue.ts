import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { DeploymentTrigger } from "../../../protocol/states.ts";
import type { Ctx, Db } from "../../ctx.ts";
import { hot } from "../../db/batch.ts";
import { param } from "../../db/param.ts";
import { deployments } from "../../db/schema.ts";
import { queueTimeoutMs } from "../../domain/job-rules.ts";
import { insertJob, ofSite } from "../insert.ts";

type What = {
  trigger: DeploymentTrigger;
  rebuild?: boolean | undefined;
  rollbackOf?: Id<"deployment"> | undefined;
  /** A branch, a tag or a commit to deploy instead of the site's branch. */
  ref?: string | undefined;
  /** false: a rollback with the newest environment. */
  withEnv?: boolean | undefined;
  jobId?: Id<"job">;
  /** Values of the placeholders in `siteId`. */
  given?: Record<string, unknown>;
};

/**
 * Statements for one batch, after an UPDATE that moved the site to DEPLOYING: a waiting deployment and its job. It
 * joins a deployment that already waits, or replaces it if exactly one of the two is a rollback or their refs differ.
 * A waiting move is joined in any case, because it knows its host. `replaced` returns the replaced one, `joined` or
 * `added` the one that waits now.
 * @param siteId an expression, so that a batch may find the site itself, or none
 */
export function deploymentQueue(siteId: SQL) {
  const [id, jobId, now, deadline] = [param("id"), param("jobId"), param("now"), param("deadline")];
  const [target, trigger, rebuild] = [param("target"), param("trigger"), param("rebuild")];
  const [ref, withEnv, keyId] = [param("ref"), param("withEnv"), param("keyId")];
  const newestEnv = sql`coalesce((SELECT max(version) FROM site_env_versions WHERE site_id = ${siteId}), 0)`;
  const waiting = sql`site_id = ${siteId} AND status = 'QUEUED'`;
  // By its host: a move that was joined has another trigger.
  const moves = sql`EXISTS (SELECT 1 FROM jobs j JOIN sites s ON s.id = j.site_id
    WHERE j.deployment_id = deployments.id AND j.host_id = s.move_host_id)`;
  const makeWay = (db: Db) =>
    db
      .update(deployments)
      .set({ status: "CANCELLED", finishedAt: sql`${now}` })
      .where(sql`${waiting} AND (rollback_of IS NOT ${target} OR (ref IS NOT ${ref} AND NOT ${moves}))`)
      .returning({ id: deployments.id });
  const cancelJobs = sql`
    UPDATE jobs SET status = 'CANCELLED', finished_at = ${now}
    WHERE ${waiting} AND kind = 'site.deploy'
      AND (SELECT status FROM deployments WHERE id = jobs.deployment_id) = 'CANCELLED'`;
  // Joining refreshes the environment and the source, also of a waiting move. A rollback keeps its own.
  const join = sql`
    UPDATE deployments SET env_version = iif(rollback_of IS NULL OR NOT ${withEnv}, ${newestEnv},
        coalesce((SELECT t.env_version FROM deployments t WHERE t.id = deployments.rollback_of), env_version)),
      rebuild = max(rebuild, ${rebuild}), ref = ${ref},
      trigger = CASE trigger WHEN 'move' THEN ${trigger} ELSE trigger END,
      key_id = CASE trigger WHEN 'move' THEN ${keyId} ELSE key_id END,
      commit_sha = iif(rollback_of IS NULL, NULL, commit_sha),
      commit_message = iif(rollback_of IS NULL, NULL, commit_message)
    WHERE ${waiting}
    RETURNING id`;
  const add = sql`
    INSERT INTO deployments (id, site_id, account_id, number, status, trigger, key_id, env_version, rebuild, rollback_of,
      ref, commit_sha, commit_message, image_digest, image_id, build_key, run, build, created_at)
    SELECT ${id}, s.id, s.account_id, 1 + coalesce((SELECT max(number) FROM deployments WHERE site_id = s.id), 0),
      'QUEUED', ${trigger}, ${keyId}, coalesce(iif(${withEnv}, t.env_version, NULL), ${newestEnv}), ${rebuild}, t.id,
      ${ref}, t.commit_sha, t.commit_message, t.image_digest, t.image_id, t.build_key, t.run, t.build, ${now}
    FROM sites s LEFT JOIN deployments t ON t.id = ${target} AND t.site_id = s.id
    WHERE s.id = ${siteId} AND s.status = 'DEPLOYING'
      AND NOT EXISTS (SELECT 1 FROM deployments WHERE site_id = s.id AND status = 'QUEUED')
    RETURNING id`;
  const addJob = insertJob(
    "site.deploy",
    { id: jobId, now, deadline },
    {
      ...ofSite,
      deploymentId: sql`d.id`,
      from: sql`deployments d JOIN sites s ON s.id = d.site_id WHERE d.id = ${id}`,
    },
  );
  const statements = {
    replaced: makeWay,
    replacedJobs: cancelJobs,
    joined: join,
    added: add,
    addedJob: addJob,
  };

  return (ctx: Ctx, what: What) => {
    const nowMs = ctx.now().getTime();
    const values = {
      ...what.given,
      id: ctx.newId("deployment"),
      jobId: what.jobId ?? ctx.newId("job"),
      now: nowMs,
      deadline: nowMs + queueTimeoutMs,
      trigger: what.trigger,
      keyId: isAskedFor(what.trigger) && ctx.actor.type === "key" ? ctx.actor.keyId : null,
      rebuild: Number(what.rebuild ?? false),
      target: what.rollbackOf ?? null,
      ref: what.ref ?? null,
      withEnv: Number(what.withEnv ?? true),
    };
    return hot(ctx, statements, values);
  };
}

/** Whoever pays an invoice or pushes asks for no deployment. */
const isAskedFor = (trigger: DeploymentTrigger): boolean => trigger === "api" || trigger === "rollback";
