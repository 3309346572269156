import { and, eq, isNull, lt } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { hosts, jobs } from "../../db/schema.ts";
import { isUnplaced } from "../lease.ts";

/** The host's agent was last heard at `since`, as was found out at `foundAt`. A hello that came later stands: the host is back. */
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
  // What would have waited for this host may go to another.
  if (unplaced.length > 0) ctx.hosts.wake(null);
}
