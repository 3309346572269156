import { and, eq, sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import type { JobRow } from "../../db/rows.ts";
import { jobs, siteVolumes } from "../../db/schema.ts";
import { proven } from "../backups/proven.ts";
import { doubted, storedVolumeOf } from "../backups/stored.ts";
import { backupIdOf, backupOf, ending, siteIdOf, type Kind } from "./kind.ts";

export const volumeRestore: Kind<"volume.restore"> = {
  args: (_ctx, material) => ({
    siteId: siteIdOf(material.job),
    accountId: material.job.accountId,
    volume: material.job.volume ?? "",
    backup: storedVolumeOf(backupOf(material), material.job.attempt),
    diskGb: material.pack.diskGb,
  }),

  async succeeded(ctx, { job, ended }, { damage }) {
    const id = backupIdOf(job);
    // The restore also verified the backup.
    if (damage === null)
      return ending({ restored: setError(ctx, job, null, ended), proven: await proven(ctx, id, ended) });
    return ending({
      // The job did what it could, but the data was not restored.
      job: ctx.db
        .update(jobs)
        .set({ error: damage })
        .where(and(eq(jobs.id, job.id), ended)),
      notRestored: setError(ctx, job, damage, ended),
      doubted: doubted(ctx, id, damage, ended),
    });
  },

  failed: (ctx, { job, ended }, { error }) => ending({ notRestored: setError(ctx, job, error, ended) }),
};

const setError = (ctx: Ctx, job: JobRow, reason: string | null, ended: SQL) =>
  ctx.db
    .update(siteVolumes)
    .set({
      restoreError:
        reason && `The backup was not restored, and the data is unchanged: ${reason}`.slice(0, 2000),
    })
    .where(and(eq(siteVolumes.siteId, siteIdOf(job)), sql`${siteVolumes.name} = ${job.volume}`, ended));
