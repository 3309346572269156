import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, inArray, isNotNull, isNull, sql, type SQL } from "drizzle-orm";
import type { DatabaseActionAccepted } from "../../../protocol/api/databases.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import { databases } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { sealNewPassword } from "../../jobs/databases/logins.ts";
import { databaseOwnedBy } from "./owned.ts";
import { queueDatabaseJob } from "../../jobs/databases/queue.ts";
import { refuseUnpaid } from "./refuse-unpaid.ts";

/**
 * Rotates the user name and password in idempotent steps: the server adds the next login beside the current one; then
 * the next login becomes the current one, and running linked sites are restarted with it; once no site uses the
 * previous login, the server removes it.
 */
export async function rotatePassword(ctx: Ctx, { id: databaseId }: ById): Promise<DatabaseActionAccepted> {
  const database = await databaseOwnedBy(ctx, databaseId);
  await refuseUnpaid(ctx, database);
  const { from, wanted } = databaseEvents.rotateRequested;
  const mark = ctx.newMark();
  const [[moved]] = await ctx.db.batch([
    ctx.db
      .update(databases)
      .set({
        nextPasswordSealed: sealNewPassword(ctx, database, database.generation + 1),
        error: null,
        mark,
        updatedAt: ctx.now(),
      })
      .where(
        and(
          eq(databases.id, database.id),
          inArray(databases.status, [...from]),
          eq(databases.wanted, wanted),
          eq(databases.generation, database.generation),
          isNull(databases.nextPasswordSealed),
          isNull(databases.previousPasswordSealed),
        ),
      )
      .returning(),
    queueDatabaseJob(ctx, "database.rotate", database.id, sql`d.mark = ${mark}`),
  ]);
  if (!moved)
    throw conflict(
      database.status === "RUNNING"
        ? "The password is already being rotated. Wait until every linked site runs with the new password, and restart those that do not."
        : `The password of a ${database.status} database cannot be rotated. Start it first.`,
    );
  ctx.hosts.wake(moved.hostId);
  return { id: moved.id, status: moved.status };
}

/** Runs after a job that removed the previous login. */
export const passwordRetired = (ctx: Ctx, id: Id<"database">, ended: SQL) =>
  ctx.db
    .update(databases)
    .set({ previousPasswordSealed: null, error: null })
    .where(and(eq(databases.id, id), isNull(databases.nextPasswordSealed), ended));

/** Runs after a job that added the next login, which becomes the current one. */
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
