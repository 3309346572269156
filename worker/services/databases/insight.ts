import type { DatabaseInsight } from "../../../protocol/api/insight.ts";
import type { Ctx } from "../../ctx.ts";
import { askServer } from "./ask-host.ts";
import { databaseOwnedBy } from "./owned.ts";

/** How the server does now, as it says itself. */
export async function databaseInsight(ctx: Ctx, databaseId: string): Promise<DatabaseInsight> {
  const database = await databaseOwnedBy(ctx, databaseId);
  return (await askServer<"insight">(ctx, database, (server) => ({ kind: "insight", ...server }))).insight;
}
