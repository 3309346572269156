import { bringUp } from "../databases/server.ts";
import type { Handler } from "../host.ts";

/** What is there stays there, whatever happens: it is somebody's data. */
export const startDatabase: Handler<"database.start"> = (host, { database }, job) =>
  bringUp(host, database, job.signal);
