import { sql } from "drizzle-orm";

/** Successful deployments of a site whose images stay on its host, the one in service included. */
export const keptPerSite = 5;

/**
 * Whether the host still has a row's image, for queries of `deployments`. A rule, not a mark: the agent is told by the same
 * one what to keep. A deployment under way takes a place already, as it removes the oldest image when it goes live.
 */
export const imageKept = sql<boolean>`(deployments.status IN ('LIVE', 'SUPERSEDED') AND ${keptPerSite} > (
  SELECT count(*) FROM deployments newer WHERE newer.site_id = deployments.site_id AND newer.number > deployments.number
    AND newer.status IN ('LIVE', 'SUPERSEDED', 'BUILDING', 'STARTING')))`;
