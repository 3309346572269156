import type { ById } from "../../../protocol/api/common.ts";
import {
  metricsWindows,
  type MetricsQuery,
  type MetricsWindow,
  type SiteMetrics,
  type SiteSample,
} from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { askHost, type AnswerTo } from "./ask-host.ts";

const minuteSeconds = 60;

/** Samples of up to thirty days, which the site's host stores. */
export async function siteMetrics(
  ctx: Ctx,
  { id: siteId, window, minutes }: ById & MetricsQuery,
): Promise<SiteMetrics> {
  const answer = await askHost<"metrics">(ctx, siteId, (id) => ({ kind: "metrics", siteId: id, window }));
  return metricsFrom(ctx, answer, window, minutes);
}

/** `answer` null: it was never placed. */
export const metricsFrom = (
  ctx: Ctx,
  answer: AnswerTo<"metrics"> | null,
  window: MetricsWindow,
  minutes: number | undefined,
): SiteMetrics => ({
  data: latest(ctx, answer?.samples ?? [], minutes),
  intervalSeconds:
    answer === null ? metricsWindows[window].intervalSeconds : (answer.intervalSeconds ?? minuteSeconds),
});

/** Of the samples those of the last minutes: there may be gaps. */
function latest(ctx: Ctx, samples: SiteSample[], minutes: number | undefined): SiteSample[] {
  if (minutes === undefined) return samples;
  const from = ctx.now().getTime() - minutes * 60_000;
  return samples.filter(({ at }) => Date.parse(at) > from);
}
