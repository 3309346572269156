import { and, eq, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { backups } from "../../db/schema.ts";
import { countFailure } from "../backups/failing.ts";
import { dataKeyOf } from "../backups/object-keys.ts";
import { queueVerification } from "../backups/queue.ts";
import { specOf } from "../databases/spec.ts";
import { backupIdOf, backupOf, databaseOf, ending, type Ended, type Ending, type Kind } from "./kind.ts";

export const databaseBackup: Kind<"database.backup"> = {
  args: (ctx, material) => ({
    database: specOf(ctx, material),
    backupId: backupOf(material).id,
    attempt: material.job.attempt,
    serving: databaseOf(material).status === "RUNNING",
  }),

  succeeded: (ctx, end) => backupStored(ctx, end, "database"),

  async failed(ctx, { job, ended }, { error }) {
    const id = backupIdOf(job);
    return ending(
      {
        failed: ctx.db
          .update(backups)
          .set({ status: "FAILED", error, finishedAt: ctx.now() })
          .where(and(eq(backups.id, id), eq(backups.status, "RUNNING"), ended))
          .returning(),
        counted: await countFailure(ctx, id, error, ended),
      },
      ({ failed: [backup] }) => {
        if (backup?.uploadId) ctx.defer(ctx.backups.abort(dataKeyOf(backup), backup.uploadId));
      },
    );
  },
};

/** The backup is in the store, unless the host never sent it, and is verified next. */
export function backupStored(
  ctx: Ctx,
  { job, ended }: Ended,
  of: "database" | "volume",
  consistent?: boolean,
): Ending {
  const id = backupIdOf(job);
  const finishedAt = ctx.now();
  const isComplete = sql`${backups.sha256} IS NOT NULL AND ${backups.attempt} = ${job.attempt}`;
  const isRunning = and(eq(backups.id, id), eq(backups.status, "RUNNING"), ended);
  // The host removes a site's volumes also while it reads one of them.
  const isCutShort = sql`EXISTS (SELECT 1 FROM jobs d WHERE d.site_id = ${job.siteId} AND d.kind = 'site.delete'
    AND d.leased_at IS NOT NULL)`;
  return ending(
    {
      stored: ctx.db
        .update(backups)
        .set({ status: "STORED", uploadId: null, error: null, consistent, finishedAt })
        .where(and(isRunning, isComplete, sql`NOT ${isCutShort}`)),
      missing: ctx.db
        .update(backups)
        .set({
          status: "FAILED",
          error: sql`iif(${isCutShort}, 'The site was deleted while its volume was being read: files may be missing.',
            'The host reported a backup that is not in the store.')`,
          finishedAt,
        })
        .where(isRunning),
      verification: queueVerification(ctx, of, sql`b.id = ${id} AND ${ended}`),
    },
    () => ctx.hosts.wake(job.hostId),
  );
}
