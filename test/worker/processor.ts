import { expect, vi } from "vitest";
import type { Payments, ProcessorEvent, News, Session } from "../../worker/adapters/payments/payments.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { listening, now, one } from "./billing-rows.ts";
import { uniqueName } from "./service.ts";
import { rows } from "./stripe-service.ts";

const unexpected = () => Promise.reject(new Error("Nobody expected this question"));
/** A context whose processor answers as the test says. */
export const withProcessor = (answers: Partial<Payments> = {}, time = now): Ctx => ({
  ...listening(time).ctx,
  payments: {
    name: "test",
    isLive: false,
    createCheckout: unexpected,
    retrieve: unexpected,
    expire: unexpected,
    refund: unexpected,
    readEvent: unexpected,
    eventsBetween: null,
    check: unexpected,
    ...answers,
  },
});
/** An open checkout of 10 euros. */
export const reported = (more: Partial<Session>): Session => ({
  id: uniqueName("session"),
  url: "https://pay.example/1",
  status: "open",
  isLive: false,
  invoiceId: null,
  paymentReference: null,
  amountCents: 1000,
  currency: "eur",
  ...more,
});
export const told = (news: News, more: Partial<ProcessorEvent> = {}): ProcessorEvent => ({
  id: uniqueName("evt"),
  type: "told",
  isLive: false,
  createdAt: now,
  news,
  body: "{}",
  ...more,
});

/** The oldest first. */
export const flags = () =>
  rows("SELECT reason, reference, invoice_id, amount_cents, currency FROM payment_flags ORDER BY rowid");
export const outcomeOf = async ({ id }: ProcessorEvent) =>
  (await one("SELECT outcome FROM processor_events WHERE id = ?", id))?.["outcome"];
export const checkoutsOf = (invoiceId: string) =>
  rows("SELECT number, status FROM checkouts WHERE invoice_id = ? ORDER BY number", invoiceId);
export const because = (reason: string) => ({
  code: "conflict",
  extra: { reason: expect.stringContaining(reason) },
});
/** Errors that a test causes are kept, and not shown. */
export const silently = () =>
  vi
    .spyOn(console, "error")
    .mockClear()
    .mockImplementation(() => undefined);
