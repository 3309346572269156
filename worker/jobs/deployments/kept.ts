import { sql, type SQL } from "drizzle-orm";

/** Successful deployments of a site that a rollback may name, the one in service included: their images stay on its host. */
export const keptPerSite = 5;

/**
 * The number of the oldest deployment of a site that a rollback may name. One under way takes a place already, as it removes
 * the oldest image when it goes live; a move takes none, as it is a version that has one. Read from an index of these alone,
 * so that a long history costs nothing.
 */
export const oldestKeptNumber = (siteId: SQL) => sql`coalesce((SELECT newest.number FROM deployments newest
  WHERE newest.site_id = ${siteId} AND newest.status IN ('LIVE', 'SUPERSEDED', 'BUILDING', 'STARTING')
    AND newest."trigger" <> 'move'
  ORDER BY newest.number DESC LIMIT 1 OFFSET ${sql.raw(String(keptPerSite - 1))}), 0)`;

/** Whether a rollback may name a row, for queries of `deployments`. What its host has no image of is made again as it was made. */
export const mayComeBack = sql<boolean>`(deployments.status IN ('LIVE', 'SUPERSEDED')
  AND deployments.number >= ${oldestKeptNumber(sql`deployments.site_id`)})`;

/**
 * Whether the host still has a row's image, for queries of `deployments`. A rule, not a mark: the agent is told by the same
 * one what to keep. What was made on a host that the site has left is not there, also when it is back on it.
 */
export const imageKept = sql<boolean>`(${mayComeBack}
  AND (SELECT host_id IS NOT NULL AND host_id = coalesce((SELECT host_id FROM jobs
      WHERE jobs.deployment_id = deployments.id AND jobs.kind = 'site.deploy' ORDER BY seq DESC LIMIT 1), host_id)
    FROM sites WHERE sites.id = deployments.site_id)
  AND NOT EXISTS (SELECT 1 FROM jobs evicted WHERE evicted.site_id = deployments.site_id AND evicted.kind = 'site.evict'
    AND evicted.attempt > 0 AND evicted.host_id = (SELECT host_id FROM sites WHERE sites.id = deployments.site_id)
    AND evicted.seq > (SELECT max(seq) FROM jobs WHERE jobs.deployment_id = deployments.id AND jobs.kind = 'site.deploy')))`;
