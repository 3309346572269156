import { removeVolumes, takeDown } from "../databases/server.ts";
import type { Handler } from "./handler.ts";
import { leaveAccountNetwork } from "../isolation/account-network.ts";

/** Removes the container, the data, and the account's network if nothing else uses it. */
export const deleteDatabase: Handler<"database.delete"> = async (host, { databaseId, accountId }) => {
  await takeDown(host, databaseId);
  if (host.publicAccess.set(databaseId, null)) await host.isolation.refresh();
  await removeVolumes(host, databaseId);
  await leaveAccountNetwork(host, accountId);
  return {};
};
