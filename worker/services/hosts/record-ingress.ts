import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";

/** Records that a part of the ingress was replaced. */
export async function recordIngress(ctx: Ctx, hostId: Id<"host">, at: string): Promise<void> {
  await ctx.db
    .update(hosts)
    .set({ ingressReplacedAt: new Date(at) })
    .where(eq(hosts.id, hostId));
}
