import { containerName, volumeName } from "../docker/database-objects.ts";
import { isMarked } from "../databases/data.ts";
import { bringUp, takeDown } from "../databases/server.ts";
import type { Handler } from "./handler.ts";
import { leaveAccountNetwork } from "../isolation/account-network.ts";

/**
 * Nobody has used it yet: what a failure leaves, half-made files too, goes, so that the next attempt begins anew. Data of one
 * that was in use, of which the record has forgotten that, is taken up, and never goes.
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
