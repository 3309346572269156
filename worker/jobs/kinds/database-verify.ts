import { and, eq, inArray, sql } from "drizzle-orm";
import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { backups } from "../../db/schema.ts";
import { damaged, storedOf } from "../backups/stored.ts";
import { countFailure } from "../backups/failing.ts";
import { proven } from "../backups/proven.ts";
import { newPassword } from "../databases/logins.ts";
import { backupIdOf, backupOf, ending, type Kind, type Material } from "./kind.ts";

export const databaseVerify: Kind<"database.verify"> = {
  args: (ctx, material) => ({
    like: likeOf(ctx, material),
    backup: storedOf(backupOf(material), material.job.attempt),
  }),

  async succeeded(ctx, { job, ended }, { damage }) {
    const id = backupIdOf(job);
    if (damage === null) return ending({ proven: await proven(ctx, id, ended) });
    return ending({
      damaged: damaged(ctx, id, damage, ended),
      counted: await countFailure(ctx, id, damage, ended),
    });
  },

  // The backup itself is unchanged: the cron retries at growing intervals.
  async failed(ctx, { job, ended }, { error }) {
    const id = backupIdOf(job);
    const unverified = `It could not be verified: ${error}`.slice(0, 2000);
    return ending({
      unverified: ctx.db
        .update(backups)
        .set({ verifications: sql`verifications + 1`, error: unverified })
        .where(and(eq(backups.id, id), inArray(backups.status, ["STORED", "VERIFIED"]), ended)),
      counted: await countFailure(ctx, id, unverified, ended),
    });
  },
};

/** A server like the one that was backed up, which may no longer exist; only the agent ever connects to it. */
function likeOf(ctx: Ctx, material: Material): DatabaseSpec {
  const row = backupOf(material);
  if (row.type === "volume") throw new Error(`Backup ${row.id} is of a volume`);
  const { memoryMb, cpuMilli, pids } = material.pack;
  return {
    databaseId: row.databaseId as Id<"database">,
    accountId: row.accountId,
    type: row.type,
    image: row.image,
    hostname: "localhost",
    databaseName: row.databaseName,
    adminPassword: newPassword(ctx),
    logins: [{ username: `${row.databaseName}_0`, password: newPassword(ctx) }],
    limits: { memoryMb, cpuMilli, pids },
  };
}
