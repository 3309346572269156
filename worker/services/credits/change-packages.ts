import type { ById } from "../../../protocol/api/common.ts";
import { sql } from "drizzle-orm";
import type {
  CreditPackageCreate,
  CreditPackageForOperator,
  CreditPackagePatch,
} from "../../../protocol/api/credits.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { creditPackages } from "../../db/schema.ts";
import { requireFound } from "../owned.ts";
import { creditPackageView } from "./list-packages.ts";

export async function createCreditPackage(
  ctx: Ctx,
  { amountCents, ...input }: CreditPackageCreate,
): Promise<CreditPackageForOperator> {
  const {
    made: [made],
  } = await batch(ctx, {
    made: ctx.db
      .insert(creditPackages)
      .values({ id: ctx.newId("creditPackage"), priceCents: amountCents, ...input })
      .returning(),
  });
  if (!made) throw new Error("The credit package was not written");
  return creditPackageView(made);
}

/** Applies to future purchases; existing invoices are unchanged. */
export async function changeCreditPackage(
  ctx: Ctx,
  { id: packageId, amountCents, ...patch }: ById & CreditPackagePatch,
): Promise<CreditPackageForOperator> {
  const {
    changed: [changed],
  } = await batch(ctx, {
    changed: ctx.db
      .update(creditPackages)
      .set({ ...patch, ...(amountCents !== undefined && { priceCents: amountCents }) })
      .where(sql`${creditPackages.id} = ${packageId}`)
      .returning(),
  });
  return creditPackageView(requireFound(changed));
}
