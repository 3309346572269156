import type { Ctx } from "../../context.ts";
import { evictLeft } from "../../jobs/hosts/evict-left.ts";
import { giveUpSilentMoves } from "../../jobs/hosts/give-up-moves.ts";
import { moveSites } from "../../jobs/hosts/move-sites.ts";

/** Continues interrupted work between hosts. */
export async function tendHosts(ctx: Ctx): Promise<void> {
  await giveUpSilentMoves(ctx);
  await evictLeft(ctx);
  await moveSites(ctx);
}
