import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, inArray, isNotNull, isNull, ne, or, sql } from "drizzle-orm";
import type { DatabaseActionAccepted, DatabasePatch } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { noneOpen, noneQueued } from "../../db/job-conditions.ts";
import { databases } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { refusedAction } from "../../domain/refused-action.ts";
import type { DatabaseRow } from "../../db/rows.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { databaseOwnedBy } from "./owned.ts";
import { queueDatabaseJob } from "../../jobs/databases/queue.ts";

/** Starts, stops or restarts. The status changes when the host reports the result. */
export async function actOnDatabase(
  ctx: Ctx,
  { id: databaseId, action }: ById & Extract<DatabasePatch, { action: unknown }>,
): Promise<DatabaseActionAccepted> {
  const database = await databaseOwnedBy(ctx, databaseId);
  await refuseUnpaid(ctx, database);
  const mark = ctx.newMark();
  const {
    moved: [moved],
  } = await batch(ctx, statements[action](ctx, database, mark));
  if (!moved) throw conflict(refusedAction(action, { what: "database", ...database }));
  ctx.hosts.wake(moved.hostId);
  return { id: moved.id, status: moved.status };
}

const statements = { start, stop, restart };

/** Also valid while a stop is in progress; a database without data is provisioned again. */
function start(ctx: Ctx, { id }: DatabaseRow, mark: string) {
  const { startRequested, provisionRequested } = databaseEvents;
  return {
    moved: ctx.db
      .update(databases)
      .set({
        wanted: startRequested.wanted,
        status: sql`CASE WHEN version IS NULL THEN ${provisionRequested.to} ELSE status END`,
        mark,
        updatedAt: ctx.now(),
      })
      .where(
        and(
          eq(databases.id, id),
          or(
            and(isNull(databases.version), inArray(databases.status, [...provisionRequested.from])),
            and(
              isNotNull(databases.version),
              or(
                and(inArray(databases.status, [...startRequested.from]), noneOpen(id, "database.start")),
                and(eq(databases.wanted, "STOPPED"), eq(databases.status, "RUNNING")),
              ),
            ),
          ),
        ),
      )
      .returning(),
    provision: queueDatabaseJob(ctx, "database.provision", id, sql`d.mark = ${mark} AND d.version IS NULL`),
    start: queueDatabaseJob(ctx, "database.start", id, sql`d.mark = ${mark} AND d.version IS NOT NULL`),
  };
}

function stop(ctx: Ctx, { id }: DatabaseRow, mark: string) {
  const { from, wanted } = databaseEvents.stopRequested;
  return {
    moved: ctx.db
      .update(databases)
      .set({ wanted, mark, updatedAt: ctx.now() })
      .where(and(eq(databases.id, id), inArray(databases.status, [...from]), ne(databases.wanted, wanted)))
      .returning(),
    stop: queueDatabaseJob(ctx, "database.stop", id, sql`d.mark = ${mark}`),
  };
}

function restart(ctx: Ctx, { id }: DatabaseRow, mark: string) {
  const { from, wanted } = databaseEvents.restartRequested;
  return {
    moved: ctx.db
      .update(databases)
      .set({ mark, updatedAt: ctx.now() })
      .where(
        and(
          eq(databases.id, id),
          inArray(databases.status, [...from]),
          eq(databases.wanted, wanted),
          isNotNull(databases.version),
        ),
      )
      .returning(),
    restart: queueDatabaseJob(
      ctx,
      "database.restart",
      id,
      sql`d.mark = ${mark} AND ${noneQueued(sql`d.id`, "database.restart")}`,
    ),
  };
}
