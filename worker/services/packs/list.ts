import { asc, eq } from "drizzle-orm";
import type { Page } from "../../../protocol/api/common.ts";
import type { Pack } from "../../../protocol/api/packs.ts";
import type { Ctx } from "../../context.ts";
import { packs } from "../../db/schema.ts";

/** What can be bought, cheapest first; few enough for one page. */
export async function listPacks(ctx: Ctx): Promise<Page<Pack>> {
  const rows = await ctx.db
    .select({
      id: packs.id,
      kind: packs.kind,
      name: packs.name,
      amountCents: packs.priceCents,
      currency: packs.currency,
      memoryMb: packs.memoryMb,
      cpuMilli: packs.cpuMilli,
      diskGb: packs.diskGb,
    })
    .from(packs)
    .where(eq(packs.active, true))
    .orderBy(asc(packs.kind), asc(packs.priceCents), asc(packs.id));
  return { data: rows, nextCursor: null };
}
