import type { SiteLogQuery, SiteLogs } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../context.ts";
import { siteLogLine } from "../../domain/site-log-line.ts";
import { askHostOf, type Hosted } from "./ask-host.ts";
import { siteAndMasks } from "./masks.ts";

/** The last lines the site's containers wrote. */
export async function readSiteLog(ctx: Ctx, siteId: string, query: SiteLogQuery): Promise<SiteLogs> {
  const { site, masks } = await siteAndMasks(ctx, siteId);
  return readLogOf(ctx, site, query, masks);
}

export async function readLogOf(
  ctx: Ctx,
  hosted: Hosted,
  { tail, since }: SiteLogQuery,
  masks: string[],
): Promise<SiteLogs> {
  const answer = await askHostOf<"logs">(ctx, hosted, {
    kind: "logs",
    siteId: hosted.id,
    tail,
    after: since ?? null,
    follow: false,
    masks,
  });
  return { data: (answer?.lines ?? []).map(siteLogLine) };
}
