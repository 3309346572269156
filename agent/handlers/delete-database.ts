import { removeVolumes, takeDown } from "../databases/server.ts";
import { networkName } from "../docker/specs.ts";
import type { Handler } from "../host.ts";

/** Container, data, and the account's network when nothing uses it. */
export const deleteDatabase: Handler<"database.delete"> = async (host, { databaseId, accountId }) => {
  await takeDown(host, databaseId);
  if (host.publicAccess.set(databaseId, null)) await host.isolation.refresh();
  await removeVolumes(host, databaseId);
  await host.engine.removeNetwork(networkName(accountId));
  return {};
};
