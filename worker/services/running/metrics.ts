import type { ById } from "../../../protocol/api/common.ts";
import type { MetricsQuery, SiteMetrics, SiteSample } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { askHost } from "./ask-host.ts";

/** One day of samples, which the site's host stores. */
export async function siteMetrics(
  ctx: Ctx,
  { id: siteId, minutes }: ById & MetricsQuery,
): Promise<SiteMetrics> {
  const answer = await askHost<"metrics">(ctx, siteId, (id) => ({ kind: "metrics", siteId: id }));
  return { data: latest(ctx, answer?.samples ?? [], minutes) };
}

/** Of the samples those of the last minutes: there may be gaps. */
export function latest(ctx: Ctx, samples: SiteSample[], minutes: number | undefined): SiteSample[] {
  if (minutes === undefined) return samples;
  const from = ctx.now().getTime() - minutes * 60_000;
  return samples.filter(({ at }) => Date.parse(at) > from);
}
