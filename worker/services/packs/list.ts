import { asc, eq } from "drizzle-orm";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Pack, PackForOperator } from "../../../protocol/api/packs.ts";
import type { Ctx } from "../../ctx.ts";
import { packs } from "../../db/schema.ts";
import { pageOfAll } from "../page.ts";
import { packForOperator, packView } from "./view.ts";

const cheapestFirst = [asc(packs.priceCents), asc(packs.id)];

/** Packs on offer, cheapest first. */
export async function listPacks(ctx: Ctx, query: ListQuery): Promise<Page<Pack>> {
  const rows = await ctx.db
    .select()
    .from(packs)
    .where(eq(packs.active, true))
    .orderBy(...cheapestFirst);
  return pageOfAll(rows, query, packView);
}

/** All packs, including inactive ones. */
export async function listAllPacks(ctx: Ctx, query: ListQuery): Promise<Page<PackForOperator>> {
  const rows = await ctx.db
    .select()
    .from(packs)
    .orderBy(...cheapestFirst);
  return pageOfAll(rows, query, packForOperator);
}
