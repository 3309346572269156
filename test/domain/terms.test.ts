import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addDays, addMonths, proratedCents } from "../../worker/domain/pricing.ts";
import { termMail, type Occasion } from "../../worker/domain/term-mails.ts";
import { applyToTerm, refundedUntil, type Term, type TermEvent } from "../support/models/term.ts";
import { billingTermsMonths } from "../../protocol/states.ts";

const time = fc.date({ min: new Date("2025-01-01"), max: new Date("2035-12-31"), noInvalidDate: true });
const cents = fc.integer({ min: 50, max: 99_999_999 });
const months = fc.constantFrom(...billingTermsMonths);
/** A term of any length that ends on this day of the month, or the last of a shorter month. */
const term = fc
  .record({ begins: time, months, billingDay: fc.integer({ min: 1, max: 31 }) })
  .map(({ begins, ...one }) => ({ ...one, paidUntil: addMonths(begins, one.months, one.billingDay) }));
const beginningOf = ({
  paidUntil,
  months: count,
  billingDay,
}: {
  paidUntil: Date;
  months: number;
  billingDay: number;
}) => addMonths(paidUntil, -count, billingDay);

describe("what a dearer pack costs for the rest of a term", () => {
  it("is whole cents, never negative, never more than the difference, and never more than the share that is left", () => {
    fc.assert(
      fc.property(cents, cents, term, fc.integer({ min: -40, max: 800 }), (old, next, of, days) => {
        const now = addDays(of.paidUntil, -days);
        const price = proratedCents([old, next], of, now);
        expect(Number.isSafeInteger(price) && price >= 0).toBe(true);
        const termMs = of.paidUntil.getTime() - beginningOf(of).getTime();
        const share = Math.max(0, days * 86_400_000) / termMs;
        expect(price).toBeLessThanOrEqual(Math.max(0, next - old) * share + 1e-3);
        expect(price).toBeGreaterThan(Math.max(0, next - old) * share - 1.001);
      }),
    );
  });

  it("is nothing for what costs no more, nothing at the end, and all of the difference at the beginning", () => {
    fc.assert(
      fc.property(cents, cents, term, (one, other, of) => {
        const [less, more] = [Math.min(one, other), Math.max(one, other)];
        const start = beginningOf(of);
        expect(proratedCents([more, less], of, start)).toBe(0);
        expect(proratedCents([less, more], of, of.paidUntil)).toBe(0);
        expect(proratedCents([less, more], of, start)).toBe(more - less);
      }),
    );
  });

  it("in steps costs no more than at once, so that nobody pays for changing often", () => {
    fc.assert(
      fc.property(fc.array(cents, { minLength: 3, maxLength: 5 }), term, fc.nat(29), (prices, of, days) => {
        const sorted = prices.toSorted((a, b) => a - b);
        const now = addDays(of.paidUntil, -days);
        const steps = sorted
          .slice(1)
          .reduce((sum, next, index) => sum + proratedCents([sorted[index] ?? 0, next], of, now), 0);
        const atOnce = proratedCents([sorted[0] ?? 0, sorted.at(-1) ?? 0], of, now);
        expect(steps).toBeLessThanOrEqual(atOnce);
        expect(atOnce - steps).toBeLessThan(sorted.length);
      }),
    );
  });
});

describe("a term", () => {
  const start: Term = {
    status: "ACTIVE",
    paidUntil: new Date("2026-03-31T10:00:00Z"),
    billingTerm: 1,
    billingDay: 31,
    suspendedAt: null,
    warnedAt: null,
    renewal: null,
  };
  const day = (count: number) => addDays(start.paidUntil, count);
  const ticked = (term: Term, ...days: number[]) =>
    days.reduce((next, count) => applyToTerm(next, { kind: "ticked" }, day(count)), term);

  it.each([
    ["is not renewed early", [-8], { status: "ACTIVE", renewal: null }],
    ["has an invoice a week before its end", [-7], { status: "ACTIVE", renewal: { issuedAt: day(-7) } }],
    ["goes on in its grace", [-7, 0, 6.99], { status: "ACTIVE" }],
    ["is suspended behind its grace", [-7, 7], { status: "SUSPENDED", suspendedAt: day(7) }],
    ["has a week of grace behind a late invoice", [90, 96], { status: "ACTIVE" }],
    ["is kept for thirty days", [-7, 7, 30, 36.99], { status: "SUSPENDED" }],
    ["is gone after them", [-7, 7, 30, 37], { status: "GONE" }],
    ["is not gone a moment after a late warning", [-7, 7, 100, 106], { status: "SUSPENDED" }],
  ] as const)("%s", (_, days, expected) => {
    expect(ticked(start, ...days)).toMatchObject(expected);
  });

  it("goes on from its end when it is paid in time, and from now when it was suspended", () => {
    const early = applyToTerm(ticked(start, -7), { kind: "renewed" }, day(-5));
    expect(early).toMatchObject({
      status: "ACTIVE",
      paidUntil: new Date("2026-04-30T10:00:00Z"),
      renewal: null,
    });
    const late = applyToTerm(ticked(start, -7, 7), { kind: "renewed" }, day(20));
    expect(late).toMatchObject({ status: "ACTIVE", paidUntil: addMonths(day(20), 1), suspendedAt: null });
  });

  it("that began on a 31st ends on the last of each shorter month, and on the 31st of all others", () => {
    const ends = ["2026-04-30", "2026-05-31", "2026-06-30", "2026-07-31", "2026-08-31"];
    let term = start;
    for (const end of ends) {
      const renewal = { issuedAt: term.paidUntil, periodEnd: term.paidUntil };
      term = applyToTerm({ ...term, renewal }, { kind: "renewed" }, term.paidUntil);
      expect(term.paidUntil).toEqual(new Date(`${end}T10:00:00Z`));
    }
  });

  it("changes by each event once at one moment, in whatever order they come", () => {
    const event = fc.oneof(
      { weight: 3, arbitrary: fc.constant<TermEvent>({ kind: "ticked" }) },
      fc.constantFrom<TermEvent>(
        { kind: "renewed" },
        { kind: "voided" },
        { kind: "refunded", periodEnd: null },
      ),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(event, fc.integer({ min: 0, max: 40 })), { maxLength: 40 }), (events) => {
        let term = start;
        let now = day(-20);
        for (const [one, days] of events) {
          now = addDays(now, days);
          const next = applyToTerm(term, one, now);
          expect(applyToTerm(next, one, now)).toEqual(next);
          if (term.status === "GONE") expect(next).toBe(term);
          if (next.status === "SUSPENDED") expect(next.suspendedAt).not.toBeNull();
          term = next;
        }
      }),
    );
  });

  it("is never longer by a refund, and ends where the refunded term began, or now", () => {
    fc.assert(
      fc.property(time, fc.option(time), time, (paidUntil, periodEnd, now) => {
        const until = refundedUntil(paidUntil, periodEnd, now);
        expect(until <= paidUntil).toBe(true);
        expect(until < now && until < paidUntil).toBe(false);
      }),
    );
  });
});

it.each(["issued", "ended", "suspended", "deletion"] as Occasion[])(
  "the mail of what is %s names it, and where to pay",
  (occasion) => {
    const { subject, text } = termMail(occasion, {
      what: "database",
      name: "shop",
      paidUntil: new Date("2026-03-31"),
      payUrl: "https://berth.example/invoice/inv_1",
    });
    expect(subject).toContain("shop");
    expect(text).toContain("database shop");
    expect(text).toContain("\nhttps://berth.example/invoice/inv_1");
  },
);
