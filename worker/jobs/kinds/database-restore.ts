import { and, eq, sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { idleLane, noneQueued } from "../../db/job-conditions.ts";
import { databases, jobs } from "../../db/schema.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { doubted, storedOf } from "../backups/stored.ts";
import { proven } from "../backups/proven.ts";
import { queueDatabaseJob } from "../databases/queue.ts";
import { specOf } from "../databases/spec.ts";
import { setDatabase } from "./database-status.ts";
import { backupIdOf, backupOf, databaseIdOf, databaseOf, ending, type Kind } from "./kind.ts";

export const databaseRestore: Kind<"database.restore"> = {
  args: (ctx, material) => ({
    database: specOf(ctx, material),
    backup: storedOf(backupOf(material), material.job.attempt),
    serving: databaseOf(material).status === "RUNNING",
  }),

  async succeeded(ctx, { job, ended }, done) {
    const [id, databaseId] = [backupIdOf(job), databaseIdOf(job)];
    if (done.damage !== null)
      return ending({
        // The job did what it could, but the data was not restored.
        job: ctx.db
          .update(jobs)
          .set({ error: done.damage })
          .where(and(eq(jobs.id, job.id), ended)),
        notRestored: notRestored(ctx, databaseId, done.damage, ended),
        doubted: doubted(ctx, id, done.damage, ended),
      });
    const { from, to } = databaseEvents.started;
    return ending({
      // The record follows the data, whatever the database's status has become in the meantime.
      volume: setDatabase(
        ctx,
        databaseId,
        { version: done.version, volume: done.volume as Id<"job">, updatedAt: ctx.now() },
        ended,
      ),
      running: setDatabase(
        ctx,
        databaseId,
        { status: to, error: null },
        sql`${databases.status} IN ${from} AND ${ended}`,
      ),
      // The host may remove the old volume once the record names the new one.
      start: queueDatabaseJob(
        ctx,
        "database.start",
        databaseId,
        sql`${ended} AND d.wanted = 'RUNNING' AND ${idleLane(sql`d.id`)}`,
      ),
      // The restore also verified the backup.
      proven: await proven(ctx, id, ended),
    });
  },

  failed(ctx, { job, ended }, { error, abandoned }) {
    const id = databaseIdOf(job);
    // It may run on the new volume, and would serve that until its next start, which brings the recorded one back.
    const onceGivenUp = (kind: "database.start" | "database.stop", guard: SQL) =>
      abandoned ? queueDatabaseJob(ctx, kind, id, sql`${ended} AND ${guard}`) : undefined;
    return ending({
      notRestored: notRestored(ctx, id, error, ended),
      start: onceGivenUp(
        "database.start",
        sql`d.status IN ('RUNNING', 'FAILED') AND d.wanted = 'RUNNING' AND d.version IS NOT NULL`,
      ),
      // A start that its owner has asked for also brings the recorded volume back.
      stop: onceGivenUp(
        "database.stop",
        sql`d.status = 'STOPPED' AND ${noneQueued(sql`d.id`, "database.start")}`,
      ),
    });
  },
};

/** The database keeps the state that was wanted before. */
const notRestored = (ctx: Ctx, id: Id<"database">, reason: string, ended: SQL) =>
  ctx.db
    .update(databases)
    .set({
      error: `The backup was not restored, and the data is unchanged: ${reason}`.slice(0, 2000),
      wanted: sql`CASE WHEN status = 'STOPPED' THEN 'STOPPED' ELSE wanted END`,
      updatedAt: ctx.now(),
    })
    .where(and(eq(databases.id, id), ended));
