import type { BillingTermMonths } from "../../protocol/states.ts";

/** Months of a term → per cent off it. */
export type Discounts = { [Months in BillingTermMonths]?: number | undefined };

/** What a term costs, in minor units: integers only, half a cent rounded up. */
export const termPriceCents = (
  monthCents: number,
  months: BillingTermMonths,
  discounts: Discounts = {},
): number => Math.floor((monthCents * months * (100 - (discounts[months] ?? 0)) + 50) / 100);

export const termText = (months: BillingTermMonths): string =>
  `${months} ${months === 1 ? "month" : "months"}`;

/** Processors charge no less. */
export const leastCents = 50;

/** Unpaid invoices are void after this. */
export const invoiceDueDays = 14;

/** The same day `months` later, or that month's last day (UTC). */
export function addMonths(from: Date, months: number): Date {
  const to = new Date(from);
  to.setUTCDate(1);
  to.setUTCMonth(to.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(to.getUTCFullYear(), to.getUTCMonth() + 1, 0)).getUTCDate();
  to.setUTCDate(Math.min(from.getUTCDate(), lastDay));
  return to;
}

/**
 * What a dearer pack costs for the rest of a term: the difference of the two terms' prices of today, by the share of the term that is
 * left. Whole cents, rounded down, never negative. A term paid ahead has more than one of itself left.
 */
export function proratedCents(
  [oldTermCents, newTermCents]: readonly [number, number],
  months: number,
  paidUntil: Date,
  now: Date,
): number {
  const termMs = paidUntil.getTime() - addMonths(paidUntil, -months).getTime();
  const leftMs = Math.max(0, paidUntil.getTime() - now.getTime());
  // In integers: cents by milliseconds are more than a double holds.
  return Number((BigInt(Math.max(0, newTermCents - oldTermCents)) * BigInt(leftMs)) / BigInt(termMs));
}

/** Processors charge no less than the least; free of charge, a dear pack could be reached by small steps. */
export const chargedCents = (cents: number): number => (cents === 0 ? 0 : Math.max(cents, leastCents));

export const addDays = (from: Date, days: number): Date => new Date(from.getTime() + days * 86_400_000);
