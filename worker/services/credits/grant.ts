import { sql, eq } from "drizzle-orm";
import type { CreditGrant, Transaction } from "../../../protocol/api/credits.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { ledgerTransfers } from "../../db/schema.ts";
import { invalid } from "../../domain/app-error.ts";
import { systemAccounts } from "../../domain/ledger.ts";

/** Grants credits to an account, by an operator. */
export async function grantCredits(
  ctx: Ctx,
  { accountId, email, amount }: CreditGrant,
): Promise<Transaction> {
  const id = ctx.newId("transaction");
  const {
    made: [made],
  } = await batch(ctx, {
    ledgerTransfers: ctx.statement(sql`
      INSERT INTO ledger_transfers (id, debit_id, credit_id, amount, type, reference, created_at)
      SELECT ${id}, ${systemAccounts.granted}, id, ${amount}, 'grant', ${id}, ${ctx.now().getTime()}
      FROM accounts WHERE id = ${accountId ?? null} OR email = ${email?.toLowerCase() ?? null}`),
    made: ctx.db.select().from(ledgerTransfers).where(eq(ledgerTransfers.id, id)),
  });
  if (!made) throw invalid(accountId === undefined ? "email" : "accountId", "no such account");
  return { id, type: "grant", amount, createdAt: made.createdAt.toISOString() };
}
