import type { SiteMetrics } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { askHost } from "./ask-host.ts";

/** A day of samples, which the site's host keeps. */
export async function siteMetrics(ctx: Ctx, siteId: string): Promise<SiteMetrics> {
  const answer = await askHost<"metrics">(ctx, siteId, (id) => ({ kind: "metrics", siteId: id }));
  return { data: answer?.samples ?? [] };
}
