import { eq } from "drizzle-orm";
import type { FromAgent } from "../../../protocol/agent/messages.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { hosts } from "../../db/schema.ts";

export async function recordCondition(
  ctx: Ctx,
  hostId: Id<"host">,
  { disk, ingressProblem, updateProblem, machineProblems }: Extract<FromAgent, { type: "condition" }>,
): Promise<void> {
  await ctx.db
    .update(hosts)
    .set({
      diskFreeMb: disk?.freeMb ?? null,
      diskNeededMb: disk?.neededMb ?? null,
      ingressProblem,
      updateProblem,
      machineProblems,
    })
    .where(eq(hosts.id, hostId));
}
