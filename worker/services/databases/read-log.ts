import type { SiteLogQuery, SiteLogs } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { readLogOf } from "../running/read-log.ts";
import { databaseOwnedBy } from "./owned.ts";

/** The last lines the database's server wrote. */
export const readDatabaseLog = async (ctx: Ctx, databaseId: string, query: SiteLogQuery): Promise<SiteLogs> =>
  readLogOf(ctx, await databaseOwnedBy(ctx, databaseId), query, []);
