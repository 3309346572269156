import { bringUp, removeVolumes, takeDown } from "../databases/server.ts";
import { networkName } from "../docker/specs.ts";
import type { Handler } from "../host.ts";

/** Nobody has used it yet: what a failure leaves, half-made files too, goes, so that the next attempt begins anew. */
export const provisionDatabase: Handler<"database.provision"> = async (host, { database }, job) => {
  try {
    await host.buildRoom.demandDisk();
    return await bringUp(host, database, job.signal);
  } catch (error) {
    await takeDown(host, database.databaseId);
    await removeVolumes(host, database.databaseId);
    await host.engine.removeNetwork(networkName(database.accountId));
    throw error;
  }
};
