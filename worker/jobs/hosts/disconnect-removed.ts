import { and, eq, isNotNull, isNull } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";

/** Ends connections of removed hosts again, as whoever removed one may have been interrupted before. */
export async function disconnectRemoved(ctx: Ctx): Promise<void> {
  const connected = await ctx.db
    .select({ id: hosts.id })
    .from(hosts)
    .where(and(eq(hosts.status, "REMOVED"), isNotNull(hosts.connectedAt), isNull(hosts.offlineSince)));
  for (const { id } of connected) ctx.hosts.disconnect(id);
}
