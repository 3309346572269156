import { eq } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { testSessions } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";

type TestPayment = {
  id: string;
  amountCents: number;
  currency: string;
  returnUrl: string;
  isOpen: boolean;
};

/** @throws AppError not_found, also if another processor is configured */
export async function getTestPayment(ctx: Ctx, id: string): Promise<TestPayment> {
  const [row] = ctx.payments.payAtOnce
    ? await ctx.db.select().from(testSessions).where(eq(testSessions.id, id))
    : [];
  if (!row) throw new AppError("not_found");
  const { amountCents, currency, returnUrl, status, expiresAt } = row;
  return { id, amountCents, currency, returnUrl, isOpen: status === "open" && expiresAt > ctx.now() };
}

/** Simulates the customer's payment at the test processor; the invoice is updated as with any processor. */
export async function payTestPayment(ctx: Ctx, id: string): Promise<TestPayment> {
  const payment = await getTestPayment(ctx, id);
  await ctx.payments.payAtOnce?.(id);
  return payment;
}
