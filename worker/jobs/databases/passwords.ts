import { and, eq, isNotNull, isNull, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { databases } from "../../db/schema.ts";

/** Behind the end of a job that made the previous login go. */
export const passwordRetired = (ctx: Ctx, id: Id<"database">, ended: SQL) =>
  ctx.db
    .update(databases)
    .set({ previousPasswordSealed: null, error: null })
    .where(and(eq(databases.id, id), isNull(databases.nextPasswordSealed), ended));

/** Behind the end of a job that made the next login known: it is the current one. */
export const passwordKnown = (ctx: Ctx, id: Id<"database">, ended: SQL) =>
  ctx.db
    .update(databases)
    .set({
      generation: sql`generation + 1`,
      previousPasswordSealed: sql`password_sealed`,
      passwordSealed: sql`next_password_sealed`,
      nextPasswordSealed: null,
      updatedAt: ctx.now(),
    })
    .where(and(eq(databases.id, id), isNotNull(databases.nextPasswordSealed), ended));
