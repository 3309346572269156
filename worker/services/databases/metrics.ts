import type { SiteMetrics } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../ctx.ts";
import { askHostOf } from "../running/ask-host.ts";
import { databaseOwnedBy } from "./owned.ts";

/** A day of samples, which the database's host keeps. */
export async function databaseMetrics(ctx: Ctx, databaseId: string): Promise<SiteMetrics> {
  const database = await databaseOwnedBy(ctx, databaseId);
  const answer = await askHostOf<"metrics">(ctx, database, { kind: "metrics", siteId: database.id });
  return { data: answer?.samples ?? [] };
}
