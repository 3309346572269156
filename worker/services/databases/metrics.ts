import type { ById } from "../../../protocol/api/common.ts";
import type { MetricsQuery, SiteMetrics } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { askHostOf } from "../running/ask-host.ts";
import { metricsFrom } from "../running/metrics.ts";
import { databaseOwnedBy } from "./owned.ts";

/** Samples of up to thirty days, which the database's host stores. */
export async function databaseMetrics(
  ctx: Ctx,
  { id: databaseId, window, minutes }: ById & MetricsQuery,
): Promise<SiteMetrics> {
  const database = await databaseOwnedBy(ctx, databaseId);
  const question = { kind: "metrics", siteId: database.id, window } as const;
  return metricsFrom(ctx, await askHostOf<"metrics">(ctx, database, question), window, minutes);
}
