import { containerName, volumeName } from "../docker/database-objects.ts";
import { isMarked } from "../databases/data.ts";
import { bringUp, takeDown } from "../databases/server.ts";
import type { Handler } from "./handler.ts";
import { leaveAccountNetwork } from "../isolation/account-network.ts";

/**
 * The database is unused, so a failure removes everything, including partial files, and the next attempt starts
 * afresh. Data that was in use, which a restored record may have forgotten, is adopted and never removed.
 */
export const provisionDatabase: Handler<"database.provision"> = async (host, { database }, job) => {
  try {
    await host.buildRoom.demandDisk();
    return await bringUp(host, database, job.signal, true);
  } catch (error) {
    const found = await host.engine.inspectContainer(containerName(database.databaseId));
    const isNew = found !== null && !(await isMarked(host, found.id, database));
    await takeDown(host, database.databaseId);
    if (isNew) await host.engine.removeVolume(volumeName(database.databaseId, database.volume));
    await leaveAccountNetwork(host, database.accountId);
    throw error;
  }
};
