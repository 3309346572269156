import { and, desc, eq, lt } from "drizzle-orm";
import type {
  Conversation,
  ConversationDeleted,
  ConversationPatch,
  ConversationWithMessages,
} from "../../../protocol/api/chat.ts";
import type { ById, ListQuery, Page, Resumed } from "../../../protocol/api/common.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { conversations } from "../../db/schema.ts";
import { addDays } from "../../domain/pricing.ts";
import { idIn, requireOwned } from "../owned.ts";
import { before, page } from "../page.ts";
import { unlessRefused } from "./unless-refused.ts";

type Row = typeof conversations.$inferSelect;
const keptDays = 30;

const view = ({ id, title, createdAt, updatedAt }: Row): Conversation => ({
  id,
  title,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
});

/** @throws AppError not_found, forbidden */
async function conversationOwnedBy(ctx: Ctx, id: string): Promise<Row> {
  const [row] = await ctx.db
    .select()
    .from(conversations)
    .where(eq(conversations.id, idIn("conversation", id)));
  return requireOwned(ctx, row);
}

/** Those that were gone on with in the last thirty days, by their beginning. */
export async function listConversations(ctx: Ctx, query: ListQuery): Promise<Page<Conversation>> {
  const rows = await ctx.db
    .select()
    .from(conversations)
    .where(and(eq(conversations.accountId, accountOf(ctx)), before(conversations.id, query)))
    .orderBy(desc(conversations.id))
    .limit(query.limit + 1);
  return page(rows, query, view);
}

/** With all its messages: also the way to export it. */
export async function getConversation(ctx: Ctx, { id }: ById): Promise<ConversationWithMessages> {
  const row = await conversationOwnedBy(ctx, id);
  const answer = await ctx.conversations.history(row.id, row.accountId);
  return { ...view(row), ...("refused" in answer ? { messages: [], pendingAction: null } : answer) };
}

/** What happens in it now, after the last event that the reader has seen. */
export async function followConversation(
  ctx: Ctx,
  { id, lastEventId }: ById & Resumed,
): Promise<ReadableStream<Uint8Array>> {
  const row = await conversationOwnedBy(ctx, id);
  const after = Number(lastEventId ?? 0);
  const from = Number.isSafeInteger(after) ? after : 0;
  return unlessRefused(await ctx.conversations.resume(row.id, row.accountId, from)).events;
}

export async function renameConversation(
  ctx: Ctx,
  { id, title }: ById & ConversationPatch,
): Promise<Conversation> {
  const row = await conversationOwnedBy(ctx, id);
  await ctx.db.batch([ctx.db.update(conversations).set({ title }).where(eq(conversations.id, row.id))]);
  return view({ ...row, title });
}

export async function removeConversation(ctx: Ctx, { id }: ById): Promise<ConversationDeleted> {
  const row = await conversationOwnedBy(ctx, id);
  await ctx.conversations.remove(row.id);
  await ctx.db.batch([ctx.db.delete(conversations).where(eq(conversations.id, row.id))]);
  return { id: row.id, removed: true };
}

/** Their messages have gone by themselves. */
export async function forgetOldConversations(ctx: Ctx): Promise<void> {
  await ctx.db.delete(conversations).where(lt(conversations.updatedAt, addDays(ctx.now(), -keptDays)));
}
