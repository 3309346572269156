import type { ById, Resumed } from "../../../protocol/api/common.ts";
import type { SiteLogQuery } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { followLogOf } from "../running/follow-log.ts";
import { databaseOwnedBy } from "./owned.ts";

/**
 * The server's log as server-sent events, like a site's. @throws AppError conflict if the log cannot be followed now
 */
export async function followDatabaseLog(
  ctx: Ctx,
  { id, lastEventId, ...query }: ById & Resumed & SiteLogQuery,
): Promise<ReadableStream<Uint8Array>> {
  const database = await databaseOwnedBy(ctx, id);
  return followLogOf(ctx, { ...database, noun: "database" }, query, { lastEventId, masks: [] });
}
