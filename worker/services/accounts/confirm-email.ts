import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts } from "../../db/schema.ts";

/** Opening the mailed link proves control of the address. */
export async function confirmEmail(ctx: Ctx, accountId: Id<"account">): Promise<void> {
  await ctx.db.update(accounts).set({ emailVerified: true }).where(eq(accounts.id, accountId));
}
