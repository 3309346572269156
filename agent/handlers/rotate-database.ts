import { arrange } from "../databases/server.ts";
import type { Handler } from "./handler.ts";

export const rotateDatabase: Handler<"database.rotate"> = async (host, { database }, job) => {
  await arrange(host, database, job.signal);
  return {};
};
