import type { SiteLogQuery } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { followLogOf } from "../running/follow-log.ts";
import { databaseOwnedBy } from "./owned.ts";

/** The server's log as server-sent events, as that of a site. @throws AppError conflict when nobody can follow it now */
export async function followDatabaseLog(
  ctx: Ctx,
  databaseId: string,
  query: SiteLogQuery,
  lastEventId: string | undefined,
): Promise<ReadableStream<Uint8Array>> {
  const database = await databaseOwnedBy(ctx, databaseId);
  return followLogOf(ctx, { ...database, noun: "database" }, query, { lastEventId, masks: [] });
}
