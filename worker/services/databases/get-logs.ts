import type { ById, Resumed } from "../../../protocol/api/common.ts";
import type { SiteLogQuery, SiteLogs } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { followDatabaseLog } from "./follow-log.ts";
import { readDatabaseLog } from "./read-log.ts";

type Asked = ById & Resumed & SiteLogQuery;

/** The latest lines of a database's server, or a live stream of server-sent events. */
export const getDatabaseLogs = (ctx: Ctx, asked: Asked): Promise<SiteLogs | ReadableStream<Uint8Array>> =>
  asked.follow === "1" ? followDatabaseLog(ctx, asked) : readDatabaseLog(ctx, asked);
