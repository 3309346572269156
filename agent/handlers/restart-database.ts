import { bringUp, takeDown } from "../databases/server.ts";
import type { Handler } from "./handler.ts";

export const restartDatabase: Handler<"database.restart"> = async (host, { database }, job) => {
  await takeDown(host, database.databaseId);
  return bringUp(host, database, job.signal);
};
