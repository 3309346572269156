import type { SiteLogQuery, SiteLogs } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../context.ts";
import { siteLogLine } from "../../domain/site-log-line.ts";
import { askHost } from "./ask-host.ts";

/** The last lines the site's containers wrote. */
export async function readSiteLog(
  ctx: Ctx,
  siteId: string,
  { tail, since }: SiteLogQuery,
): Promise<SiteLogs> {
  const answer = await askHost<"logs">(ctx, siteId, (id) => ({
    kind: "logs",
    siteId: id,
    tail,
    after: since ?? null,
    follow: false,
  }));
  return { data: (answer?.lines ?? []).map(siteLogLine) };
}
