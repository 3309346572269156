import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, inArray, isNotNull, sql, type SQL } from "drizzle-orm";
import type { Database } from "../../../protocol/api/databases.ts";
import { isIpv4Network, type PublicAccessPatch } from "../../../protocol/api/public-access.ts";
import type { Ctx } from "../../ctx.ts";
import { noneQueued } from "../../db/job-conditions.ts";
import { batch } from "../../db/batch.ts";
import { databases } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { publicPorts } from "../../domain/database-engines.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { requireOwned } from "../owned.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { databaseOwnedBy } from "./owned.ts";
import { queueDatabaseJob } from "../../jobs/databases/queue.ts";
import { databaseView, selectDatabases } from "./view.ts";

/**
 * Changes the public access of a database without a restart. The host applies it asynchronously, and the job is
 * repeated until it succeeds.
 */
export async function exposeDatabase(
  ctx: Ctx,
  { id: databaseId, publicAccess: { enabled, allow: asked } }: ById & { publicAccess: PublicAccessPatch },
): Promise<Database> {
  const database = await databaseOwnedBy(ctx, databaseId);
  await refuseUnpaid(ctx, database);
  const allow = asked ?? database.publicAllow;
  if (enabled) refuseUnreachable(allow);
  const port = enabled ? sql`coalesce(public_port, ${freePort(ctx)})` : sql`public_port`;
  const mark = ctx.newMark();
  const {
    moved: [moved],
    record: [record],
  } = await batch(ctx, {
    moved: ctx.db
      .update(databases)
      .set({
        publicEnabled: enabled,
        publicAllow: allow,
        publicPort: port,
        publicGeneration: sql`public_generation + 1`,
        publicError: null,
        publicTryAt: null,
        mark,
        updatedAt: ctx.now(),
      })
      .where(
        and(
          eq(databases.id, database.id),
          inArray(databases.status, [...databaseEvents.exposeRequested.from]),
          isNotNull(databases.hostId),
          isNotNull(databases.version),
          ...(enabled ? [sql`${port} IS NOT NULL`] : []),
        ),
      )
      .returning(),
    job: queueDatabaseJob(
      ctx,
      "database.expose",
      database.id,
      sql`d.mark = ${mark} AND ${noneQueued(sql`d.id`, "database.expose")}`,
    ),
    record: selectDatabases(ctx.db).where(eq(databases.id, database.id)),
  });
  if (!moved)
    throw conflict(
      database.version === null || database.hostId === null
        ? `A ${database.status} database cannot be made public. Wait until it has been provisioned.`
        : "The database is being deleted, or its host has no free public port. Check its status, and ask the operator if it is not being deleted.",
    );
  ctx.hosts.wake(moved.hostId);
  return databaseView(requireOwned(ctx, record));
}

function refuseUnreachable(allow: readonly string[]): void {
  if (allow.length === 0)
    throw invalid(
      "publicAccess.allow",
      "name at least one address or network that may connect; 0.0.0.0/0 allows everyone",
    );
  if (!allow.some(isIpv4Network))
    throw invalid(
      "publicAccess.allow",
      "hosts are reachable over IPv4 only: add at least one IPv4 address or network",
    );
}

/**
 * Picks a port that no database on its host has, starting at a random position so that released ports are not reused
 * immediately.
 */
const freePort = (ctx: Ctx): SQL => {
  const { first, count } = publicPorts;
  const start = Buffer.from(ctx.random(4)).readUInt32BE() % count;
  return sql`(WITH RECURSIVE ports (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM ports WHERE n < ${count - 1})
    SELECT ${first} + (${start} + n) % ${count} FROM ports
    WHERE NOT EXISTS (SELECT 1 FROM databases o
      WHERE o.host_id = databases.host_id AND o.public_port = ${first} + (${start} + n) % ${count})
    LIMIT 1)`;
};
