import { and, eq, isNotNull } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";
import { eachAlone } from "../../each-alone.ts";

const atOnce = 100;

type Untold = Pick<typeof apiKeys.$inferSelect, "id" | "hash" | "untoldChange">;

/** The guard of a key hears that its account has changed; it may hear of it again. */
export async function tellOfChange(ctx: Ctx, { id, hash, untoldChange }: Untold): Promise<void> {
  await ctx.guards.forget(hash);
  await ctx.db
    .update(apiKeys)
    .set({ untoldChange: null })
    .where(and(eq(apiKeys.id, id), eq(apiKeys.untoldChange, untoldChange ?? "")));
}

/** Changes of accounts that were cut short between the record and the guards, which go by what was until they hear. */
export async function finishAccountChanges(ctx: Ctx): Promise<void> {
  const untold = await ctx.db
    .select({ id: apiKeys.id, hash: apiKeys.hash, untoldChange: apiKeys.untoldChange })
    .from(apiKeys)
    .where(isNotNull(apiKeys.untoldChange))
    .limit(atOnce);
  await eachAlone("finish account changes", untold, (key) => tellOfChange(ctx, key), atOnce);
}
