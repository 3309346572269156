import { asc, eq } from "drizzle-orm";
import type { ListQuery, Page } from "../../../protocol/api/common.ts";
import type { CreditPackage, CreditPackageForOperator } from "../../../protocol/api/credits.ts";
import type { Ctx } from "../../ctx.ts";
import { creditPackages } from "../../db/schema.ts";
import { requireOperator } from "../require-operator.ts";
import { pageOfAll } from "../page.ts";

export const creditPackageView = (row: typeof creditPackages.$inferSelect): CreditPackageForOperator => ({
  id: row.id,
  name: row.name,
  credits: row.credits,
  amountCents: row.priceCents,
  currency: row.currency,
  active: row.active,
});

/** What can be bought, cheapest first. */
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

/** All there are, inactive ones as well. */
export async function listAllCreditPackages(
  ctx: Ctx,
  query: ListQuery,
): Promise<Page<CreditPackageForOperator>> {
  requireOperator(ctx);
  const rows = await ctx.db
    .select()
    .from(creditPackages)
    .orderBy(asc(creditPackages.priceCents), asc(creditPackages.id));
  return pageOfAll(rows, query, creditPackageView);
}
