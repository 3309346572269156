import type { CheckoutStatus, RefundStatus } from "../../../protocol/states.ts";

/** What a checkout asks for. The same `key` with the same values is the same checkout, however often it is asked for. */
export type Checkout = {
  key: string;
  id: string;
  invoiceId: string;
  description: string;
  amountCents: number;
  currency: string;
  expiresAt: Date;
  returnUrl: string;
};

/** A checkout as the processor knows it. */
export type Session = {
  id: string;
  /** Where the customer pays; null once there is nothing to do there. */
  url: string | null;
  status: Exclude<CheckoutStatus, "opening">;
  isLive: boolean;
  /** The invoice it is for; null where it names none, or two. */
  invoiceId: string | null;
  /** What payment, refund and dispute call the money. */
  paymentReference: string | null;
  amountCents: number | null;
  currency: string | null;
};

export type Money = { paymentReference: string; amountCents: number; currency: string };

export type News =
  | { kind: "session"; session: Session }
  /** All that was ever given back of a payment, by us or by hand. */
  | ({ kind: "refunded" } & Money)
  | ({ kind: "refund_failed"; reference: string } & Money)
  | ({ kind: "dispute"; id: string; status: string; reason: string } & Money)
  | { kind: "other" };

export type ProcessorEvent = {
  id: string;
  type: string;
  isLive: boolean;
  createdAt: Date;
  news: News;
  /** As it came. */
  body: string;
};

export type Refund = {
  id: string;
  invoiceId: string;
  paymentReference: string;
  amountCents: number;
  /** The processor's name for it, where it was asked before and has not ended it yet. */
  reference: string | null;
};
/** pending: the money is on its way to the bank, which may still refuse it. */
export type Refunded = { reference: string | null; status: RefundStatus; error: string | null };

/** A processor. Whatever it throws that is not one of the errors below may or may not have been done. */
export type Payments = {
  name: "test" | "stripe";
  isLive: boolean;
  /** @throws ProcessorRefused */
  createCheckout(checkout: Checkout): Promise<Session>;
  /** @throws UnknownCheckout */
  retrieve(sessionId: string): Promise<Session>;
  /** Closes it, unless the customer was faster: look at the answer. */
  expire(sessionId: string): Promise<Session>;
  refund(refund: Refund): Promise<Refunded>;
  /** @throws BadSignature */
  readEvent(body: string, signature: string | undefined): Promise<ProcessorEvent>;
  /** All that happened in this time, both moments included, in any order; null where it keeps no list. */
  eventsBetween: ((from: Date, until: Date) => Promise<ProcessorEvent[]>) | null;
  /** The test processor's only: the customer pays. */
  payAtOnce?(sessionId: string): Promise<void>;
};

/** The processor answered, and will not do it. */
export class ProcessorRefused extends Error {
  override name = "ProcessorRefused";
}

/** The processor has no such checkout: it was made for another account of the operator's there. */
export class UnknownCheckout extends ProcessorRefused {
  override name = "UnknownCheckout";
}

/** Not from the processor, not as it was sent, or too old. */
export class BadSignature extends Error {
  override name = "BadSignature";
}
