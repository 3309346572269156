import type { ById } from "../../../protocol/api/common.ts";
import type { SiteLogQuery, SiteLogs } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { siteLogLine } from "../../domain/site-log-line.ts";
import { askHostOf, type Hosted } from "./ask-host.ts";
import { movedDetail } from "./last-move.ts";
import { siteAndMasks } from "./masks.ts";

/** The latest lines of the site's containers, and why there are no earlier ones. */
export async function readSiteLog(ctx: Ctx, { id, ...query }: ById & SiteLogQuery): Promise<SiteLogs> {
  const { site, masks, movedAt } = await siteAndMasks(ctx, id);
  const { data } = await readLogOf(ctx, site, query, masks);
  if (movedAt === null || Date.parse(query.since ?? "") >= movedAt.getTime() || data.length >= query.tail)
    return { data };
  const at = movedAt.toISOString();
  return { data: [{ seq: movedAt.getTime() * 1000, at, stream: "system", text: movedDetail }, ...data] };
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
