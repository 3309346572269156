import { and, eq, getTableColumns, sql } from "drizzle-orm";
import type { CreditPurchase, CreditPurchased } from "../../../protocol/api/credits.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { creditPackages, creditPurchases, invoices } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { addDays, invoiceDueDays } from "../../domain/pricing.ts";
import { mintToken } from "../../domain/tokens.ts";
import { maxNeverPaid } from "../../billing/invoices/never-paid.ts";

/** Creates an unpaid invoice with the package's current price and credits. */
export async function purchaseCredits(ctx: Ctx, { packageId }: CreditPurchase): Promise<CreditPurchased> {
  const [found] = await ctx.db
    .select({
      ...getTableColumns(creditPackages),
      unpaid: sql<number>`(SELECT count(*) FROM invoices WHERE account_id = ${accountOf(ctx)} AND kind = 'credits' AND status = 'unpaid')`,
    })
    .from(creditPackages)
    .where(and(sql`${creditPackages.id} = ${packageId}`, eq(creditPackages.active, true)));
  if (!found) throw invalid("packageId", "no active credit package has this id");
  if (found.unpaid >= maxNeverPaid)
    throw conflict(
      `You have ${maxNeverPaid} unpaid invoices for credits. Pay one of them, or wait until they become void, ${invoiceDueDays} days after their creation.`,
    );
  const now = ctx.now();
  const invoiceId = ctx.newId("invoice");
  const invoiceToken = mintToken("inv", ctx.random(32));
  const description = `${found.credits} credits: ${found.name}`;
  await ctx.db.batch([
    ctx.db.insert(invoices).values({
      id: invoiceId,
      token: invoiceToken,
      accountId: accountOf(ctx),
      kind: "credits",
      status: "unpaid",
      amountCents: found.priceCents,
      currency: found.currency,
      lines: [{ description, amountCents: found.priceCents }],
      resourceId: found.id,
      createdAt: now,
      dueAt: addDays(now, invoiceDueDays),
    }),
    ctx.db.insert(creditPurchases).values({ invoiceId, packageId: found.id, credits: found.credits }),
  ]);
  return { invoiceToken, invoiceId };
}
