import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { queueSiteJob } from "../sites/queue.ts";
import { idleLane } from "../../db/job-conditions.ts";
import { exposeAgain } from "./public-access.ts";
import { queueDatabaseJob } from "./queue.ts";

/** Continues interrupted rotations and pending changes of public access. */
export async function reconcileDatabases(ctx: Ctx): Promise<void> {
  await restartLinked(ctx);
  await retirePrevious(ctx);
  await exposeAgain(ctx);
}

/**
 * Restarts sites in service that run with the previous password. Each is tried once, because a failure would repeat.
 */
async function restartLinked(ctx: Ctx): Promise<void> {
  const behind = sql`EXISTS (SELECT 1 FROM database_links l JOIN databases d ON d.id = l.database_id
    WHERE l.site_id = s.id AND d.previous_password_sealed IS NOT NULL
      AND l.generation < d.generation AND l.offered_generation < d.generation)
    AND s.status = 'RUNNING' AND s.wanted = 'RUNNING' AND ${idleLane(sql`s.id`)}`;
  const due = await ctx.db.all<{ id: Id<"site">; hostId: Id<"host"> | null }>(
    sql`SELECT s.id, s.host_id AS hostId FROM sites s WHERE s.id IN (SELECT site_id FROM database_links) AND ${behind} LIMIT 100`,
  );
  for (const { id, hostId } of due) {
    await queueSiteJob(ctx, "site.restart", id, behind);
    ctx.hosts.wake(hostId);
  }
}

/** Removes the previous password from the server once no container runs with it. */
async function retirePrevious(ctx: Ctx): Promise<void> {
  const unused = sql`d.previous_password_sealed IS NOT NULL AND d.status = 'RUNNING' AND d.wanted = 'RUNNING' AND ${idleLane(sql`d.id`)}
    AND NOT EXISTS (SELECT 1 FROM database_links l JOIN sites s ON s.id = l.site_id
      WHERE l.database_id = d.id AND s.serving AND l.generation < d.generation)`;
  const due = await ctx.db.all<{ id: Id<"database">; hostId: Id<"host"> | null }>(
    sql`SELECT d.id, d.host_id AS hostId FROM databases d WHERE ${unused} LIMIT 100`,
  );
  for (const { id, hostId } of due) {
    await queueDatabaseJob(ctx, "database.rotate", id, unused);
    ctx.hosts.wake(hostId);
  }
}
