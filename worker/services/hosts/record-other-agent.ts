import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";

/** @param from where another agent with the host's token tries to connect from, empty: unknown; null: none does */
export async function recordOtherAgent(ctx: Ctx, hostId: Id<"host">, from: string | null): Promise<void> {
  await ctx.db.update(hosts).set({ otherAgentFrom: from }).where(eq(hosts.id, hostId));
}
