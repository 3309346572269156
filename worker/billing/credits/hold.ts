import { eq, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { ledgerHolds } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { availableCredits } from "./balance.ts";

type Wanted = {
  /** Of the interaction: one hold each. */
  id: string;
  accountId: Id<"account">;
  amount: number;
  /** Voided by itself after this. */
  expiresAt: Date;
};

/** Keeps credits for something under way; asked for again, it is the same hold. @throws AppError payment_required */
export async function holdCredits(ctx: Ctx, { id, accountId, amount, expiresAt }: Wanted): Promise<void> {
  const {
    hold: [hold],
  } = await batch(ctx, {
    ledgerHolds: ctx.statement(sql`
      INSERT INTO ledger_holds (id, account_id, amount, status, created_at, expires_at)
      SELECT ${id}, id, ${amount}, 'open', ${ctx.now().getTime()}, ${expiresAt.getTime()}
      FROM ledger_accounts WHERE id = ${accountId} AND balance - held >= ${amount} ON CONFLICT DO NOTHING`),
    hold: ctx.db.select().from(ledgerHolds).where(eq(ledgerHolds.id, id)),
  });
  if (!hold)
    throw new AppError("payment_required", {
      balance: await availableCredits(ctx, accountId),
      needed: amount,
    });
  if (hold.accountId !== accountId || hold.amount !== amount)
    throw new Error(`Hold ${id} is another one's already`);
}
