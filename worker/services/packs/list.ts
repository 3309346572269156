import { asc, eq, or, sql } from "drizzle-orm";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { Pack, PackForOperator } from "../../../protocol/api/packs.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
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

export type OwnPack = Pack & { isOffered: boolean };

/** Packs on offer, and those that the account's sites and databases have or change to, cheapest first. */
export async function listOwnPacks(ctx: Ctx): Promise<OwnPack[]> {
  const accountId = accountOf(ctx);
  const held = sql`SELECT pack_id FROM sites WHERE account_id = ${accountId}
    UNION SELECT next_pack_id FROM sites WHERE account_id = ${accountId}
    UNION SELECT pack_id FROM databases WHERE account_id = ${accountId}
    UNION SELECT next_pack_id FROM databases WHERE account_id = ${accountId}`;
  const rows = await ctx.db
    .select()
    .from(packs)
    .where(or(eq(packs.active, true), sql`${packs.id} IN (${held})`))
    .orderBy(...cheapestFirst);
  return rows.map((row) => ({ ...packView(row), isOffered: row.active }));
}

/** All packs, including inactive ones. */
export async function listAllPacks(ctx: Ctx, query: ListQuery): Promise<Page<PackForOperator>> {
  const rows = await ctx.db
    .select()
    .from(packs)
    .orderBy(...cheapestFirst);
  return pageOfAll(rows, query, packForOperator);
}
