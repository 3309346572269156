import { and, asc, eq, gt, isNull, like, lt, lte, or } from "drizzle-orm";
import { canMail, sendMail } from "../adapters/mail.ts";
import type { Ctx } from "../ctx.ts";
import { accounts, mails } from "../db/schema.ts";
import { addDays } from "../domain/pricing.ts";
import { logError } from "../log-error.ts";

const atOnce = 50;
const retryMs = 10 * 60_000;
/** News older than this is none; but the warning of a deletion, which waits for it. */
const giveUpDays = 3;
/** The id keeps an occasion from being told twice, so it stays longer than any repeats. */
const keepDays = 120;

/** By cron. Whoever moves a mail's next try on sends it; its id goes along, so that a service that knows it sends it once. */
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
