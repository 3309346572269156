import { volumeName } from "../docker/database-objects.ts";
import { bringUp } from "../databases/server.ts";
import type { Handler } from "./handler.ts";

/**
 * What is there stays there, whatever happens: it is somebody's data. Only a volume that the record itself knows as replaced goes
 * once the other is in use; one that the record lacks may be newer than the record.
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
