import { and, eq, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { DeploymentTrigger } from "../../../protocol/states.ts";
import type { Ctx } from "../../context.ts";
import { deployments } from "../../db/schema.ts";
import { queueTimeoutMs } from "../../domain/job-rules.ts";

/**
 * Statements for one batch, behind an UPDATE that moved the site to DEPLOYING: a waiting deployment and its job,
 * unless one waits already; the last statement answers which one waits now.
 * @param siteId an expression, so that a batch may find the site itself
 */
export function queueDeployment(ctx: Ctx, siteId: SQL, trigger: DeploymentTrigger) {
  const id = ctx.newId("deployment");
  const now = ctx.now().getTime();
  return [
    ctx.statement(sql`
      INSERT INTO deployments (id, site_id, account_id, number, status, trigger, env_version, created_at)
      SELECT ${id}, s.id, s.account_id,
        1 + coalesce((SELECT max(number) FROM deployments WHERE site_id = s.id), 0), 'QUEUED', ${trigger},
        coalesce((SELECT max(version) FROM site_env_versions WHERE site_id = s.id), 0), ${now}
      FROM sites s
      WHERE s.id = ${siteId} AND s.status = 'DEPLOYING'
        AND NOT EXISTS (SELECT 1 FROM deployments WHERE site_id = s.id AND status = 'QUEUED')`),
    ctx.statement(sql`
      INSERT INTO jobs (id, kind, status, host_id, site_id, account_id, deployment_id, deadline_at, created_at)
      SELECT ${ctx.newId("job")}, 'site.deploy', 'QUEUED', s.host_id, s.id, s.account_id, d.id, ${now + queueTimeoutMs}, ${now}
      FROM deployments d JOIN sites s ON s.id = d.site_id WHERE d.id = ${id}`),
    ctx.db
      .select({ id: deployments.id })
      .from(deployments)
      .where(and(eq(deployments.siteId, sql`${siteId}`), eq(deployments.status, "QUEUED"))),
  ] as const;
}

/** One job for a site that just moved; `guard` reads the mark the UPDATE of the same batch left. */
export const queueSiteJob = (
  ctx: Ctx,
  kind: "site.start" | "site.stop" | "site.restart" | "site.route" | "site.delete",
  siteId: Id<"site"> | SQL,
  guard: SQL,
) =>
  ctx.statement(sql`
    INSERT INTO jobs (id, kind, status, host_id, site_id, account_id, deployment_id, deadline_at, created_at)
    SELECT ${ctx.newId("job")}, ${kind}, 'QUEUED', s.host_id, s.id, s.account_id, s.current_deployment_id,
      ${ctx.now().getTime() + queueTimeoutMs}, ${ctx.now().getTime()}
    FROM sites s WHERE s.id = ${siteId} AND ${guard}`);
