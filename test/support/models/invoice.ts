import type { FlagReason, InvoiceStatus } from "../../../protocol/states.ts";
import type { PaymentReport } from "../../../worker/domain/settlement.ts";

type Payable = { status: InvoiceStatus; amountCents: number; currency: string };

/** An invoice and the money received for it. */
export type InvoiceAccount = Payable & {
  /** The references of the payments that settled it: one or none. */
  payments: readonly string[];
  /** `reason reference` of each flag for an operator. */
  flags: ReadonlySet<string>;
};

export type InvoiceEvent = ({ kind: "paid" } & PaymentReport) | { kind: "voided" } | { kind: "refunded" };

/**
 * Why a received payment does not settle this invoice; null: it does. An invoice is settled only while it is unpaid,
 * and only by its exact amount.
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

/** Applies one event to one invoice. It is idempotent, and payment reports in any order lead to the same result. */
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
