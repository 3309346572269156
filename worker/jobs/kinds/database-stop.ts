import { and, eq, notInArray } from "drizzle-orm";
import { databases } from "../../db/schema.ts";
import { moveDatabase } from "./database-status.ts";
import { databaseIdOf, databaseOf, ending, type Kind } from "./kind.ts";

export const databaseStop: Kind<"database.stop"> = {
  args(_ctx, material) {
    const { id, accountId } = databaseOf(material);
    return { databaseId: id, accountId };
  },
  // It is STOPPED even if a start is queued, until that has succeeded.
  succeeded: (ctx, { job, ended }) =>
    ending({ stopped: moveDatabase(ctx, databaseIdOf(job), "stopped", ended, { error: null }) }),
  // It may still run: the record reflects that, and the owner can stop it again. One that was stopped before stays so.
  failed: (ctx, { job, ended }, { error }) =>
    ending({
      running: ctx.db
        .update(databases)
        .set({ wanted: "RUNNING", error })
        .where(
          and(
            eq(databases.id, databaseIdOf(job)),
            notInArray(databases.status, ["SUSPENDED", "STOPPED"]),
            ended,
          ),
        ),
    }),
};
