import { and, eq, gte, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { ledgerAccounts, ledgerHolds } from "../../db/schema.ts";
import { systemAccounts } from "../../domain/ledger.ts";

/**
 * Spends a hold, fully or in part, exactly once however often it is called. To spend nothing, void the hold instead.
 * @returns whether this call spent it, and the account's balance afterwards, what other holds keep included
 */
export async function spendHold(
  ctx: Ctx,
  holdId: string,
  amount: number,
): Promise<{ isSpent: boolean; balance: number }> {
  const mark = ctx.newMark();
  const {
    posted,
    hold: [hold],
    account: [account],
  } = await batch(ctx, {
    posted: ctx.db
      .update(ledgerHolds)
      .set({ status: "posted", mark })
      .where(and(eq(ledgerHolds.id, holdId), eq(ledgerHolds.status, "open"), gte(ledgerHolds.amount, amount)))
      .returning({ id: ledgerHolds.id }),
    ledgerTransfers: ctx.statement(sql`
      INSERT INTO ledger_transfers (id, debit_id, credit_id, amount, type, reference, created_at)
      SELECT ${ctx.newId("transaction")}, account_id, ${systemAccounts.spent}, ${amount}, 'chat', id, ${ctx.now().getTime()}
      FROM ledger_holds WHERE mark = ${mark}`),
    hold: ctx.db.select().from(ledgerHolds).where(eq(ledgerHolds.id, holdId)),
    account: ctx.db
      .select()
      .from(ledgerAccounts)
      .where(sql`${ledgerAccounts.id} = (SELECT account_id FROM ledger_holds WHERE id = ${holdId})`),
  });
  if (hold && hold.amount < amount) throw new Error(`Hold ${holdId} keeps ${hold.amount}, not ${amount}`);
  return { isSpent: posted.length > 0, balance: account?.balance ?? 0 };
}
