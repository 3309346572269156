import { and, eq, ne, sql, type SQL } from "drizzle-orm";
import type { BatchItem } from "drizzle-orm/batch";
import { jobResults, type PlainDatabaseJobKind } from "../../../protocol/agent/jobs.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { databases } from "../../db/schema.ts";
import { databaseEvents, type DatabaseEventName } from "../../domain/database-events.ts";
import { exposeFailed, exposed } from "./public-access.ts";
import { limitsFollowed } from "../queue-restart.ts";
import { forgetDatabase } from "./forget.ts";
import { passwordKnown, passwordRetired } from "./passwords.ts";
import { reconcileDatabases } from "./reconcile.ts";

/** Backups and restores: worker/jobs/backups/finish.ts. */
type DatabaseJob = { kind: PlainDatabaseJobKind; databaseId: Id<"database">; leasedAt?: Date | null };
/** The statement that ends the job, and the condition that it did. */
type End = { end: BatchItem<"sqlite">; ended: SQL };

/** Moves the database as the event says, where its status allows it and this report ended the job. */
const moveDatabase = (
  ctx: Ctx,
  id: Id<"database">,
  event: DatabaseEventName,
  guard: SQL,
  also: Partial<typeof databases.$inferInsert> = {},
) => {
  const { from, to } = databaseEvents[event] as {
    from: readonly string[];
    to?: (typeof databases.$inferSelect)["status"];
  };
  return ctx.db
    .update(databases)
    .set({ ...(to && { status: to }), ...also, updatedAt: ctx.now() })
    .where(and(eq(databases.id, id), sql`${databases.status} IN ${from}`, guard));
};

/** The host reports success. @throws ZodError when the result is not of the job's kind */
export async function finishDatabaseJob(
  ctx: Ctx,
  { kind, databaseId: id, leasedAt = null }: DatabaseJob,
  result: unknown,
  { end, ended }: End,
): Promise<void> {
  switch (kind) {
    case "database.provision":
    case "database.start":
    case "database.restart": {
      const { version } = jobResults[kind].parse(result);
      const event = kind === "database.provision" ? "provisioned" : "started";
      await ctx.db.batch([
        end,
        moveDatabase(ctx, id, event, ended, { version, error: null }),
        limitsFollowed(ctx, "databases", id, leasedAt, ended),
      ]);
      return;
    }
    case "database.stop":
      await ctx.db.batch([
        end,
        // Also where something waits that makes it run again: until that has, it does not.
        moveDatabase(ctx, id, "stopped", ended, { error: null }),
      ]);
      return;
    case "database.rotate":
      await ctx.db.batch([end, passwordRetired(ctx, id, ended), passwordKnown(ctx, id, ended)]);
      await reconcileDatabases(ctx);
      return;
    case "database.expose":
      await ctx.db.batch([end, exposed(ctx, id, jobResults[kind].parse(result), ended)]);
      await reconcileDatabases(ctx);
      return;
    case "database.delete":
      await ctx.db.batch([end, ...forgetDatabase(ctx, id, ended)]);
  }
}

/** The host reports failure, or nobody took the job in time: the database says why. */
export async function failDatabaseJob(
  ctx: Ctx,
  { kind, databaseId: id }: DatabaseJob,
  error: string,
  { end, ended }: End,
): Promise<void> {
  switch (kind) {
    case "database.provision":
      await ctx.db.batch([end, moveDatabase(ctx, id, "provisionFailed", ended, { error })]);
      return;
    case "database.start":
    case "database.restart":
      await ctx.db.batch([end, moveDatabase(ctx, id, "startFailed", ended, { error })]);
      return;
    case "database.stop":
      // It may still run: say so, and let the owner ask again.
      await ctx.db.batch([
        end,
        ctx.db
          .update(databases)
          .set({ wanted: "RUNNING", error })
          .where(and(eq(databases.id, id), ne(databases.status, "SUSPENDED"), ended)),
      ]);
      return;
    case "database.rotate":
      // The password that was valid still is; the next rotation takes away what this one left.
      await ctx.db.batch([
        end,
        ctx.db
          .update(databases)
          .set({ nextPasswordSealed: null, error })
          .where(and(eq(databases.id, id), ended)),
      ]);
      return;
    case "database.expose":
      await ctx.db.batch([end, exposeFailed(ctx, id, error, ended)]);
      return;
    case "database.delete":
      await ctx.db.batch([
        end,
        ctx.db
          .update(databases)
          .set({ error })
          .where(and(eq(databases.id, id), ended)),
      ]);
  }
}
