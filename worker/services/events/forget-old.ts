import { sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { followedMs } from "./read.ts";

/**
 * Run by cron. Readers further back than ten minutes begin anew. The newest change stays, because the next number is
 * compared with it.
 */
export async function forgetOldChanges(ctx: Ctx): Promise<void> {
  const now = ctx.now().getTime();
  const firstKept = sql`
    coalesce((SELECT seq FROM changes WHERE created_at >= ${now - followedMs} ORDER BY seq LIMIT 1),
      (SELECT max(seq) FROM changes), 0)`;
  await ctx.db.batch([
    ctx.statement(sql`DELETE FROM followed_accounts WHERE until < ${now}`),
    ctx.statement(sql`
      UPDATE followed_accounts SET since_seq = gone.seq
      FROM (SELECT account_id, max(seq) AS seq FROM changes WHERE seq < ${firstKept} GROUP BY account_id) gone
      WHERE gone.account_id = followed_accounts.account_id AND gone.seq > since_seq`),
    ctx.statement(sql`DELETE FROM changes WHERE seq < ${firstKept}`),
  ]);
}
