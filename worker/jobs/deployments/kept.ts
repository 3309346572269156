import { sql, type SQL } from "drizzle-orm";

/**
 * The number of the oldest deployment of a site that a rollback may target. A deployment under way counts already,
 * because going live removes the oldest image; a move does not, because its version has an image. The partial index
 * keeps this cheap for long histories. No site keeps more than ten.
 */
export const oldestKeptNumber = (siteId: SQL) => sql`coalesce((
  SELECT placed.number FROM (
    SELECT number, row_number() OVER (ORDER BY number DESC) AS place FROM (
      SELECT newest.number FROM deployments newest
      WHERE newest.site_id = ${siteId} AND newest.status IN ('LIVE', 'SUPERSEDED', 'BUILDING', 'STARTING')
        AND newest."trigger" <> 'move'
      ORDER BY newest.number DESC LIMIT 10)) placed
  WHERE placed.place = (SELECT kept_images FROM sites WHERE sites.id = ${siteId})), 0)`;

/**
 * Whether a rollback may target a row of `deployments`. If the host has no image of it, it is built again as it was. One that
 * was given up does not come back when the site keeps more again.
 */
export const mayComeBack = sql<boolean>`(deployments.status IN ('LIVE', 'SUPERSEDED')
  AND deployments.build IS NOT NULL AND deployments.number >= ${oldestKeptNumber(sql`deployments.site_id`)})`;

/**
 * Whether the host still has the image of a row of `deployments`. This is a rule, not a flag: the agent keeps images
 * by the same rule. An image built on a host that the site left is gone, even after the site returns.
 */
export const imageKept = sql<boolean>`(${mayComeBack}
  AND (SELECT host_id IS NOT NULL AND host_id = coalesce((SELECT host_id FROM jobs
      WHERE jobs.deployment_id = deployments.id AND jobs.kind = 'site.deploy' ORDER BY seq DESC LIMIT 1), host_id)
    FROM sites WHERE sites.id = deployments.site_id)
  AND NOT EXISTS (SELECT 1 FROM jobs evicted WHERE evicted.site_id = deployments.site_id AND evicted.kind = 'site.evict'
    AND evicted.attempt > 0 AND evicted.host_id = (SELECT host_id FROM sites WHERE sites.id = deployments.site_id)
    AND evicted.seq > (SELECT max(seq) FROM jobs WHERE jobs.deployment_id = deployments.id AND jobs.kind = 'site.deploy')))`;
