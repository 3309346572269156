import { sql } from "drizzle-orm";
import { systemAccounts } from "../../domain/ledger.ts";
import { effect, type EffectOf } from "./effect.ts";

/** Transfers the purchased credits, as many as the invoice promised. */
export const paidCredits: EffectOf = (ctx, _invoice, mark, now) =>
  effect({
    transfer: ctx.statement(sql`
      INSERT INTO ledger_transfers (id, debit_id, credit_id, amount, type, reference, created_at)
      SELECT ${ctx.newId("transaction")}, ${systemAccounts.sold}, i.account_id, p.credits, 'purchase', i.id, ${now.getTime()}
      FROM invoices i JOIN credit_purchases p ON p.invoice_id = i.id WHERE i.settlement_mark = ${mark}`),
  });
