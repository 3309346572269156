import { and, eq, ne } from "drizzle-orm";
import { databases } from "../../db/schema.ts";
import { moveDatabase } from "./database-status.ts";
import { databaseIdOf, databaseOf, ending, type Kind } from "./kind.ts";

export const databaseStop: Kind<"database.stop"> = {
  args(_ctx, material) {
    const { id, accountId } = databaseOf(material);
    return { databaseId: id, accountId };
  },
  // Also if a job that starts it again waits: until that has ended, it does not run.
  succeeded: (ctx, { job, ended }) =>
    ending({ stopped: moveDatabase(ctx, databaseIdOf(job), "stopped", ended, { error: null }) }),
  // It may still run: the database says so, and its owner can ask again.
  failed: (ctx, { job, ended }, { error }) =>
    ending({
      running: ctx.db
        .update(databases)
        .set({ wanted: "RUNNING", error })
        .where(and(eq(databases.id, databaseIdOf(job)), ne(databases.status, "SUSPENDED"), ended)),
    }),
};
