import { and, eq, isNotNull } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";
import { eachAlone } from "../../each-alone.ts";

const atOnce = 100;

type Untold = Pick<typeof apiKeys.$inferSelect, "id" | "hash" | "untoldChange">;

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
