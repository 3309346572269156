import { and, eq, isNotNull, sql } from "drizzle-orm";
import type { Account } from "../../../protocol/api/accounts.ts";
import type { ById } from "../../../protocol/api/common.ts";
import { resumeReleased } from "../../billing/terms/resume.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { tableOf, termed } from "../../db/resource.ts";
import { accounts } from "../../db/schema.ts";
import { queueMail } from "../../mails/queue.ts";
import { idIn, requireFound } from "../owned.ts";
import { changeForGuards, tellOfChange } from "./tell-guards.ts";
import { accountView } from "./view.ts";

/**
 * What ran before the suspension and is paid for starts again; the cron completes an interrupted release. What is not
 * paid for is kept as if it were suspended now: no renewal was issued meanwhile, and its deletion must be announced again.
 */
export async function releaseAccount(ctx: Ctx, { id: accountId }: ById): Promise<Account> {
  const id = idIn("account", accountId);
  const now = ctx.now();
  const isSuspended = sql`EXISTS (SELECT 1 FROM accounts WHERE id = ${id} AND suspended_at IS NOT NULL)`;
  const { keys, account } = await batch(ctx, {
    mail: queueMail(
      ctx,
      {
        id: `account-released:${id}:${now.getTime()}`,
        accountId: id,
        subject: "Your account is no longer suspended",
        text: "Your account is no longer suspended. Your API keys work again, and what was running starts again, if it is paid for.",
      },
      isSuspended,
    ),
    terms: termed.map((kind) =>
      ctx.statement(sql`
        UPDATE ${tableOf(kind)} SET suspended_at = ${now.getTime()}
        WHERE account_id = ${id} AND status = 'SUSPENDED' AND ${isSuspended}`),
    ),
    change: ctx.db
      .update(accounts)
      .set({ suspendedAt: null, suspendedFor: null, releasedAt: now, updatedAt: now })
      .where(and(eq(accounts.id, id), isNotNull(accounts.suspendedAt))),
    keys: changeForGuards(ctx, id),
    account: ctx.db.select().from(accounts).where(eq(accounts.id, id)),
  });
  await Promise.all(keys.map((key) => tellOfChange(ctx, key)));
  const changed = requireFound(account[0]);
  await resumeReleased(ctx, id);
  return accountView(changed);
}
