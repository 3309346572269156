import type { ById } from "../../../protocol/api/common.ts";
import { eq, sql } from "drizzle-orm";
import type { PackCreate, PackForOperator, PackPatch } from "../../../protocol/api/packs.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { packs } from "../../db/schema.ts";
import { invalid } from "../../domain/app-error.ts";
import { leastCents } from "../../domain/pricing.ts";
import type { PackRow } from "../../db/rows.ts";
import { requireFound } from "../owned.ts";
import { packForOperator, packView } from "./view.ts";

/** @throws AppError invalid_request if a discount reduces a term's price below the minimum charge */
function requireChargeable(row: PackRow): void {
  const term = packView(row).terms.find(({ amountCents }) => amountCents < leastCents);
  if (term) throw invalid("discounts", `${term.months} months would cost less than ${leastCents} cents`);
}

export async function createPack(ctx: Ctx, { amountCents, ...input }: PackCreate): Promise<PackForOperator> {
  const row = { id: ctx.newId("pack"), priceCents: amountCents, currency: "usd", ...input };
  requireChargeable(row);
  await ctx.db.batch([ctx.db.insert(packs).values(row)]);
  return packForOperator(row);
}

/** New prices apply to future purchases, new resources to future deployments. */
export async function changePack(
  ctx: Ctx,
  { id: packId, amountCents, ...patch }: ById & PackPatch,
): Promise<PackForOperator> {
  const [found] = await ctx.db
    .select()
    .from(packs)
    .where(sql`${packs.id} = ${packId}`);
  const row = requireFound(found);
  const given = Object.entries({ ...patch, priceCents: amountCents }).filter(
    ([, value]) => value !== undefined,
  );
  const change = Object.fromEntries(given) as Partial<PackRow>;
  requireChargeable({ ...row, ...change });
  const {
    changed: [changed],
  } = await batch(ctx, {
    changed: ctx.db.update(packs).set(change).where(eq(packs.id, row.id)).returning(),
  });
  return packForOperator(changed ?? row);
}
