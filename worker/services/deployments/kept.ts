import { sql } from "drizzle-orm";

/** Successful deployments of a site whose images stay on its host, the one in service included. */
export const keptPerSite = 5;

/**
 * Whether the host still has a row's image, for queries of `deployments`. A rule, not a mark: the agent is told by the same
 * one what to keep. A deployment under way takes a place already, as it removes the oldest image when it goes live. What was
 * made on a host that the site has left is not there; few rows come so far, as the newest are counted first.
 */
export const imageKept = sql<boolean>`(deployments.status IN ('LIVE', 'SUPERSEDED') AND ${keptPerSite} > (
  SELECT count(*) FROM deployments newer WHERE newer.site_id = deployments.site_id AND newer.number > deployments.number
    AND newer.status IN ('LIVE', 'SUPERSEDED', 'BUILDING', 'STARTING'))
  AND coalesce((SELECT host_id FROM jobs WHERE jobs.site_id = deployments.site_id AND jobs.deployment_id = deployments.id
      AND jobs.kind = 'site.deploy' ORDER BY seq DESC LIMIT 1)
    = (SELECT host_id FROM sites WHERE sites.id = deployments.site_id), 1))`;
