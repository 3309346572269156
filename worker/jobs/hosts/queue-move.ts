import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { automaticActivity } from "../../db/insert-activity.ts";
import { ofSite, queueJob } from "../insert.ts";
import { queueSiteJob } from "../sites/queue.ts";
import { idleLane } from "../../db/job-conditions.ts";

/**
 * Statements for one batch, after an UPDATE that moved the site to DEPLOYING: deploys the version in service again,
 * from the same commit or image and with its own settings, on `move_host_id`, or on the best host if that is null.
 * @param asIs the move was not requested by a user: the version keeps its environment as well
 */
export function queueMove(ctx: Ctx, siteId: SQL, { asIs = false }: { asIs?: boolean } = {}) {
  const id = ctx.newId("deployment");
  const now = ctx.now().getTime();
  const ownEnv = asIs ? sql`c.env_version` : sql`NULL`;
  return [
    ctx.statement(sql`
      INSERT INTO deployments (id, site_id, account_id, number, status, trigger, commit_sha, commit_message, run, build, env_version, created_at)
      SELECT ${id}, s.id, s.account_id, 1 + coalesce((SELECT max(number) FROM deployments WHERE site_id = s.id), 0),
        'QUEUED', 'move', c.commit_sha, c.commit_message, c.run,
        json_set(c.build, '$.imageDigest', c.image_digest),
        coalesce(${ownEnv}, (SELECT max(version) FROM site_env_versions WHERE site_id = s.id), 0), ${now}
      FROM sites s LEFT JOIN deployments c ON c.id = s.current_deployment_id
      WHERE s.id = ${siteId} AND s.status = 'DEPLOYING'
        AND ${idleLane(sql`s.id`)}`),
    queueJob(ctx, "site.deploy", {
      ...ofSite,
      hostId: sql`coalesce(s.move_host_id, s.host_id)`,
      deploymentId: sql`d.id`,
      from: sql`deployments d JOIN sites s ON s.id = d.site_id WHERE d.id = ${id}`,
    }),
  ] as const;
}

/** The same for a move that no user requested: it is recorded, and a stopped site is stopped again on its new host. */
export const queueOwnMove = (ctx: Ctx, siteId: SQL) =>
  [
    automaticActivity(ctx, "moveSite", sql`sites WHERE id = ${siteId}`),
    ...queueMove(ctx, siteId, { asIs: true }),
    queueSiteJob(ctx, "site.stop", siteId, sql`s.wanted = 'STOPPED'`),
  ] as const;
