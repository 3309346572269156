import { eq, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { ledgerHolds } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { availableCredits } from "./balance.ts";

type Wanted = {
  /** Id of the interaction; one hold each. */
  id: string;
  accountId: Id<"account">;
  amount: number;
  /** If fewer than `amount` can be spent, all of them are held, at least this many. Default: `amount`. */
  least?: number;
  /** The hold is voided automatically after this. */
  expiresAt: Date;
};

/**
 * Holds credits for an interaction in progress; idempotent by id. @returns how many are held
 * @throws AppError payment_required
 */
export async function holdCredits(
  ctx: Ctx,
  { id, accountId, amount, least = amount, expiresAt }: Wanted,
): Promise<number> {
  const {
    hold: [hold],
  } = await batch(ctx, {
    ledgerHolds: ctx.statement(sql`
      INSERT INTO ledger_holds (id, account_id, amount, status, created_at, expires_at)
      SELECT ${id}, id, min(${amount}, balance - held), 'open', ${ctx.now().getTime()}, ${expiresAt.getTime()}
      FROM ledger_accounts WHERE id = ${accountId} AND balance - held >= ${least} ON CONFLICT DO NOTHING`),
    hold: ctx.db.select().from(ledgerHolds).where(eq(ledgerHolds.id, id)),
  });
  if (!hold)
    throw new AppError("payment_required", {
      balance: await availableCredits(ctx, accountId),
      needed: least,
    });
  if (hold.accountId !== accountId || hold.amount > amount || hold.amount < least)
    throw new Error(`Hold ${id} exists with another account or amount`);
  return hold.amount;
}
