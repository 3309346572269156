import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { ledgerAccounts } from "../../db/schema.ts";

/** The sum of an account's transactions, and how much of it active holds keep. */
export async function creditsOf(
  ctx: Ctx,
  accountId: Id<"account">,
): Promise<{ balance: number; held: number }> {
  const [account] = await ctx.db.select().from(ledgerAccounts).where(eq(ledgerAccounts.id, accountId));
  return account ?? { balance: 0, held: 0 };
}

/** The credits that can be spent now: the balance minus active holds. */
export async function availableCredits(ctx: Ctx, accountId: Id<"account">): Promise<number> {
  const { balance, held } = await creditsOf(ctx, accountId);
  return balance - held;
}
