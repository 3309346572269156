import type { SiteLogQuery, SiteLogs } from "../../../protocol/api/running.ts";
import type { Ctx } from "../../context.ts";
import { siteLogLine } from "../../domain/site-log-line.ts";
import { askHostOf } from "./ask-host.ts";
import { databaseOwnedBy } from "./owned.ts";

/** The last lines the database's server wrote. */
export async function readDatabaseLog(
  ctx: Ctx,
  databaseId: string,
  { tail, since }: SiteLogQuery,
): Promise<SiteLogs> {
  const database = await databaseOwnedBy(ctx, databaseId);
  const answer = await askHostOf<"logs">(ctx, database, {
    kind: "logs",
    siteId: database.id,
    tail,
    after: since ?? null,
    follow: false,
    masks: [],
  });
  return { data: (answer?.lines ?? []).map(siteLogLine) };
}
