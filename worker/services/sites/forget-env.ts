import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { oldestKeptNumber } from "../../jobs/deployments/kept.ts";

/** What a site writes is masked by as many: an image may have been built with any of them. */
export const keptEnvVersions = 20;

/**
 * A statement for the batch that adds a version: older ones go but those of deployments that wait, run or may be brought
 * back, and of what a host works on.
 */
export const forgetOldEnv = (ctx: Ctx, siteId: Id<"site">) =>
  ctx.statement(sql`
    DELETE FROM site_env_versions WHERE site_id = ${siteId}
      AND version <= (SELECT max(version) FROM site_env_versions WHERE site_id = ${siteId}) - ${keptEnvVersions}
      AND version NOT IN (SELECT env_version FROM deployments WHERE site_id = ${siteId} AND (
        status IN ('QUEUED', 'BUILDING', 'STARTING')
        OR status IN ('LIVE', 'SUPERSEDED') AND number >= ${oldestKeptNumber(sql`${siteId}`)}))
      AND version NOT IN (SELECT env_version FROM jobs
        WHERE site_id = ${siteId} AND status = 'LEASED' AND env_version IS NOT NULL)`);
