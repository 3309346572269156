import { and, eq, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { backups, databaseLinks, databases } from "../../db/schema.ts";
import { keptAfterDeletionMs } from "../../domain/backup-rules.ts";

/** Statements for one batch that delete the record, children first, where `guard` still holds. */
export const forgetDatabase = (ctx: Ctx, id: Id<"database">, guard: SQL) =>
  [
    ctx.db
      .update(backups)
      .set({ expiresAt: new Date(ctx.now().getTime() + keptAfterDeletionMs) })
      .where(and(eq(backups.databaseId, id), guard)),
    ctx.db.delete(databaseLinks).where(and(eq(databaseLinks.databaseId, id), guard)),
    ctx.db.delete(databases).where(and(eq(databases.id, id), guard)),
  ] as const;
