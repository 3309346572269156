import type { ById } from "../../../protocol/api/common.ts";
import { eq } from "drizzle-orm";
import type { Database } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { databases } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";
import { databaseView, selectDatabases } from "./view.ts";

export async function getDatabase(ctx: Ctx, { id: databaseId }: ById): Promise<Database> {
  const [row] = await selectDatabases(ctx.db).where(eq(databases.id, idIn("database", databaseId)));
  return databaseView(requireOwned(ctx, row));
}
