import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { ledgerAccounts } from "../../db/schema.ts";

/** The credits that can be spent now: the balance minus active holds. */
export async function availableCredits(ctx: Ctx, accountId: Id<"account">): Promise<number> {
  const [account] = await ctx.db.select().from(ledgerAccounts).where(eq(ledgerAccounts.id, accountId));
  return account ? account.balance - account.held : 0;
}
