import { eq } from "drizzle-orm";
import { isId, type Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { DatabaseRow } from "../../db/rows.ts";
import { databases } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { requireOwned } from "../owned.ts";

/** Parses a database id. @throws AppError not_found */
export function databaseIdOf(text: string): Id<"database"> {
  if (!isId("database", text)) throw new AppError("not_found");
  return text;
}

/** The query for a database, for a batch whose result is passed to `requireOwned`. */
export const databaseById = (ctx: Ctx, id: Id<"database">) =>
  ctx.db.select().from(databases).where(eq(databases.id, id));

/** A single database: not_found, then forbidden. */
export async function databaseOwnedBy(ctx: Ctx, databaseId: string): Promise<DatabaseRow> {
  const [database] = await databaseById(ctx, databaseIdOf(databaseId));
  return requireOwned(ctx, database);
}
