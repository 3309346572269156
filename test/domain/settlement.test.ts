import { expect, it } from "vitest";
import { applyToInvoice, whyNotSettled, type InvoiceAccount } from "../support/models/invoice.ts";

const invoice: InvoiceAccount = {
  status: "unpaid",
  amountCents: 500,
  currency: "usd",
  payments: [],
  flags: new Set(),
};
const paid = { reference: "pi_1", amountCents: 500, currency: "usd" };

it.each([
  ["settles an unpaid invoice", invoice, paid, null],
  ["is of no invoice", undefined, paid, "unknown_invoice"],
  ["is in another currency", invoice, { ...paid, currency: "eur" }, "wrong_currency"],
  ["is a cent too much", invoice, { ...paid, amountCents: 501 }, "wrong_amount"],
  ["is a cent too little", invoice, { ...paid, amountCents: 499 }, "wrong_amount"],
  ["is of a void invoice", { ...invoice, status: "void" }, paid, "invoice_void"],
  ["is of a paid invoice", { ...invoice, status: "paid" }, paid, "paid_twice"],
  ["is of a refunded invoice", { ...invoice, status: "refunded" }, paid, "paid_twice"],
] as const)("money that %s is told so", (_, account, report, reason) => {
  expect(whyNotSettled(account, report)).toBe(reason);
});

it("money that settles nothing is a flag, once", () => {
  const event = { kind: "paid" as const, ...paid, currency: "eur" };
  const once = applyToInvoice(invoice, event);
  expect([once.status, [...once.flags]]).toEqual(["unpaid", ["wrong_currency pi_1"]]);
  expect(applyToInvoice(once, event)).toEqual(once);
});
