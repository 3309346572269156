import { sql, type SQL } from "drizzle-orm";
import type { Ctx } from "../ctx.ts";

type QueuedMail = { id: string; accountId: string; subject: string; text: string };

/** A statement for the batch that causes the mail; sends it once per id, however often it is repeated. */
export const queueMail = (ctx: Ctx, { id, accountId, subject, text }: QueuedMail, guard: SQL = sql`true`) => {
  const now = ctx.now().getTime();
  return ctx.statement(sql`
    INSERT INTO mails (id, account_id, subject, text, created_at, try_at)
    SELECT ${id}, ${accountId}, ${subject}, ${text}, ${now}, ${now} WHERE ${guard} ON CONFLICT (id) DO NOTHING`);
};
