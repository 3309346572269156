import type { CheckoutStatus, RefundStatus } from "../../../protocol/states.ts";

/** The parameters of a checkout. The same `key` with the same values always yields the same checkout. */
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

/** A checkout as reported by the processor. */
export type Session = {
  id: string;
  /** The payment page; null once the checkout is closed. */
  url: string | null;
  status: Exclude<CheckoutStatus, "opening">;
  isLive: boolean;
  /** The invoice it pays; null if it names none, or two. */
  invoiceId: string | null;
  /** The processor's id that links payment, refund and dispute. */
  paymentReference: string | null;
  amountCents: number | null;
  currency: string | null;
};

type Money = { paymentReference: string; amountCents: number; currency: string };

export type News =
  | { kind: "session"; session: Session }
  /** The total refunded for a payment, by this service or manually. */
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
  /** The raw payload. */
  body: string;
};

type Refund = {
  id: string;
  invoiceId: string;
  paymentReference: string;
  amountCents: number;
  /** The processor's id of the refund, if an earlier request for it is still pending. */
  reference: string | null;
};
/** pending: the money is on its way to the bank, which may still reject it. */
export type Refunded = { reference: string | null; status: RefundStatus; error: string | null };

/** A payment processor. After an error other than those below, the outcome is unknown. */
export type Payments = {
  name: "test" | "stripe";
  isLive: boolean;
  /** @throws ProcessorRefused */
  createCheckout(checkout: Checkout): Promise<Session>;
  /** @throws UnknownCheckout */
  retrieve(sessionId: string): Promise<Session>;
  /** Closes the checkout unless the customer has already paid; check the answer. */
  expire(sessionId: string): Promise<Session>;
  refund(refund: Refund): Promise<Refunded>;
  /** @throws BadSignature */
  readEvent(body: string, signature: string | undefined): Promise<ProcessorEvent>;
  /** All events in this period, inclusive, in any order; null if the processor keeps no list. */
  eventsBetween: ((from: Date, until: Date) => Promise<ProcessorEvent[]>) | null;
  /** What is wrong with the set-up, as sentences: the key, and the webhook at this address. */
  check(webhookUrl: string, now: Date): Promise<string[]>;
  /** Test processor only: simulates the customer's payment. */
  payAtOnce?(sessionId: string): Promise<void>;
};

/** The processor answered with a definite refusal. */
export class ProcessorRefused extends Error {
  override name = "ProcessorRefused";
}

/** The processor has no such checkout: it belongs to another account of the operator. */
export class UnknownCheckout extends ProcessorRefused {
  override name = "UnknownCheckout";
}

/** Not from the processor, altered, or too old. */
export class BadSignature extends Error {
  override name = "BadSignature";
}
