import type { ById } from "../../../protocol/api/common.ts";
import type { MetricsQuery, SiteMetrics } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { askHostOf } from "../running/ask-host.ts";
import { latest } from "../running/metrics.ts";
import { databaseOwnedBy } from "./owned.ts";

/** One day of samples, which the database's host stores. */
export async function databaseMetrics(
  ctx: Ctx,
  { id: databaseId, minutes }: ById & MetricsQuery,
): Promise<SiteMetrics> {
  const database = await databaseOwnedBy(ctx, databaseId);
  const answer = await askHostOf<"metrics">(ctx, database, { kind: "metrics", siteId: database.id });
  return { data: latest(ctx, answer?.samples ?? [], minutes) };
}
