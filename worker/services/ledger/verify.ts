import { asc, eq, gt, sql } from "drizzle-orm";
import type { LedgerVerified } from "../../../protocol/api/payments.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { ledgerAccounts, ledgerHolds, ledgerTransfers } from "../../db/schema.ts";
import { LedgerAudit } from "../../domain/ledger.ts";

const atOnce = 2000;
const shownProblems = 100;

/** Queries that must return nothing: each row is a sentence about an inconsistency. */
const crossChecks = [
  sql`SELECT 'Invoice ' || i.id || ' is ' || i.status || ' and has ' || count(p.id) || ' payments' AS problem
    FROM invoices i LEFT JOIN payments p ON p.invoice_id = i.id WHERE i.status IN ('paid', 'refunded') GROUP BY i.id HAVING count(p.id) <> 1`,
  sql`SELECT 'Payment ' || p.id || ' is not what invoice ' || p.invoice_id || ' asks for' AS problem
    FROM payments p LEFT JOIN invoices i ON i.id = p.invoice_id
    WHERE i.id IS NULL OR i.status NOT IN ('paid', 'refunded') OR i.amount_cents <> p.amount_cents OR i.currency <> p.currency`,
  sql`SELECT 'Invoice ' || i.id || ' is paid and its credits are not in the ledger' AS problem
    FROM invoices i JOIN credit_purchases c ON c.invoice_id = i.id
    LEFT JOIN ledger_transfers t ON t.type = 'purchase' AND t.reference = i.id AND t.credit_id = i.account_id AND t.amount = c.credits
    WHERE i.status IN ('paid', 'refunded') AND t.id IS NULL
      -- Refunded before the payment was recorded, so it bought nothing.
      AND NOT EXISTS (SELECT 1 FROM payments p JOIN payment_flags f ON f.reason = 'refunded_elsewhere'
        AND f.reference = p.reference || ':' || f.amount_cents WHERE i.status = 'refunded' AND p.invoice_id = i.id)`,
  sql`SELECT 'Transfer ' || t.id || ' is a purchase that nobody paid' AS problem
    FROM ledger_transfers t LEFT JOIN invoices i ON i.id = t.reference AND i.status IN ('paid', 'refunded')
    WHERE t.type = 'purchase' AND i.id IS NULL`,
  sql`SELECT 'Hold ' || h.id || ' is posted and nothing was taken' AS problem
    FROM ledger_holds h LEFT JOIN refunds r ON r.hold_id = h.id
    LEFT JOIN ledger_transfers t ON t.reference = coalesce(r.invoice_id, h.id) AND t.debit_id = h.account_id
    WHERE h.status = 'posted' AND t.id IS NULL`,
];

/** Folds the whole ledger from its first transfer, and compares it with the balances, invoices and payments. */
export async function verifyLedger(ctx: Ctx): Promise<LedgerVerified> {
  const audit = new LedgerAudit();
  // Read first, so that concurrent additions are later than this.
  const {
    accounts,
    holds,
    last: [last],
  } = await batch(ctx, {
    accounts: ctx.db.select().from(ledgerAccounts),
    holds: ctx.db
      .select({ accountId: ledgerHolds.accountId, amount: sql<number>`sum(${ledgerHolds.amount})`.as("sum") })
      .from(ledgerHolds)
      .where(eq(ledgerHolds.status, "open"))
      .groupBy(ledgerHolds.accountId),
    last: ctx.db
      .select({ seq: sql<number | null>`max(${ledgerTransfers.seq})`.as("last") })
      .from(ledgerTransfers),
  });
  const until = last?.seq ?? 0;
  for (let after = 0; after < until;) {
    const rows = await ctx.db
      .select()
      .from(ledgerTransfers)
      .where(gt(ledgerTransfers.seq, after))
      .orderBy(asc(ledgerTransfers.seq))
      .limit(atOnce);
    for (const row of rows) if (row.seq <= until) audit.add(row);
    after = rows.at(-1)?.seq ?? until;
  }
  audit.close(accounts, new Map(holds.map(({ accountId, amount }) => [accountId, amount])));
  const problems = [...audit.problems];
  for (const check of crossChecks)
    problems.push(...(await ctx.db.all<{ problem: string }>(check)).map(({ problem }) => problem));
  return {
    ok: problems.length === 0,
    transfers: audit.transfers,
    accounts: accounts.length,
    problems: problems.slice(0, shownProblems),
  };
}
