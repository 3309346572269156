import { bringUp, removeVolumes, takeDown } from "../databases/server.ts";
import type { Handler } from "../host.ts";
import { leaveAccountNetwork } from "../isolation/account-network.ts";

/** Nobody has used it yet: what a failure leaves, half-made files too, goes, so that the next attempt begins anew. */
export const provisionDatabase: Handler<"database.provision"> = async (host, { database }, job) => {
  try {
    await host.buildRoom.demandDisk();
    return await bringUp(host, database, job.signal);
  } catch (error) {
    await takeDown(host, database.databaseId);
    await removeVolumes(host, database.databaseId);
    await leaveAccountNetwork(host, database.accountId);
    throw error;
  }
};
