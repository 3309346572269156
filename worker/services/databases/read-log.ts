import type { ById } from "../../../protocol/api/common.ts";
import type { SiteLogQuery, SiteLogs } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { readLogOf } from "../running/read-log.ts";
import { databaseOwnedBy } from "./owned.ts";

/** The latest lines of the database server's log. */
export const readDatabaseLog = async (ctx: Ctx, { id, ...query }: ById & SiteLogQuery): Promise<SiteLogs> =>
  readLogOf(ctx, await databaseOwnedBy(ctx, id), query, []);
