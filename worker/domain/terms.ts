import { addDays, addMonths } from "./pricing.ts";

/** A renewal invoice is there so long before a term ends. */
export const renewalDays = 7;
/** What is not renewed goes on so long behind the end, and at least so long behind its invoice. */
export const graceDays = 7;
/** What is suspended is kept so long. */
export const keepSuspendedDays = 30;
/** Its owner is warned so long before it is deleted. */
export const warnDays = 7;

/** The term of a site or database: what the statements of billing/terms do, said once more without D1. */
export type Term = {
  status: "ACTIVE" | "SUSPENDED" | "GONE";
  paidUntil: Date;
  billingTerm: number;
  suspendedAt: Date | null;
  warnedAt: Date | null;
  /** The renewal that can be paid. */
  renewal: { issuedAt: Date; periodEnd: Date } | null;
};

export type TermEvent =
  /** What the cron does at this moment. */
  | { kind: "ticked" }
  | { kind: "renewed" }
  /** The money of the first term, or of the newest renewal, was given back. */
  | { kind: "refunded"; periodEnd: Date | null }
  /** By an operator; the cron issues another. */
  | { kind: "voided" };

const reached = (from: Date | null, days: number, now: Date): boolean =>
  from !== null && addDays(from, days) <= now;

/** One event; repeated at the same moment it changes nothing more. */
export function applyToTerm(term: Term, event: TermEvent, now: Date): Term {
  if (term.status === "GONE") return term;
  switch (event.kind) {
    case "ticked":
      return termSteps.reduce((next, step) => step(next, now), term);
    case "renewed": {
      if (!term.renewal) return term;
      const from = term.status === "SUSPENDED" ? now : term.paidUntil;
      return {
        ...term,
        status: "ACTIVE",
        paidUntil: addMonths(from, term.billingTerm),
        suspendedAt: null,
        warnedAt: null,
        renewal: null,
      };
    }
    case "refunded":
      return { ...term, paidUntil: refundedUntil(term.paidUntil, event.periodEnd, now) };
    case "voided":
      return { ...term, renewal: null };
  }
}

/** What was given back is not paid for: from now on, or from where its term would have begun; never longer than before. */
export const refundedUntil = (paidUntil: Date, periodEnd: Date | null, now: Date): Date =>
  new Date(Math.min(paidUntil.getTime(), Math.max(now.getTime(), periodEnd?.getTime() ?? 0)));

const issued = (term: Term, now: Date): Term =>
  term.renewal || !reached(term.paidUntil, -renewalDays, now)
    ? term
    : { ...term, renewal: { issuedAt: now, periodEnd: term.paidUntil } };

/** Nobody is suspended who had no invoice for a week, however long the cron stood still. */
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

/** Nothing is deleted whose owner was not warned a week before. */
const deleted = (term: Term, now: Date): Term =>
  term.status === "SUSPENDED" &&
  reached(term.suspendedAt, keepSuspendedDays, now) &&
  reached(term.warnedAt, warnDays, now)
    ? { ...term, status: "GONE" }
    : term;

/** The cron's steps, in their order; it may end between any two. */
export const termSteps = [issued, suspended, warned, deleted] as const;
