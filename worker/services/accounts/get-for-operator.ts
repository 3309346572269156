import { eq, getTableColumns, sql } from "drizzle-orm";
import type { AccountForOperator } from "../../../protocol/api/accounts.ts";
import type { ById } from "../../../protocol/api/common.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { accounts, identities, invoices, ledgerAccounts } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { timeOf } from "../../domain/times.ts";
import { idIn } from "../owned.ts";
import { accountView } from "./view.ts";

/** One account, for operators. */
export async function getAccountForOperator(ctx: Ctx, { id: accountId }: ById): Promise<AccountForOperator> {
  const id = idIn("account", accountId);
  const now = ctx.now().getTime();
  const {
    account: [account],
    methods,
    ledger: [ledger],
    money,
  } = await batch(ctx, {
    account: ctx.db
      .select({
        ...getTableColumns(accounts),
        siteCount: sql<number>`(SELECT count(*) FROM sites WHERE account_id = ${id})`.as("site_count"),
        databaseCount: sql<number>`(SELECT count(*) FROM databases WHERE account_id = ${id})`.as(
          "database_count",
        ),
        keyCount:
          sql<number>`(SELECT count(*) FROM api_keys WHERE account_id = ${id} AND revoked_at IS NULL)`.as(
            "key_count",
          ),
        sessionCount:
          sql<number>`(SELECT count(*) FROM sessions WHERE account_id = ${id} AND expires_at > ${now})`.as(
            "session_count",
          ),
        lastChangeAt: sql<
          number | null
        >`(SELECT created_at FROM activity WHERE account_id = ${id} ORDER BY id DESC LIMIT 1)`.as(
          "last_change_at",
        ),
        lastUsedAt: sql<number | null>`(SELECT max(at) FROM (
          SELECT max(updated_at) AS at FROM sessions WHERE account_id = ${id}
          UNION ALL SELECT max(last_used_at) FROM api_keys WHERE account_id = ${id}))`.as("last_used_at"),
      })
      .from(accounts)
      .where(eq(accounts.id, id)),
    methods: ctx.db.select({ name: identities.providerId }).from(identities).where(eq(identities.userId, id)),
    ledger: ctx.db.select().from(ledgerAccounts).where(eq(ledgerAccounts.id, id)),
    money: ctx.db
      .select({
        currency: invoices.currency,
        paidCents: sql<number>`sum(iif(status = 'paid', amount_cents, 0))`.as("paid_cents"),
        unpaidCents: sql<number>`sum(iif(status = 'unpaid', amount_cents, 0))`.as("unpaid_cents"),
        unpaidCount: sql<number>`sum(status = 'unpaid')`.as("unpaid_count"),
      })
      .from(invoices)
      .where(eq(invoices.accountId, id))
      .groupBy(invoices.currency),
  });
  if (!account) throw new AppError("not_found");
  return {
    ...accountView(account),
    note: account.note,
    emailVerified: account.emailVerified,
    twoFactorEnabled: account.twoFactorEnabled,
    signInMethods: methods.map(({ name }) => name),
    siteCount: account.siteCount,
    databaseCount: account.databaseCount,
    keyCount: account.keyCount,
    sessionCount: account.sessionCount,
    credits: { balance: ledger?.balance ?? 0, held: ledger?.held ?? 0 },
    money,
    lastChangeAt: timeOf(account.lastChangeAt),
    lastUsedAt: timeOf(account.lastUsedAt),
  };
}
