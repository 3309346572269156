import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, inArray, isNull, sql } from "drizzle-orm";
import type { DatabaseActionAccepted } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { databases } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { sealNewPassword } from "../../jobs/databases/logins.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { databaseOwnedBy } from "./owned.ts";
import { queueDatabaseJob } from "../../jobs/databases/queue.ts";

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
  const {
    moved: [moved],
  } = await batch(ctx, {
    moved: ctx.db
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
    job: queueDatabaseJob(ctx, "database.rotate", database.id, sql`d.mark = ${mark}`),
  });
  if (!moved)
    throw conflict(
      database.status === "RUNNING"
        ? "The password is already being rotated. Wait until every linked site runs with the new password, and restart those that do not."
        : `The password of a ${database.status} database cannot be rotated. Start it first.`,
    );
  ctx.hosts.wake(moved.hostId);
  return { id: moved.id, status: moved.status };
}
