import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { DatabaseRow } from "../../db/rows.ts";
import { databases } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";

/** The query for a database, for a batch whose result is passed to `requireOwned`. */
export const databaseById = (ctx: Ctx, id: Id<"database">) =>
  ctx.db.select().from(databases).where(eq(databases.id, id));

/** A single database: not_found, then forbidden. */
export async function databaseOwnedBy(ctx: Ctx, databaseId: string): Promise<DatabaseRow> {
  const [database] = await databaseById(ctx, idIn("database", databaseId));
  return requireOwned(ctx, database);
}
