import { and, eq, isNull, ne, sql } from "drizzle-orm";
import type { Account, AccountSuspend } from "../../../protocol/api/accounts.ts";
import type { ById } from "../../../protocol/api/common.ts";
import { suspendOfAccounts } from "../../billing/terms/suspend.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { accounts } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { queueMail } from "../../mails/queue.ts";
import { idIn, requireFound } from "../owned.ts";
import { changeForGuards, tellOfChange } from "./tell-guards.ts";
import { accountView } from "./view.ts";

/**
 * Its sites and databases are stopped and keep their data, its keys are refused, its sessions only read. The cron completes
 * an interrupted suspension, and stops what is paid for meanwhile. Repeating it changes nothing.
 */
export async function suspendAccount(
  ctx: Ctx,
  { id: accountId, reason }: ById & AccountSuspend,
): Promise<Account> {
  const id = idIn("account", accountId);
  const now = ctx.now();
  const suspended = sql`EXISTS (SELECT 1 FROM accounts WHERE id = ${id} AND suspended_at = ${now.getTime()})`;
  const { keys, account } = await batch(ctx, {
    change: ctx.db
      .update(accounts)
      .set({ suspendedAt: now, suspendedFor: reason, updatedAt: now })
      .where(and(eq(accounts.id, id), ne(accounts.role, "operator"), isNull(accounts.suspendedAt))),
    keys: changeForGuards(ctx, id),
    mail: queueMail(
      ctx,
      {
        id: `account-suspended:${id}:${now.getTime()}`,
        accountId: id,
        subject: "Your account is suspended",
        text: `Your account is suspended: ${reason}\n\nYour sites and databases are stopped, and their data is kept. Your API keys are refused. You can still sign in, see everything and pay invoices. Contact the operator of this service to have it released.`,
      },
      suspended,
    ),
    account: ctx.db.select().from(accounts).where(eq(accounts.id, id)),
  });
  await Promise.all(keys.map((key) => tellOfChange(ctx, key)));
  const changed = requireFound(account[0]);
  if (changed.suspendedAt === null)
    throw conflict("This is an operator account. Change its role to user first.");
  await suspendOfAccounts(ctx, id);
  return accountView(changed);
}
