import { count, eq } from "drizzle-orm";
import { accountOf, type Ctx } from "../../ctx.ts";
import { activity } from "../../db/schema.ts";

/** How many changes of the caller's account are kept. */
export async function countActivity(ctx: Ctx): Promise<{ count: number }> {
  const [found] = await ctx.db
    .select({ count: count() })
    .from(activity)
    .where(eq(activity.accountId, accountOf(ctx)));
  return { count: found?.count ?? 0 };
}
