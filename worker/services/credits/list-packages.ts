import { asc, eq } from "drizzle-orm";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { CreditPackage, CreditPackageForOperator } from "../../../protocol/api/credits.ts";
import type { Ctx } from "../../ctx.ts";
import { creditPackages } from "../../db/schema.ts";
import { pageOfAll } from "../page.ts";

export const creditPackageView = (row: typeof creditPackages.$inferSelect): CreditPackageForOperator => ({
  id: row.id,
  name: row.name,
  credits: row.credits,
  amountCents: row.priceCents,
  currency: row.currency,
  active: row.active,
});

/** Packages on offer, cheapest first. */
export async function listCreditPackages(ctx: Ctx, query: ListQuery): Promise<Page<CreditPackage>> {
  const rows = await ctx.db
    .select()
    .from(creditPackages)
    .where(eq(creditPackages.active, true))
    .orderBy(asc(creditPackages.priceCents), asc(creditPackages.id));
  return pageOfAll(rows, query, (row) => {
    const { active: _, ...shown } = creditPackageView(row);
    return shown;
  });
}

/** All packages, including inactive ones. */
export async function listAllCreditPackages(
  ctx: Ctx,
  query: ListQuery,
): Promise<Page<CreditPackageForOperator>> {
  const rows = await ctx.db
    .select()
    .from(creditPackages)
    .orderBy(asc(creditPackages.priceCents), asc(creditPackages.id));
  return pageOfAll(rows, query, creditPackageView);
}
