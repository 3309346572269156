import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { accountOf, type Ctx } from "../../ctx.ts";

const maxTitleLength = 80;

/** The conversation is in its account's list, by its first message, as the newest. */
export async function touchConversation(ctx: Ctx, id: Id<"conversation">, message: string): Promise<void> {
  const now = ctx.now().getTime();
  const title = message.trim().replaceAll(/\s+/g, " ").slice(0, maxTitleLength);
  await ctx.statement(sql`
    INSERT INTO conversations (id, account_id, title, created_at, updated_at)
    VALUES (${id}, ${accountOf(ctx)}, ${title}, ${now}, ${now})
    ON CONFLICT (id) DO UPDATE SET updated_at = ${now}`);
}
