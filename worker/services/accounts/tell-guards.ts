import { and, eq, isNotNull, isNull } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";
import { eachAlone } from "../../each-alone.ts";

const atOnce = 100;

type Untold = Pick<typeof apiKeys.$inferSelect, "id" | "hash" | "untoldChange">;

/** For the batch that changes an account: its keys, whose guards keep a copy of it and must then be told. */
export const changeForGuards = (ctx: Ctx, accountId: Id<"account">) =>
  ctx.db
    .update(apiKeys)
    .set({ untoldChange: ctx.newMark() })
    .where(and(eq(apiKeys.accountId, accountId), isNull(apiKeys.revokedAt)))
    .returning({ id: apiKeys.id, hash: apiKeys.hash, untoldChange: apiKeys.untoldChange });

/** Notifies a key's guard of a change of its account; idempotent. */
export async function tellOfChange(ctx: Ctx, { id, hash, untoldChange }: Untold): Promise<void> {
  await ctx.guards.forget(hash);
  await ctx.db
    .update(apiKeys)
    .set({ untoldChange: null })
    .where(and(eq(apiKeys.id, id), eq(apiKeys.untoldChange, untoldChange ?? "")));
}

/** Completes interrupted account changes; until notified, guards use the previous role and plan. */
export async function finishAccountChanges(ctx: Ctx): Promise<void> {
  const untold = await ctx.db
    .select({ id: apiKeys.id, hash: apiKeys.hash, untoldChange: apiKeys.untoldChange })
    .from(apiKeys)
    .where(isNotNull(apiKeys.untoldChange))
    .limit(atOnce);
  await eachAlone("finish account changes", untold, (key) => tellOfChange(ctx, key), atOnce);
}
