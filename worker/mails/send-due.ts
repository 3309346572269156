import { and, asc, eq, gt, isNull, like, lt, lte, or } from "drizzle-orm";
import { canMail, sendMail } from "../adapters/mail.ts";
import type { Ctx } from "../ctx.ts";
import { accounts, mails } from "../db/schema.ts";
import { addDays } from "../domain/pricing.ts";
import { logError } from "../log-error.ts";

const atOnce = 50;
const retryMs = 10 * 60_000;
/** Mails older than this are dropped, except deletion warnings, which the deletion waits for. */
export const giveUpDays = 3;
/** The id prevents duplicate mails, so it is kept longer than any event can repeat. */
const keepDays = 120;

/** Run by cron. Only the caller that moves the mail's next attempt sends it; its id is passed as idempotency key. */
export async function sendDueMails(ctx: Ctx): Promise<void> {
  const now = ctx.now();
  await ctx.db.delete(mails).where(lt(mails.createdAt, addDays(now, -keepDays)));
  if (!canMail(ctx.config)) return;
  const due = await ctx.db
    .select({ mail: mails, to: accounts.email })
    .from(mails)
    .innerJoin(accounts, eq(accounts.id, mails.accountId))
    .where(
      and(
        isNull(mails.sentAt),
        lte(mails.tryAt, now),
        or(gt(mails.createdAt, addDays(now, -giveUpDays)), like(mails.id, "deletion:%")),
      ),
    )
    .orderBy(asc(mails.tryAt))
    .limit(atOnce);
  for (const { mail, to } of due) {
    const [taken] = await ctx.db
      .update(mails)
      .set({ tryAt: new Date(now.getTime() + retryMs) })
      .where(and(eq(mails.id, mail.id), isNull(mails.sentAt), eq(mails.tryAt, mail.tryAt)))
      .returning({ id: mails.id });
    if (!taken) continue;
    try {
      await sendMail(ctx.config, { to, subject: mail.subject, text: mail.text }, mail.id);
      await ctx.db.update(mails).set({ sentAt: now }).where(eq(mails.id, mail.id));
    } catch (error) {
      logError({ mail: mail.id }, error);
    }
  }
}
