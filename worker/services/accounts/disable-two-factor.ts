import { eq, sql } from "drizzle-orm";
import type { Account } from "../../../protocol/api/accounts.ts";
import type { ById } from "../../../protocol/api/common.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { accounts } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { queueMail } from "../../mails/queue.ts";
import { idIn, requireFound } from "../owned.ts";
import { accountView } from "./view.ts";

/**
 * For an owner who has lost both the app and the recovery codes: the password, or GitHub, alone signs in again. All of the account's
 * sessions end, and its owner is mailed. Repeating it changes nothing. Operators turn off their own with a code.
 */
export async function disableTwoFactor(ctx: Ctx, { id: accountId }: ById): Promise<Account> {
  const id = idIn("account", accountId);
  if (id === accountOf(ctx))
    throw conflict("Turn off your own two-step sign-in in your settings, which requires a code.");
  const now = ctx.now();
  const isOn = sql`EXISTS (SELECT 1 FROM accounts WHERE id = ${id} AND two_factor_enabled)`;
  const { account } = await batch(ctx, {
    mail: queueMail(
      ctx,
      {
        id: `two-factor-disabled:${id}:${now.getTime()}`,
        accountId: id,
        subject: "Two-step sign-in was turned off",
        text: "An operator turned off the two-step sign-in of your account, at the request of somebody who has neither the authenticator app nor the recovery codes. You are signed out everywhere; signing in no longer requires a code.\n\nIf you asked for it, sign in and set it up again in the settings. If you did not, change your password immediately, and tell the operator of this service.",
      },
      isOn,
    ),
    sessions: ctx.statement(sql`DELETE FROM sessions WHERE account_id = ${id} AND ${isOn}`),
    secrets: ctx.statement(sql`DELETE FROM two_factors WHERE account_id = ${id} AND ${isOn}`),
    // Last, because the others ask whether it is on.
    change: ctx.statement(
      sql`UPDATE accounts SET two_factor_enabled = 0, updated_at = ${now.getTime()} WHERE id = ${id} AND two_factor_enabled`,
    ),
    account: ctx.db.select().from(accounts).where(eq(accounts.id, id)),
  });
  return accountView(requireFound(account[0]));
}
