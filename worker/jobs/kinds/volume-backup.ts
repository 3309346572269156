import { and, eq, sql } from "drizzle-orm";
import { backups } from "../../db/schema.ts";
import { volumeOf } from "../../domain/volume-keys.ts";
import { countFailure } from "../backups/failing.ts";
import { dataKeyOf } from "../backups/object-keys.ts";
import { queueVerification } from "../backups/queue.ts";
import { backupIdOf, backupOf, ending, siteIdOf, type Kind } from "./kind.ts";

export const volumeBackup: Kind<"volume.backup"> = {
  args(_ctx, material) {
    const { id, databaseId } = backupOf(material);
    return {
      siteId: siteIdOf(material.job),
      volume: volumeOf(databaseId)?.name ?? "",
      backupId: id,
      attempt: material.job.attempt,
    };
  },

  succeeded(ctx, { job, ended }, { consistent }) {
    const id = backupIdOf(job);
    const finishedAt = ctx.now();
    const isComplete = sql`${backups.sha256} IS NOT NULL AND ${backups.attempt} = ${job.attempt}`;
    const isRunning = and(eq(backups.id, id), eq(backups.status, "RUNNING"), ended);
    return ending(
      {
        stored: ctx.db
          .update(backups)
          .set({ status: "STORED", uploadId: null, error: null, consistent, finishedAt })
          .where(and(isRunning, isComplete)),
        missing: ctx.db
          .update(backups)
          .set({
            status: "FAILED",
            error: "The host reported a backup that is not in the store.",
            finishedAt,
          })
          .where(isRunning),
        verification: queueVerification(ctx, "volume", sql`b.id = ${id} AND ${ended}`),
      },
      () => ctx.hosts.wake(job.hostId),
    );
  },

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
