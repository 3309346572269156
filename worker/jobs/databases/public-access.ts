import { and, eq, lte, sql, type SQL } from "drizzle-orm";
import type { JobResult } from "../../../protocol/agent/jobs.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { databases } from "../../db/schema.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { idleLane } from "../../db/job-conditions.ts";
import { queueDatabaseJob } from "./queue.ts";

/** Delay after a failure on the host; its causes do not resolve within seconds. */
const retryMs = 10 * 60_000;
/** The host renews a certificate earlier than this before it expires (agent/databases/certificates.ts). */
const renewMs = 60 * 24 * 60 * 60_000;

/** Records that the host applied this generation of the setting; a later one may still be pending. */
export const exposed = (
  ctx: Ctx,
  id: Id<"database">,
  { generation, address, certificateAuthority, endsAt }: JobResult<"database.expose">,
  ended: SQL,
) =>
  ctx.db
    .update(databases)
    .set({
      publicApplied: generation,
      publicAddress: address,
      publicAuthority: certificateAuthority,
      publicEndsAt: endsAt === null ? null : new Date(endsAt),
      publicError: null,
      // A database that should run but does not has no certificate to renew.
      publicTryAt: endsAt === null ? new Date(ctx.now().getTime() + retryMs) : null,
      updatedAt: ctx.now(),
    })
    .where(and(eq(databases.id, id), lte(databases.publicApplied, generation), ended));

export const exposeFailed = (ctx: Ctx, id: Id<"database">, error: string, ended: SQL) =>
  ctx.db
    .update(databases)
    .set({ publicError: error, publicTryAt: new Date(ctx.now().getTime() + retryMs) })
    .where(and(eq(databases.id, id), ended));

/** Queues what a host has not applied yet, and certificate renewals. */
export async function exposeAgain(ctx: Ctx): Promise<void> {
  const now = ctx.now().getTime();
  const due = sql`(d.public_enabled OR d.public_applied < d.public_generation)
    AND d.status IN ${databaseEvents.exposeRequested.from} AND d.host_id IS NOT NULL AND d.version IS NOT NULL
    AND (d.public_applied < d.public_generation
      OR d.status = 'RUNNING' AND (d.public_ends_at IS NULL OR d.public_ends_at < ${now + renewMs}))
    AND (d.public_try_at IS NULL OR d.public_try_at <= ${now}) AND ${idleLane(sql`d.id`)}`;
  const found = await ctx.db.all<{ id: Id<"database">; hostId: Id<"host"> }>(
    sql`SELECT d.id, d.host_id AS hostId FROM databases d WHERE ${due} LIMIT 100`,
  );
  for (const { id, hostId } of found) {
    await queueDatabaseJob(ctx, "database.expose", id, due);
    ctx.hosts.wake(hostId);
  }
}
