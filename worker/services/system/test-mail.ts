import { eq } from "drizzle-orm";
import type { MailTested } from "../../../protocol/api/system.ts";
import { canMail, sendMail } from "../../adapters/mail.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { accounts } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";

/** Sends a mail to the caller, and says how the mail service answered. @throws AppError conflict */
export async function testMail(ctx: Ctx): Promise<MailTested> {
  if (!canMail(ctx.config)) throw conflict("This installation cannot send mail: set MAIL_ENDPOINT.");
  const [account] = await ctx.db
    .select({ email: accounts.email })
    .from(accounts)
    .where(eq(accounts.id, accountOf(ctx)));
  if (!account) throw new AppError("not_found");
  const mail = {
    to: account.email,
    subject: "Mail works",
    text: `This mail was sent by ${ctx.config.SITE_URL}, because an operator requested a test.\n`,
  };
  await sendMail(ctx.config, mail).catch((error: unknown) => {
    throw conflict(
      `The mail was not sent: ${error instanceof Error ? error.message : "the mail service did not answer"}. Check MAIL_ENDPOINT, MAIL_TOKEN and MAIL_FROM.`,
    );
  });
  return { to: account.email, sent: true };
}
