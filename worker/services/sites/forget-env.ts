import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { oldestKeptNumber } from "../../jobs/deployments/kept.ts";
import { openDeployment } from "../../db/job-conditions.ts";

/** A site's output is masked with this many versions, since the image may have been built with any of them. */
export const keptEnvVersions = 20;

/**
 * A statement for the batch that adds a version. It deletes older ones, except those of queued or running deployments,
 * of rollback targets, and of jobs in progress.
 */
export const forgetOldEnv = (ctx: Ctx, siteId: Id<"site">) =>
  ctx.statement(sql`
    DELETE FROM site_env_versions WHERE site_id = ${siteId}
      AND version <= (SELECT max(version) FROM site_env_versions WHERE site_id = ${siteId}) - ${keptEnvVersions}
      AND version NOT IN (SELECT env_version FROM deployments WHERE site_id = ${siteId} AND (
        ${openDeployment}
        OR status IN ('LIVE', 'SUPERSEDED') AND number >= ${oldestKeptNumber(sql`${siteId}`)}))
      AND version NOT IN (SELECT env_version FROM jobs
        WHERE site_id = ${siteId} AND status = 'LEASED' AND env_version IS NOT NULL)`);
