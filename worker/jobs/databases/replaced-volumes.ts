import { sql } from "drizzle-orm";

/**
 * The volumes that restores replaced, each named by the restore that created it; null is the original volume. A
 * record restored from an earlier moment may lack the restore that created the current volume, and then lists none.
 */
export const replacedVolumes = sql`(SELECT json_group_array(volume) FROM (
    SELECT NULL AS volume FROM jobs WHERE id = databases.volume
    UNION ALL SELECT id FROM (
      SELECT earlier.id FROM jobs present JOIN jobs earlier ON earlier.database_id = present.database_id
      WHERE present.id = databases.volume AND earlier.seq < present.seq
        AND earlier.kind = 'database.restore' AND earlier.status = 'DONE'
      ORDER BY earlier.seq DESC LIMIT 99)))`
  .mapWith((volumes: string) => JSON.parse(volumes) as (string | null)[])
  .as("replaced_volumes");
