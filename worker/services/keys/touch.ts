import { eq } from "drizzle-orm";
import type { Db } from "../../context.ts";
import { apiKeys } from "../../db/schema.ts";

/** Shown as "last used"; the guard calls it at most every five minutes. */
export async function touchKey(db: Db, keyHash: string, at: Date): Promise<void> {
  await db.update(apiKeys).set({ lastUsedAt: at }).where(eq(apiKeys.hash, keyHash));
}
