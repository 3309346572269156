import { sql } from "drizzle-orm";
import type { Credential, Ctx } from "../../ctx.ts";
import { accounts, apiKeys, sessions } from "../../db/schema.ts";

/** The keys and sessions among these that are still valid, in a single query. */
export async function findWorking(ctx: Ctx, credentials: Credential[]): Promise<Set<Credential>> {
  const asked = sql`(SELECT value FROM json_each(${JSON.stringify(credentials)}))`;
  const rows = await ctx.db.all<{ id: Credential }>(sql`
    SELECT k.id FROM ${apiKeys} k JOIN ${accounts} a ON a.id = k.account_id WHERE k.id IN ${asked} AND k.revoked_at IS NULL AND a.suspended_at IS NULL
    UNION ALL
    SELECT s.id FROM ${sessions} s JOIN ${accounts} a ON a.id = s.account_id
    WHERE s.id IN ${asked} AND s.expires_at > ${ctx.now().getTime()}`);
  return new Set(rows.map(({ id }) => id));
}
