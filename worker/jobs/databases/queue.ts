import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { PlainDatabaseJobKind } from "../../../protocol/agent/jobs.ts";
import { ofDatabase, queueJob } from "../insert.ts";

/** One job for a database. `guard` refers to it as `d` and checks the mark set by the UPDATE of the same batch. */
export const queueDatabaseJob = (
  ctx: Ctx,
  kind: PlainDatabaseJobKind,
  databaseId: Id<"database"> | SQL,
  guard: SQL,
) => queueJob(ctx, kind, { ...ofDatabase, from: sql`databases d WHERE d.id = ${databaseId} AND ${guard}` });
