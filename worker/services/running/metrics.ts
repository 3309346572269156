import type { ById } from "../../../protocol/api/common.ts";
import type { SiteMetrics } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { askHost } from "./ask-host.ts";

/** One day of samples, which the site's host stores. */
export async function siteMetrics(ctx: Ctx, { id: siteId }: ById): Promise<SiteMetrics> {
  const answer = await askHost<"metrics">(ctx, siteId, (id) => ({ kind: "metrics", siteId: id }));
  return { data: answer?.samples ?? [] };
}
