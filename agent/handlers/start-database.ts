import { bringUp, removeOtherVolumes } from "../databases/server.ts";
import type { Handler } from "./handler.ts";

/** What is there stays there, whatever happens: it is somebody's data. */
export const startDatabase: Handler<"database.start"> = async (host, { database }, job) => {
  const up = await bringUp(host, database, job.signal);
  await removeOtherVolumes(host, database);
  return up;
};
