import type { ById } from "../../../protocol/api/common.ts";
import type { DatabaseInsight } from "../../../protocol/api/insight.ts";
import type { Ctx } from "../../ctx.ts";
import { askServer } from "./ask-host.ts";
import { databaseOwnedBy } from "./owned.ts";

/** Live statistics reported by the server. */
export async function databaseInsight(ctx: Ctx, { id: databaseId }: ById): Promise<DatabaseInsight> {
  const database = await databaseOwnedBy(ctx, databaseId);
  return (await askServer<"insight">(ctx, database, (server) => ({ kind: "insight", ...server }))).insight;
}
