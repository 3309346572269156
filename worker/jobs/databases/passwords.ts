import { and, eq, isNotNull, isNull, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { databases } from "../../db/schema.ts";

/** For the batch that ends a job which removed the previous login. */
export const passwordRetired = (ctx: Ctx, id: Id<"database">, ended: SQL) =>
  ctx.db
    .update(databases)
    .set({ previousPasswordSealed: null, error: null })
    .where(and(eq(databases.id, id), isNull(databases.nextPasswordSealed), ended));

/** For the batch that ends a job which created the next login: it becomes the current one. */
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
