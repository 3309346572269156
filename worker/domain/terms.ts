import { addDays } from "./pricing.ts";

/** A renewal invoice is issued this long before the end of a term. */
export const renewalDays = 7;
/**
 * An unrenewed resource keeps running this long after the end of its term, and at least this long after its invoice.
 */
export const graceDays = 7;
/** When it is stopped if its renewal is not paid. */
export const stopsAt = (paidUntil: Date, issuedAt: Date): Date =>
  addDays(issuedAt > paidUntil ? issuedAt : paidUntil, graceDays);
/** A suspended resource is kept this long. */
export const keepSuspendedDays = 30;
/** Its owner is warned this long before the deletion. */
export const warnDays = 7;
