import type { ById, Resumed } from "../../../protocol/api/common.ts";
import type { SiteLogQuery, SiteLogs } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { followSiteLog } from "./follow-log.ts";
import { readSiteLog } from "./read-log.ts";

type Asked = ById & Resumed & SiteLogQuery;

/** The latest lines of a running site, or a live stream of server-sent events. */
export const getSiteLogs = (ctx: Ctx, asked: Asked): Promise<SiteLogs | ReadableStream<Uint8Array>> =>
  asked.follow === "1" ? followSiteLog(ctx, asked) : readSiteLog(ctx, asked);
