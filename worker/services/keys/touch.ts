import { eq } from "drizzle-orm";
import type { Db } from "../../ctx.ts";
import { apiKeys } from "../../db/schema.ts";

/** Updates "last used"; the guard calls it at most every five minutes. false: the record does not contain this key. */
export async function touchKey(db: Db, keyHash: string, at: Date): Promise<boolean> {
  const touched = await db
    .update(apiKeys)
    .set({ lastUsedAt: at })
    .where(eq(apiKeys.hash, keyHash))
    .returning({ id: apiKeys.id });
  return touched.length > 0;
}
