import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";

/** Records how many jobs the host runs at once from now on. */
export async function recordSlots(ctx: Ctx, hostId: Id<"host">, slots: number): Promise<void> {
  await ctx.db.update(hosts).set({ slots }).where(eq(hosts.id, hostId));
}
