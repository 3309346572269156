import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LedgerAudit, type Transfer } from "../../worker/domain/ledger.ts";
import {
  applyToLedger,
  availableOf,
  balanceOf,
  emptyLedger,
  heldOf,
  type LedgerEvent,
} from "../support/models/ledger.ts";
import { writePdf } from "../../worker/domain/pdf.ts";
import { includedTaxCents, termPriceCents } from "../../worker/domain/pricing.ts";
import { applyToInvoice, type InvoiceAccount, type InvoiceEvent } from "../support/models/invoice.ts";
import { billingTermsMonths } from "../../protocol/states.ts";

const ids = ["acc_a", "acc_b", "system:sold", "system:spent"];
const amount = fc.oneof(fc.integer({ min: -2, max: 20 }), fc.constantFrom(0.5, Number.NaN));
const transfer: fc.Arbitrary<Transfer> = fc.record({
  id: fc.constant("tx"),
  debitId: fc.constantFrom(...ids),
  creditId: fc.constantFrom(...ids),
  amount,
  type: fc.constantFrom("purchase", "chat", "refund", "grant"),
  reference: fc.integer({ min: 0, max: 40 }).map(String),
});
const holdId = fc.integer({ min: 0, max: 5 }).map(String);
const ledgerEvent: fc.Arbitrary<LedgerEvent> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("transfer" as const), transfer }) },
  fc.record({
    kind: fc.constant("hold" as const),
    id: holdId,
    accountId: fc.constantFrom("acc_a", "acc_b"),
    amount,
  }),
  fc.record({ kind: fc.constant("post" as const), holdId, transfer }),
  fc.record({ kind: fc.constant("void" as const), holdId }),
);

describe("the ledger", () => {
  it("never goes below zero, sums up to zero, and holds no more than there is, after every event", () => {
    fc.assert(
      fc.property(fc.array(ledgerEvent, { maxLength: 80 }), (events) => {
        let ledger = emptyLedger;
        for (const event of events) {
          const next = applyToLedger(ledger, event);
          if (typeof next === "string") continue;
          ledger = next;
          for (const id of ["acc_a", "acc_b"]) {
            expect(balanceOf(ledger, id)).toBeGreaterThanOrEqual(0);
            expect(availableOf(ledger, id)).toBeGreaterThanOrEqual(0);
          }
          expect(ids.reduce((sum, id) => sum + balanceOf(ledger, id), 0)).toBe(0);
          expect([...ledger.balances.values()].every(Number.isSafeInteger)).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("takes an event once: the same again is refused, and a refusal changes nothing", () => {
    fc.assert(
      fc.property(fc.array(ledgerEvent, { maxLength: 60 }), (events) => {
        let ledger = emptyLedger;
        for (const event of events) {
          const next = applyToLedger(ledger, event);
          if (typeof next !== "string") {
            expect(applyToLedger(next, event)).toBeTypeOf("string");
            ledger = next;
          }
        }
      }),
    );
  });

  it("spends of a hold what was used, and the rest is free again", () => {
    const grant = {
      id: "tx",
      debitId: "system:sold",
      creditId: "acc_a",
      amount: 10,
      type: "grant",
      reference: "1",
    } as const;
    const spend = {
      id: "tx",
      debitId: "acc_a",
      creditId: "system:spent",
      amount: 3,
      type: "chat",
      reference: "h",
    } as const;
    const after = (["grant", "hold", "post"] as const).reduce((ledger, kind) => {
      const event: LedgerEvent =
        kind === "grant"
          ? { kind: "transfer", transfer: grant }
          : kind === "hold"
            ? { kind, id: "h", accountId: "acc_a", amount: 8 }
            : { kind, holdId: "h", transfer: spend };
      const next = applyToLedger(ledger, event);
      if (typeof next === "string") throw new Error(next);
      return next;
    }, emptyLedger);
    expect([balanceOf(after, "acc_a"), heldOf(after, "acc_a")]).toEqual([7, 0]);
  });

  it("is audited: each way it may be wrong is named", () => {
    const row = (seq: number, change: object = {}) => ({
      seq,
      id: `tx_${seq}`,
      debitId: "system:sold",
      creditId: "acc_a",
      amount: 5,
      type: "grant" as const,
      reference: `${seq}`,
      ...change,
    });
    const problemsOf = (list: ReturnType<typeof row>[], balance: number, held = 0, open = held) => {
      const audit = new LedgerAudit();
      for (const one of list) audit.add(one);
      audit.close(
        [
          { id: "acc_a", balance, held },
          { id: "system:sold", balance: -balance, held: 0 },
        ],
        new Map(open > 0 ? [["acc_a", open]] : []),
      );
      return audit.problems.join("; ");
    };
    expect(problemsOf([row(1), row(2)], 10, 3)).toBe("");
    expect(problemsOf([row(1)], 6)).toContain("sum up to 5");
    expect(problemsOf([row(2), row(1)], 10)).toContain("out of order");
    expect(problemsOf([row(1), row(2, { reference: "1" })], 10)).toContain("second grant");
    expect(problemsOf([row(1, { debitId: "acc_a", creditId: "system:sold" })], -5)).toContain("below zero");
    expect(problemsOf([row(1)], 5, 2, 0)).toContain("held");
    expect(problemsOf([row(1)], 5, 6)).toContain("more than its balance");
    expect(problemsOf([row(1, { amount: 0.5 })], 0.5)).toContain("not a valid amount");
  });
});

describe("an invoice", () => {
  const unpaid: InvoiceAccount = {
    status: "unpaid",
    amountCents: 500,
    currency: "usd",
    payments: [],
    flags: new Set(),
  };
  const paid = (reference: string, change: object = {}): InvoiceEvent => ({
    kind: "paid",
    reference,
    amountCents: 500,
    currency: "usd",
    ...change,
  });
  const event = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom("a", "b", "c").map((reference) => paid(reference)) },
    fc.constant(paid("cheap", { amountCents: 499 })),
    fc.constant(paid("foreign", { currency: "eur" })),
    fc.constant<InvoiceEvent>({ kind: "voided" }),
    fc.constant<InvoiceEvent>({ kind: "refunded" }),
  );
  const after = (events: InvoiceEvent[]) => events.reduce(applyToInvoice, unpaid);

  it("is paid once or not at all, and all other money is flagged: none is lost in any order or number", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        const { status, payments, flags } = after(events);
        expect(payments.length).toBe(status === "paid" || status === "refunded" ? 1 : 0);
        const references = events.flatMap((one) => (one.kind === "paid" ? [one.reference] : []));
        for (const reference of new Set(references))
          expect(
            payments.filter((one) => one === reference).length +
              [...flags].filter((flag) => flag.endsWith(` ${reference}`)).length,
          ).toBe(1);
      }),
      { numRuns: 1000 },
    );
  });

  it("ends alike when every report comes many times", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 15 }), (events) => {
        expect(after([...events, ...events.filter(({ kind }) => kind === "paid")])).toEqual(after(events));
      }),
    );
  });
});

it("a term's price is a whole number of cents, never more than its months, half a cent rounded up", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 50, max: 99_999_999 }),
      fc.constantFrom(...billingTermsMonths),
      fc.integer({ min: 0, max: 90 }),
      (month, months, percent) => {
        const price = termPriceCents(month, months, { [months]: percent });
        expect(Number.isSafeInteger(price)).toBe(true);
        expect(Math.abs(price * 100 - month * months * (100 - percent))).toBeLessThanOrEqual(50);
        expect(price).toBeLessThanOrEqual(month * months);
      },
    ),
  );
  expect([termPriceCents(333, 3, { 3: 10 }), termPriceCents(101, 1, { 1: 50 })]).toEqual([899, 51]);
});

it("a PDF prints all of Windows-1252, such as amounts in euro, and a question mark for what it lacks", () => {
  const file = writePdf("", [{ text: "€12.00 – “Žluť” ’… é", x: 0, y: 0, size: 10 }], []);
  const [, hex = ""] = / Td <([0-9a-f]+)> Tj/.exec(file) ?? [];
  expect(new TextDecoder("windows-1252").decode(Buffer.from(hex, "hex"))).toBe("€12.00 – “Žlu?” ’… é");
});

it("a PDF's cross-reference table points at its objects", () => {
  const file = writePdf(
    "Títle",
    [{ text: "Größe (1) \\ ⚓", x: 10, y: 20, size: 12 }],
    [{ y: 5, from: 1, to: 2 }],
  );
  expect(file).toMatch(/^[\n\x20-\x7e]*$/);
  const start = Number(/startxref\n(\d+)/.exec(file)?.[1]);
  expect(file.slice(start, start + 5)).toBe("xref\n");
  const offsets = [...file.matchAll(/^(\d{10}) 00000 n $/gm)].map(([, offset]) => Number(offset));
  expect(offsets.length).toBe(7);
  for (const [index, offset] of offsets.entries())
    expect(file.slice(offset).startsWith(`${index + 1} 0 obj\n`)).toBe(true);
  const [, length, content] = /<< \/Length (\d+) >>\nstream\n([^]*?)\nendstream/.exec(file) ?? [];
  expect(content?.length).toBe(Number(length));
});

describe("the tax that an amount includes", () => {
  it.each([
    [500, 19, 80],
    [500, 7.7, 36],
    [11_900, 19, 1900],
    [1, 19, 0],
    [0, 19, 0],
    [12_000, 20, 2000],
    [100, 100, 50],
  ])("of %i cents at %d %% is %i", (amountCents, percent, tax) =>
    expect(includedTaxCents(amountCents, percent)).toBe(tax),
  );

  it("and the rest are the amount, and the tax of the rest is that tax to the cent", () =>
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 10_000_000 }),
        fc.integer({ min: 1, max: 10_000 }),
        (amountCents, hundredths) => {
          const tax = includedTaxCents(amountCents, hundredths / 100);
          const net = amountCents - tax;
          expect(Number.isInteger(tax) && tax >= 0 && net >= 0).toBe(true);
          expect(Math.abs((net * hundredths) / 10_000 - tax)).toBeLessThanOrEqual(1);
        },
      ),
    ));
});
