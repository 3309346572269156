import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { typed } from "../../../protocol/looking-at.ts";
import { accountOf, type Ctx } from "../../ctx.ts";

const maxTitleLength = 80;

/**
 * The conversation is in its account's list, by its first message, as the newest. @returns false: its account is deleted, and has
 * none
 */
export async function touchConversation(ctx: Ctx, id: Id<"conversation">, message: string): Promise<boolean> {
  const now = ctx.now().getTime();
  const title = typed(message).trim().replaceAll(/\s+/g, " ").slice(0, maxTitleLength);
  const listed = await ctx.db.all(sql`
    INSERT INTO conversations (id, account_id, title, created_at, updated_at)
    SELECT ${id}, id, ${title}, ${now}, ${now} FROM accounts WHERE id = ${accountOf(ctx)} AND deleted_at IS NULL
    ON CONFLICT (id) DO UPDATE SET updated_at = ${now} RETURNING id`);
  return listed.length > 0;
}
