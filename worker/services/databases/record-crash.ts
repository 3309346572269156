import { and, eq, inArray, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { openJob } from "../../db/job-conditions.ts";
import { automaticActivity } from "../../db/insert-activity.ts";
import { batch } from "../../db/batch.ts";
import { databases, jobs } from "../../db/schema.ts";
import { databaseEvents } from "../../domain/database-events.ts";

/**
 * The server kept exiting, and its host has stopped it. false: a job in progress decides first, so the host must
 * report again.
 */
export async function recordDatabaseCrash(
  ctx: Ctx,
  hostId: Id<"host">,
  { databaseId, error }: { databaseId: Id<"database">; error: string },
): Promise<boolean> {
  const { from, to } = databaseEvents.crashed;
  // A backup does not affect the server; other jobs in progress start or stop it.
  const open = sql`lane = ${databaseId} AND ${openJob} AND kind <> 'database.backup'`;
  const { busy } = await batch(ctx, {
    databases: ctx.db
      .update(databases)
      .set({ status: to, error, updatedAt: ctx.now() })
      .where(
        and(
          eq(databases.id, databaseId),
          eq(databases.hostId, hostId),
          inArray(databases.status, [...from]),
          sql`NOT EXISTS (SELECT 1 FROM jobs WHERE ${open})`,
        ),
      ),
    activity: automaticActivity(
      ctx,
      "reportDatabaseCrash",
      sql`databases WHERE id = ${databaseId} AND changes() > 0`,
    ),
    busy: ctx.db
      .select({ id: jobs.id })
      .from(jobs)
      .where(and(eq(jobs.hostId, hostId), open))
      .limit(1),
  });
  return busy.length === 0;
}
