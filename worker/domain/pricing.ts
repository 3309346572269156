import type { BillingTermMonths } from "../../protocol/states.ts";

/** Months of a term → discount in percent. */
export type Discounts = { [Months in BillingTermMonths]?: number | undefined };

/** The price of a term in minor units: integer arithmetic, half a cent rounded up. */
export const termPriceCents = (monthCents: number, months: BillingTermMonths, discounts: Discounts): number =>
  Math.floor((monthCents * months * (100 - (discounts[months] ?? 0)) + 50) / 100);

export const termText = (months: BillingTermMonths): string =>
  `${months} ${months === 1 ? "month" : "months"}`;

/** The minimum that processors charge. */
export const leastCents = 50;

/** Unpaid invoices become void after this time. */
export const invoiceDueDays = 14;

/** The given day of the month `months` later, or that month's last day (UTC). */
export function addMonths(from: Date, months: number, dayOfMonth = from.getUTCDate()): Date {
  const to = new Date(from);
  to.setUTCDate(1);
  to.setUTCMonth(to.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(to.getUTCFullYear(), to.getUTCMonth() + 1, 0)).getUTCDate();
  to.setUTCDate(Math.min(dayOfMonth, lastDay));
  return to;
}

/** The day of the month on which the terms of a site or database end, or the last of a shorter month; null: not paid. */
export const billingDayOf = ({
  billingDay,
  paidUntil,
}: {
  billingDay: number | null;
  paidUntil: Date | null;
}): number | null => billingDay ?? paidUntil?.getUTCDate() ?? null;

/**
 * The price of an upgrade for the rest of a term: the difference of the current prices of the two terms, prorated by
 * the remaining time, rounded down to whole cents, never negative. A term paid ahead counts in full.
 */
export function proratedCents(
  [oldTermCents, newTermCents]: readonly [number, number],
  { months, paidUntil, billingDay }: { months: number; paidUntil: Date; billingDay: number | null },
  now: Date,
): number {
  const termMs = paidUntil.getTime() - addMonths(paidUntil, -months, billingDay ?? undefined).getTime();
  const leftMs = Math.max(0, paidUntil.getTime() - now.getTime());
  // BigInt, since cents times milliseconds exceeds a double's precision.
  return Number((BigInt(Math.max(0, newTermCents - oldTermCents)) * BigInt(leftMs)) / BigInt(termMs));
}

/** At least the minimum charge; otherwise an expensive pack could be reached for free in small steps. */
export const chargedCents = (cents: number): number => (cents === 0 ? 0 : Math.max(cents, leastCents));

export const addDays = (from: Date, days: number): Date => new Date(from.getTime() + days * 86_400_000);

/** The part of an amount that is tax at a rate of at most two decimals; the rest is rounded to the nearest cent. */
export function includedTaxCents(amountCents: number, percent: number): number {
  const hundredths = Math.round(percent * 100);
  return amountCents - Math.round((amountCents * 10_000) / (10_000 + hundredths));
}
