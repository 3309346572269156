import { addDays, addMonths } from "../../../worker/domain/pricing.ts";
import { graceDays, keepSuspendedDays, renewalDays, warnDays } from "../../../worker/domain/terms.ts";

/** A pure model of a site's or database's term: the SQL in billing/terms without D1. */
export type Term = {
  status: "ACTIVE" | "SUSPENDED" | "GONE";
  paidUntil: Date;
  billingTerm: number;
  /** The day of the month on which its terms end, or the last of a shorter month. */
  billingDay: number;
  suspendedAt: Date | null;
  warnedAt: Date | null;
  /** The payable renewal. */
  renewal: { issuedAt: Date; periodEnd: Date } | null;
};

export type TermEvent =
  /** The action the cron takes at this moment. */
  | { kind: "ticked" }
  | { kind: "renewed" }
  /** The payment for the first term, or for the newest renewal, was refunded. */
  | { kind: "refunded"; periodEnd: Date | null }
  /** Voided by an operator; the cron issues another. */
  | { kind: "voided" };

const reached = (from: Date | null, days: number, now: Date): boolean =>
  from !== null && addDays(from, days) <= now;

/** Applies one event; repeating it at the same time changes nothing. */
export function applyToTerm(term: Term, event: TermEvent, now: Date): Term {
  if (term.status === "GONE") return term;
  switch (event.kind) {
    case "ticked":
      return termSteps.reduce((next, step) => step(next, now), term);
    case "renewed": {
      if (!term.renewal) return term;
      const from = term.status === "SUSPENDED" ? now : term.paidUntil;
      const billingDay = term.status === "SUSPENDED" ? now.getUTCDate() : term.billingDay;
      return {
        ...term,
        status: "ACTIVE",
        paidUntil: addMonths(from, term.billingTerm, billingDay),
        billingDay,
        suspendedAt: null,
        warnedAt: null,
        renewal: null,
      };
    }
    case "refunded": {
      const paidUntil = refundedUntil(term.paidUntil, event.periodEnd, now);
      const endsNow = paidUntil < term.paidUntil && paidUntil > (event.periodEnd ?? new Date(0));
      return { ...term, paidUntil, billingDay: endsNow ? now.getUTCDate() : term.billingDay };
    }
    case "voided":
      return { ...term, renewal: null };
  }
}

/**
 * A refunded period is unpaid from now on, or from the start of its term if that is later; a refund never extends the
 * paid time.
 */
export const refundedUntil = (paidUntil: Date, periodEnd: Date | null, now: Date): Date =>
  new Date(Math.min(paidUntil.getTime(), Math.max(now.getTime(), periodEnd?.getTime() ?? 0)));

const issued = (term: Term, now: Date): Term =>
  term.renewal || !reached(term.paidUntil, -renewalDays, now)
    ? term
    : { ...term, renewal: { issuedAt: now, periodEnd: term.paidUntil } };

/** Suspension requires that the owner had an invoice for a week, however long the cron was down. */
const suspended = (term: Term, now: Date): Term =>
  term.status === "ACTIVE" &&
  reached(term.paidUntil, graceDays, now) &&
  reached(term.renewal?.issuedAt ?? null, graceDays, now)
    ? { ...term, status: "SUSPENDED", suspendedAt: now, warnedAt: null }
    : term;

const warned = (term: Term, now: Date): Term =>
  term.status === "SUSPENDED" &&
  term.warnedAt === null &&
  reached(term.suspendedAt, keepSuspendedDays - warnDays, now)
    ? { ...term, warnedAt: now }
    : term;

/** Deletion requires a warning a week earlier. */
const deleted = (term: Term, now: Date): Term =>
  term.status === "SUSPENDED" &&
  reached(term.suspendedAt, keepSuspendedDays, now) &&
  reached(term.warnedAt, warnDays, now)
    ? { ...term, status: "GONE" }
    : term;

/** The cron's steps in order; it may be interrupted between any two. */
export const termSteps = [issued, suspended, warned, deleted] as const;
