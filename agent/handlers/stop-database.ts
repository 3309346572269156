import { takeDown } from "../databases/server.ts";
import type { Handler } from "./handler.ts";

export const stopDatabase: Handler<"database.stop"> = async (host, { databaseId }) => {
  await takeDown(host, databaseId);
  return {};
};
