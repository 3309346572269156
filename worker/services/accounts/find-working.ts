import { sql } from "drizzle-orm";
import type { Ctx, Reader } from "../../ctx.ts";
import { accounts, apiKeys, sessions } from "../../db/schema.ts";

type Asked = Pick<Reader, "credential"> & Partial<Reader>;

/**
 * Those among these whose key or session is still valid, in a single query. With an account, it must also still open it: its own key or
 * session does, and an operator's, who views it.
 */
export async function findWorking<One extends Asked>(ctx: Ctx, readers: One[]): Promise<Set<One>> {
  const asked = sql`(SELECT key, value ->> 'credential' AS id, value ->> 'accountId' AS account_id FROM json_each(${JSON.stringify(readers)})) asked`;
  const opens = sql`(a.id = coalesce(asked.account_id, a.id) OR a.role = 'operator')`;
  const rows = await ctx.db.all<{ key: number }>(sql`
    SELECT asked.key FROM ${asked} JOIN ${apiKeys} k ON k.id = asked.id JOIN ${accounts} a ON a.id = k.account_id
    WHERE k.revoked_at IS NULL AND a.suspended_at IS NULL AND ${opens}
    UNION ALL
    SELECT asked.key FROM ${asked} JOIN ${sessions} s ON s.id = asked.id JOIN ${accounts} a ON a.id = s.account_id
    WHERE s.expires_at > ${ctx.now().getTime()} AND ${opens}`);
  return new Set(rows.flatMap(({ key }) => readers[key] ?? []));
}
