import { volumeName } from "../docker/database-objects.ts";
import { bringUp } from "../databases/server.ts";
import type { Handler } from "./handler.ts";

/**
 * Never deletes data, whatever happens, except volumes that the record lists as replaced, once the current one is in
 * use. A volume missing from the record may be newer than the record.
 */
export const startDatabase: Handler<"database.start"> = async (
  host,
  { database, replacedVolumes = [] },
  job,
) => {
  const up = await bringUp(host, database, job.signal);
  for (const replaced of replacedVolumes)
    if (replaced !== (database.volume ?? null))
      await host.engine.removeVolume(volumeName(database.databaseId, replaced));
  return up;
};
