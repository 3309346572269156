import { and, eq, isNull, sql } from "drizzle-orm";
import type { AccountDelete, AccountDeleted } from "../../../protocol/api/self-service.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { accounts, apiKeys, conversations } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { eachAlone } from "../../each-alone.ts";
import { tellGuard } from "../keys/finish-revocations.ts";
import { getAccountDeletion, obstaclesOf } from "./deletion.ts";
import { requireSecondFactor } from "./second-factor.ts";

const atOnce = 50;

/**
 * Deletes the account for good: its keys, sessions, sign-in methods, conversations, notifications and backups; its name and address become
 * those of nobody. Invoices, payments and credits are kept, as the law and the ledger need them, and the audit log for its
 * year. Nothing happens while something stands in the way. @throws AppError invalid_request, conflict, rate_limited
 */
export async function removeAccount(
  ctx: Ctx,
  { email, loseCredits, code }: AccountDelete,
): Promise<AccountDeleted> {
  const id = accountOf(ctx);
  const giveCodeBack = await requireSecondFactor(ctx, id, code ?? "");
  const now = ctx.now().getTime();
  const mark = `deleted-${id}@${ctx.newMark().toLowerCase()}.invalid`;
  const none = sql.join(
    Object.values(obstaclesOf).map((obstacle) => sql`${obstacle} = 0`),
    sql` AND `,
  );
  const gone = sql`EXISTS (SELECT 1 FROM accounts WHERE id = ${id} AND email = ${mark})`;
  const answers = await batch(ctx, {
    change: ctx.statement(sql`
      UPDATE accounts AS a SET name = 'Deleted account', email = ${mark}, email_verified = 0, image = NULL, note = NULL, deleted_at = ${now},
        updated_at = ${now}
      WHERE id = ${id} AND email = ${email.trim().toLowerCase()} AND ${none}
        AND (${Number(loseCredits)} OR coalesce((SELECT balance FROM ledger_accounts WHERE id = a.id), 0) = 0)`),
    keys: ctx.db
      .update(apiKeys)
      .set({ revokedAt: ctx.now() })
      .where(and(eq(apiKeys.accountId, id), isNull(apiKeys.revokedAt), gone))
      .returning({ id: apiKeys.id, hash: apiKeys.hash }),
    sessions: ctx.statement(sql`DELETE FROM sessions WHERE account_id = ${id} AND ${gone}`),
    identities: ctx.statement(sql`DELETE FROM identities WHERE account_id = ${id} AND ${gone}`),
    twoFactors: ctx.statement(sql`DELETE FROM two_factors WHERE account_id = ${id} AND ${gone}`),
    verifications: ctx.statement(sql`DELETE FROM verifications WHERE value = ${id} AND ${gone}`),
    // Invoices have a copy of their own.
    billingDetails: ctx.statement(sql`DELETE FROM billing_details WHERE account_id = ${id} AND ${gone}`),
    mails: ctx.statement(sql`DELETE FROM mails WHERE account_id = ${id} AND sent_at IS NULL AND ${gone}`),
    channels: ctx.statement(sql`DELETE FROM notification_channels WHERE account_id = ${id} AND ${gone}`),
    deliveries: ctx.statement(sql`DELETE FROM deliveries WHERE account_id = ${id} AND ${gone}`),
    notices: ctx.statement(sql`DELETE FROM notices WHERE account_id = ${id} AND ${gone}`),
    backups: ctx.statement(
      sql`UPDATE backups SET removed_at = ${now} WHERE account_id = ${id} AND removed_at IS NULL AND ${gone}`,
    ),
    conversations: ctx.db
      .delete(conversations)
      .where(and(eq(conversations.accountId, id), gone))
      .returning({ id: conversations.id }),
    done: ctx.db
      .select({ id: accounts.id })
      .from(accounts)
      .where(and(eq(accounts.id, id), eq(accounts.email, mark))),
  });
  if (answers.done.length === 0) {
    await giveCodeBack();
    throw await refusal(ctx, loseCredits);
  }
  await eachAlone("revoke keys of a deleted account", answers.keys, (key) => tellGuard(ctx, key), atOnce);
  ctx.defer(
    eachAlone(
      "remove conversations of a deleted account",
      answers.conversations,
      (conversation) => ctx.conversations.remove(conversation.id),
      atOnce,
    ),
  );
  return { id, deleted: true };
}

async function refusal(ctx: Ctx, loseCredits: boolean) {
  const { obstacles, credits } = await getAccountDeletion(ctx);
  if (obstacles.length > 0)
    return conflict(`The account was not deleted. ${obstacles.map(({ reason }) => reason).join(" ")}`);
  if (credits > 0 && !loseCredits)
    return conflict(
      `The account was not deleted. It has ${credits} credits, which would be lost: send loseCredits.`,
    );
  return invalid("email", "not the account's address");
}
