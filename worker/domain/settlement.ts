import type { FlagReason, InvoiceStatus } from "../../protocol/states.ts";

export type PaymentReport = { reference: string; amountCents: number; currency: string };
export type Payable = { status: InvoiceStatus; amountCents: number; currency: string };

/** An invoice with the money that came in for it. */
export type InvoiceAccount = Payable & {
  /** References of the payments that settled it: one or none. */
  payments: readonly string[];
  /** `reason reference` of what waits for an operator. */
  flags: ReadonlySet<string>;
};

export type InvoiceEvent = ({ kind: "paid" } & PaymentReport) | { kind: "voided" } | { kind: "refunded" };

/**
 * Why money that was taken is not a payment of this invoice; null: it settles. An invoice is settled only while it is
 * unpaid, and by exactly its amount.
 */
export function whyNotSettled(invoice: Payable | undefined, paid: PaymentReport): FlagReason | null {
  if (!invoice) return "unknown_invoice";
  if (invoice.currency !== paid.currency) return "wrong_currency";
  if (invoice.amountCents !== paid.amountCents) return "wrong_amount";
  switch (invoice.status) {
    case "unpaid":
      return null;
    case "void":
      return "invoice_void";
    case "paid":
    case "refunded":
      return "paid_twice";
  }
}

/** One event on one invoice. Repetition changes nothing, and no order of payment reports loses one. */
export function applyToInvoice(invoice: InvoiceAccount, event: InvoiceEvent): InvoiceAccount {
  if (event.kind === "voided") return invoice.status === "unpaid" ? { ...invoice, status: "void" } : invoice;
  if (event.kind === "refunded")
    return invoice.status === "paid" ? { ...invoice, status: "refunded" } : invoice;
  if (invoice.payments.includes(event.reference)) return invoice;
  const reason = whyNotSettled(invoice, event);
  return reason === null
    ? { ...invoice, status: "paid", payments: [...invoice.payments, event.reference] }
    : { ...invoice, flags: new Set([...invoice.flags, `${reason} ${event.reference}`]) };
}
