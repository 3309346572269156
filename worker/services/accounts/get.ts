import { and, asc, eq, getTableColumns, sql } from "drizzle-orm";
import type { OwnAccount } from "../../../protocol/api/accounts.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { accounts, databases, invoices, sites } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { maxSchedulesPerAccount } from "../../domain/job-rules.ts";
import { billingDayOf } from "../../domain/pricing.ts";
import { maxNeverPaid } from "../../billing/invoices/never-paid.ts";
import { maxLiveKeys } from "../keys/insert.ts";
import { accountView } from "./view.ts";

const maxShown = 100;

/** The caller's account: what is paid, what is owed, which limits are in use, and when terms end. */
export async function getAccount(ctx: Ctx): Promise<OwnAccount> {
  const id = accountOf(ctx);
  const {
    account: [account],
    unpaid,
    ofSites,
    ofDatabases,
  } = await batch(ctx, {
    account: ctx.db
      .select({
        ...getTableColumns(accounts),
        lastPaidAt: sql<number | null>`(SELECT max(paid_at) FROM invoices WHERE account_id = ${id})`.as(
          "last_paid_at",
        ),
        balance: sql<number | null>`(SELECT balance FROM ledger_accounts WHERE id = ${id})`.as("balance"),
        keys: sql<number>`(SELECT count(*) FROM api_keys WHERE account_id = ${id} AND revoked_at IS NULL)`.as(
          "keys",
        ),
        scheduled: sql<number>`(SELECT count(*) FROM schedules WHERE account_id = ${id})`.as("scheduled"),
        awaiting: sql<number>`(SELECT count(*) FROM sites WHERE account_id = ${id} AND status = 'PENDING')
          + (SELECT count(*) FROM databases WHERE account_id = ${id} AND status = 'PENDING')`.as("awaiting"),
      })
      .from(accounts)
      .where(eq(accounts.id, id)),
    unpaid: ctx.db
      .select()
      .from(invoices)
      // `+` makes SQLite read the account's own: each page asks for them.
      .where(and(eq(invoices.accountId, id), sql`+${invoices.status} = 'unpaid'`))
      .orderBy(asc(invoices.dueAt))
      .limit(maxShown),
    ofSites: ctx.db
      .select()
      .from(sites)
      .where(eq(sites.accountId, id))
      .orderBy(asc(sites.paidUntil))
      .limit(maxShown),
    ofDatabases: ctx.db
      .select()
      .from(databases)
      .where(eq(databases.accountId, id))
      .orderBy(asc(databases.paidUntil))
      .limit(maxShown),
  });
  if (!account) throw new AppError("not_found");
  const { lastPaidAt, balance, keys, scheduled, awaiting } = account;
  return {
    ...accountView(account),
    emailVerified: account.emailVerified,
    twoFactorEnabled: account.twoFactorEnabled,
    payment: {
      verified: lastPaidAt !== null,
      lastPaidAt: lastPaidAt === null ? null : new Date(lastPaidAt).toISOString(),
      unpaid: unpaid.map(({ id: invoiceId, kind, amountCents, currency, dueAt }) => ({
        id: invoiceId,
        kind,
        amountCents,
        currency,
        dueAt: dueAt.toISOString(),
      })),
    },
    credits: { balance: balance ?? 0 },
    limits: {
      apiKeys: { used: keys, limit: maxLiveKeys },
      schedules: { used: scheduled, limit: maxSchedulesPerAccount },
      awaitingPayment: { used: awaiting, limit: maxNeverPaid },
    },
    terms: [
      ...ofSites.map((row) => ({ kind: "site" as const, status: row.status, ...termOf(row) })),
      ...ofDatabases.map((row) => ({ kind: "database" as const, status: row.status, ...termOf(row) })),
    ].toSorted((a, b) => (a.paidUntil ?? "").localeCompare(b.paidUntil ?? "")),
  };
}

type Termed = Pick<
  typeof sites.$inferSelect | typeof databases.$inferSelect,
  "id" | "name" | "packId" | "nextPackId" | "billingTerm" | "nextBillingTerm" | "billingDay" | "paidUntil"
>;
const termOf = (row: Termed) => ({
  id: row.id,
  name: row.name,
  packId: row.packId,
  nextPackId: row.nextPackId,
  billingTerm: row.billingTerm,
  nextBillingTerm: row.nextBillingTerm,
  billingDay: billingDayOf(row),
  paidUntil: row.paidUntil?.toISOString() ?? null,
});
