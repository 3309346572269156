import { desc, eq, or, sql } from "drizzle-orm";
import type { Credits } from "../../../protocol/api/credits.ts";
import { accountOf, type Ctx, type Db } from "../../ctx.ts";
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
    account: ctx.hot(ledgerAccount, { accountId }),
    transfers: ctx.hot(latest, { accountId }),
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

const id = sql.placeholder("accountId");
const ledgerAccount = (db: Db) => db.select().from(ledgerAccounts).where(eq(ledgerAccounts.id, id));
const latest = (db: Db) =>
  db
    .select()
    .from(ledgerTransfers)
    .where(or(eq(ledgerTransfers.creditId, id), eq(ledgerTransfers.debitId, id)))
    .orderBy(desc(ledgerTransfers.seq))
    .limit(shown);
