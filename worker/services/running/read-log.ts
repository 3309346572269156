import type { SiteLogQuery, SiteLogs } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../context.ts";
import { siteLogLine } from "../../domain/site-log-line.ts";
import { askHostOf } from "./ask-host.ts";
import { siteAndMasks } from "./masks.ts";

/** The last lines the site's containers wrote. */
export async function readSiteLog(
  ctx: Ctx,
  siteId: string,
  { tail, since }: SiteLogQuery,
): Promise<SiteLogs> {
  const { site, masks } = await siteAndMasks(ctx, siteId);
  const answer = await askHostOf<"logs">(ctx, site, {
    kind: "logs",
    siteId: site.id,
    tail,
    after: since ?? null,
    follow: false,
    masks,
  });
  return { data: (answer?.lines ?? []).map(siteLogLine) };
}
