import { sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";

/**
 * Run by cron: a browser that never comes back leaves its session. Of each account's newest only the browser and its address go, as
 * it tells operators when the account was last used.
 */
export async function forgetEndedSessions(ctx: Ctx): Promise<void> {
  const now = ctx.now().getTime();
  await ctx.db.batch([
    ctx.statement(sql`
      DELETE FROM sessions WHERE expires_at <= ${now} AND EXISTS (SELECT 1 FROM sessions newer
        WHERE newer.account_id = sessions.account_id AND newer.updated_at > sessions.updated_at)`),
    ctx.statement(sql`
      UPDATE sessions SET ip_address = NULL, user_agent = NULL
      WHERE expires_at <= ${now} AND (ip_address IS NOT NULL OR user_agent IS NOT NULL)`),
  ]);
}
