import { desc, eq, or } from "drizzle-orm";
import type { Credits } from "../../../protocol/api/credits.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { ledgerAccounts, ledgerTransfers } from "../../db/schema.ts";

const shown = 20;

/** The balance and the latest transactions, newest first. The balance includes held credits until they are spent. */
export async function getCredits(ctx: Ctx): Promise<Credits> {
  const accountId = accountOf(ctx);
  const {
    account: [account],
    transfers,
  } = await batch(ctx, {
    account: ctx.db.select().from(ledgerAccounts).where(eq(ledgerAccounts.id, accountId)),
    transfers: ctx.db
      .select()
      .from(ledgerTransfers)
      .where(or(eq(ledgerTransfers.creditId, accountId), eq(ledgerTransfers.debitId, accountId)))
      .orderBy(desc(ledgerTransfers.seq))
      .limit(shown),
  });
  return {
    balance: account?.balance ?? 0,
    transactions: transfers.map(({ id, type, amount, creditId, createdAt }) => ({
      id,
      type,
      amount: creditId === accountId ? amount : -amount,
      createdAt: createdAt.toISOString(),
    })),
  };
}
