import { and, eq, inArray, sql, type SQL } from "drizzle-orm";
import type { BatchItem } from "drizzle-orm/batch";
import { jobResults, type BackupJobKind } from "../../../protocol/agent/jobs.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { backups, databases, jobs } from "../../db/schema.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { queueDatabaseJob } from "../databases/queue.ts";
import { countFailure } from "./failing.ts";
import { dataKeyOf } from "./object-keys.ts";
import { proven } from "./proven.ts";
import { queueVerification } from "./queue.ts";
import { idleLane } from "../idle.ts";

type BackupJob = typeof jobs.$inferSelect & { kind: BackupJobKind };
/** The statement that ends the job, and the condition that it did. */
type End = { end: BatchItem<"sqlite">; ended: SQL };

function backupOf({ id, backupId }: BackupJob): Id<"backup"> {
  if (!backupId) throw new Error(`Job ${id} names no backup`);
  return backupId;
}

/** What is said of a database that was to be restored; the state before stays what is wanted. */
const notRestored = (ctx: Ctx, { databaseId }: BackupJob, error: string, ended: SQL) =>
  ctx.db
    .update(databases)
    .set({
      error,
      wanted: sql`CASE WHEN status = 'STOPPED' THEN 'STOPPED' ELSE wanted END`,
      updatedAt: ctx.now(),
    })
    .where(and(sql`${databases.id} = ${databaseId}`, ended));

const damaged = (ctx: Ctx, id: Id<"backup">, error: string, ended: SQL) =>
  ctx.db
    .update(backups)
    .set({ status: "FAILED", error, finishedAt: ctx.now() })
    .where(and(eq(backups.id, id), sql`${backups.status} IN ('STORED', 'VERIFIED')`, ended));

/** The host reports success. @throws ZodError when the result is not of the job's kind */
export async function finishBackupJob(
  ctx: Ctx,
  job: BackupJob,
  result: unknown,
  { end, ended }: End,
): Promise<void> {
  const id = backupOf(job);
  const now = ctx.now();
  switch (job.kind) {
    case "database.backup": {
      const isComplete = sql`${backups.sha256} IS NOT NULL AND ${backups.attempt} = ${job.attempt}`;
      const isRunning = and(eq(backups.id, id), eq(backups.status, "RUNNING"), ended);
      await ctx.db.batch([
        end,
        ctx.db
          .update(backups)
          .set({ status: "STORED", uploadId: null, error: null, finishedAt: now })
          .where(and(isRunning, isComplete)),
        ctx.db
          .update(backups)
          .set({
            status: "FAILED",
            error: "The host reported a backup that is not in the store.",
            finishedAt: now,
          })
          .where(isRunning),
        queueVerification(ctx, sql`b.id = ${id} AND ${ended}`),
      ]);
      ctx.hosts.wake(job.hostId);
      return;
    }
    case "database.verify": {
      const { damage } = jobResults[job.kind].parse(result);
      await ctx.db.batch(
        damage === null
          ? [end, ...(await proven(ctx, id, ended))]
          : [end, damaged(ctx, id, damage, ended), ...(await countFailure(ctx, id, damage, ended))],
      );
      return;
    }
    case "database.restore": {
      const done = jobResults[job.kind].parse(result);
      if (done.damage !== null) {
        const error = `The backup was not restored, and the data is what it was: ${done.damage}`;
        await ctx.db.batch([
          end,
          // The job did what it could; what it was asked for did not happen.
          ctx.db
            .update(jobs)
            .set({ error: done.damage })
            .where(and(eq(jobs.id, job.id), ended)),
          notRestored(ctx, job, error.slice(0, 2000), ended),
          damaged(ctx, id, done.damage, ended),
        ]);
        return;
      }
      const { from, to } = databaseEvents.started;
      await ctx.db.batch([
        end,
        // Whatever became of it meanwhile, this is where its data is.
        ctx.db
          .update(databases)
          .set({ version: done.version, volume: done.volume as Id<"job">, updatedAt: now })
          .where(and(sql`${databases.id} = ${job.databaseId}`, ended)),
        ctx.db
          .update(databases)
          .set({ status: to, error: null })
          .where(and(sql`${databases.id} = ${job.databaseId}`, sql`${databases.status} IN ${from}`, ended)),
        // Once the record names the new volume, the host may let the old one go.
        queueDatabaseJob(
          ctx,
          "database.start",
          sql`${job.databaseId}`,
          sql`${ended} AND d.wanted = 'RUNNING' AND ${idleLane(sql`d.id`)}`,
        ),
        // It was restored and compared on the way.
        ...(await proven(ctx, id, ended)),
      ]);
    }
  }
}

/** The host reports failure, or nobody took the job in time. What is good stays so. */
export async function failBackupJob(
  ctx: Ctx,
  job: BackupJob,
  error: string,
  { end, ended }: End,
): Promise<void> {
  const id = backupOf(job);
  switch (job.kind) {
    case "database.backup": {
      const [, [failed]] = await ctx.db.batch([
        end,
        ctx.db
          .update(backups)
          .set({ status: "FAILED", error, finishedAt: ctx.now() })
          .where(and(eq(backups.id, id), eq(backups.status, "RUNNING"), ended))
          .returning(),
        ...(await countFailure(ctx, id, error, ended)),
      ]);
      if (failed?.uploadId) ctx.defer(ctx.backups.abort(dataKeyOf(failed), failed.uploadId));
      return;
    }
    case "database.verify": {
      // The backup is as good as it was: the cron asks again, ever more seldom.
      const unverified = `It could not be verified: ${error}`.slice(0, 2000);
      await ctx.db.batch([
        end,
        ctx.db
          .update(backups)
          .set({ verifications: sql`verifications + 1`, error: unverified })
          .where(and(eq(backups.id, id), inArray(backups.status, ["STORED", "VERIFIED"]), ended)),
        ...(await countFailure(ctx, id, unverified, ended)),
      ]);
      return;
    }
    case "database.restore":
      await ctx.db.batch([
        end,
        notRestored(
          ctx,
          job,
          `The backup was not restored, and the data is what it was: ${error}`.slice(0, 2000),
          ended,
        ),
      ]);
  }
}
