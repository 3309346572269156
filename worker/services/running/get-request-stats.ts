import type { ById } from "../../../protocol/api/common.ts";
import type { RequestStats, RequestStatsQuery } from "../../../protocol/api/requests.ts";
import type { Ctx } from "../../ctx.ts";
import { noRequests } from "../../domain/no-requests.ts";
import { askHost } from "./ask-host.ts";

/** What the site's host has counted of its requests. */
export async function getSiteRequestStats(
  ctx: Ctx,
  { id: siteId, window }: ById & RequestStatsQuery,
): Promise<RequestStats> {
  const answer = await askHost<"requestStats">(ctx, siteId, (id) => ({
    kind: "requestStats",
    siteId: id,
    window,
  }));
  return answer?.stats ?? noRequests(window, ctx.now());
}
