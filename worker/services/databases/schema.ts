import type { ById } from "../../../protocol/api/common.ts";
import type { DatabaseSchema } from "../../../protocol/api/insight.ts";
import type { Ctx } from "../../ctx.ts";
import { askServer } from "./ask-host.ts";
import { databaseOwnedBy } from "./owned.ts";

/** The structure of the database. */
export async function databaseSchema(ctx: Ctx, { id: databaseId }: ById): Promise<DatabaseSchema> {
  const database = await databaseOwnedBy(ctx, databaseId);
  return (await askServer<"schema">(ctx, database, (server) => ({ kind: "schema", ...server }))).schema;
}
