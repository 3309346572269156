import { eq } from "drizzle-orm";
import type { FailingCheck } from "../../../protocol/agent/messages.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";
import { recordUnhealthy } from "../running/record-notices.ts";

/** Replaces what the host said before. Owners who want to know are told of what it did not say yet. */
export async function recordFailingChecks(
  ctx: Ctx,
  hostId: Id<"host">,
  failingChecks: FailingCheck[],
): Promise<void> {
  const [host] = await ctx.db.select({ before: hosts.failingChecks }).from(hosts).where(eq(hosts.id, hostId));
  const before = new Set(host?.before.map(({ siteId }) => siteId));
  for (const one of failingChecks) if (!before.has(one.siteId)) await recordUnhealthy(ctx, hostId, one);
  if (before.size + failingChecks.length === 0) return;
  await ctx.db.update(hosts).set({ failingChecks }).where(eq(hosts.id, hostId));
}
