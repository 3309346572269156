import { and, eq, isNull, lt } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { hosts, jobs } from "../../db/schema.ts";
import { isUnplaced } from "../lease.ts";

/**
 * Marks a host offline that was last seen at `since`, as detected at `foundAt`. A later hello wins: the host is back.
 */
export async function markOffline(
  ctx: Ctx,
  hostId: Id<"host">,
  since: Date,
  foundAt: Date = since,
): Promise<void> {
  const { unplaced } = await batch(ctx, {
    hosts: ctx.db
      .update(hosts)
      .set({ offlineSince: since })
      .where(and(eq(hosts.id, hostId), isNull(hosts.offlineSince), lt(hosts.connectedAt, foundAt))),
    unplaced: ctx.db.select({ id: jobs.id }).from(jobs).where(isUnplaced).limit(1),
  });
  // Unplaced jobs that would have waited for this host may be placed on another.
  if (unplaced.length > 0) ctx.hosts.wake(null);
}
