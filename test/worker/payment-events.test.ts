import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BadSignature, type News, type ProcessorEvent } from "../../worker/adapters/payments/payments.ts";
import { arePaymentsRead, readEvents } from "../../worker/billing/payments/read-events.ts";
import { readEvent, receiveEvent } from "../../worker/billing/payments/receive-event.ts";
import {
  begin,
  billed,
  checkoutRow,
  insert,
  interrupted,
  newId,
  now,
  paymentRow,
  rowOf,
  statusOf,
  write,
  type Row,
} from "./billing-rows.ts";
import { flags, outcomeOf, reported, silently, told, withProcessor } from "./processor.ts";
import { bindings, uniqueName } from "./service.ts";
import { rows } from "./stripe-service.ts";

// Rows are written as a step finds them, the processor answers as the test says, and the step is called itself.
afterEach(() => vi.restoreAllMocks());
beforeEach(async () => {
  await begin();
  await write(bindings.DB.prepare("DELETE FROM processor_readings"));
});

describe("the processor's list of events", () => {
  const day = 24 * 60 * 60_000;
  type Listing = { from: number; until: number };
  /** What is read at this time from a processor that lists these, newest first. */
  async function read(time: number, listed: ProcessorEvent[] = []) {
    const asked: Listing[] = [];
    const eventsBetween = (from: Date, until: Date) => {
      asked.push({ from: from.getTime(), until: until.getTime() });
      return Promise.resolve(listed);
    };
    await readEvents(withProcessor({ eventsBetween }, new Date(time)));
    return asked;
  }
  const wasRead = (eventsUntil: number, readAt: number, processor = "test") =>
    write(insert("processor_readings", { processor, events_until: eventsUntil, read_at: readAt }));
  const reading = () => rows("SELECT * FROM processor_readings");
  const [t, second, minute] = [now.getTime(), 1000, 60_000];

  it("is not there with a processor that keeps none, which holds nothing up", async () => {
    await readEvents(withProcessor());
    expect(await reading()).toEqual([]);
    expect(await arePaymentsRead(withProcessor(), t)).toBe(true);
  });

  it("is read from ten minutes before the first turn, whatever was read of another processor", async () => {
    await wasRead(5, 5, "stripe");
    expect(await read(t)).toEqual([{ from: t - 10 * minute, until: t }]);
    expect(await reading()).toEqual([
      { processor: "stripe", events_until: 5, read_at: 5 },
      { processor: "test", events_until: t, read_at: t },
    ]);
  });

  it.each([
    ["not within five minutes", t - minute, t - 5 * minute + 1, false],
    ["after five minutes", t - minute, t - 5 * minute, true],
    ["at once where it is more than a day behind", t - day - 1, t - minute, true],
    ["not at once where it is a day behind", t - day, t - minute, false],
  ])("is read again in time: %s", async (_, until, readAt, isRead) => {
    await wasRead(until, readAt);
    expect(await read(t)).toHaveLength(isRead ? 1 : 0);
  });

  it("is read a day at a time where it is behind, and is complete only at the end", async () => {
    await wasRead(t - 1.5 * day, t - 2 * day);
    expect(await read(t)).toEqual([{ from: t - 1.5 * day - 10 * minute, until: t - 0.5 * day }]);
    expect(await reading()).toMatchObject([{ events_until: t - 0.5 * day, read_at: t - 2 * day }]);
    expect(await read(t)).toEqual([{ from: t - 0.5 * day - 10 * minute, until: t }]);
    expect(await reading()).toMatchObject([{ events_until: t, read_at: t }]);
  });

  it("is read from what is still listed, of 29 days", async () => {
    await wasRead(t - 29 * day - 1, 0);
    expect(await read(t)).toEqual([{ from: t - 29 * day - 10 * minute, until: t - 28 * day }]);
  });

  it("is applied in the order in which things happened, and what is known is left out", async () => {
    const sessions = Array.from({ length: 3 }, () => uniqueName("session"));
    const of = (status: "open" | "expired" | "failed", session: string, ms: number) =>
      told({ kind: "session", session: reported({ id: session, status }) }, { createdAt: new Date(t + ms) });
    const [one = "", two = "", three = ""] = sessions;
    await write(
      ...sessions.map((session) => checkoutRow(newId("invoice"), "opening", { session_id: session })),
    );
    const known = of("expired", three, 0);
    await write(
      insert("processor_events", {
        id: known.id,
        type: "told",
        body: "{}",
        outcome: "applied",
        received_at: 0,
      }),
    );
    // The later one of a second is listed first; and one that is listed in the wrong place.
    await read(t, [
      known,
      of("expired", one, 0),
      of("failed", one, 0),
      of("failed", two, 1),
      of("expired", two, 2),
    ]);
    expect(
      await rows("SELECT session_id, status FROM checkouts WHERE session_id IN (?, ?, ?)", one, two, three),
    ).toEqual([
      { session_id: one, status: "failed" },
      { session_id: two, status: "failed" },
      { session_id: three, status: "opening" },
    ]);
  });

  it("of more than 200 is read to the 200th, and on from there in the next turn", async () => {
    const events = Array.from({ length: 201 }, (_, index) =>
      told({ kind: "other" }, { createdAt: new Date(t + index * second) }),
    ).toReversed();
    const counted = async () =>
      (
        await rows(
          "SELECT id FROM processor_events WHERE id IN (SELECT value FROM json_each(?))",
          JSON.stringify(events.map(({ id }) => id)),
        )
      ).length;
    const later = t + 10 * minute;
    await read(later, events);
    expect([await counted(), await reading()]).toEqual([
      200,
      [{ processor: "test", events_until: t + 199 * second, read_at: 0 }],
    ]);
    expect(await read(later, events)).toEqual([{ from: t + 199 * second - 10 * minute, until: later }]);
    expect([await counted(), await reading()]).toEqual([
      201,
      [{ processor: "test", events_until: later, read_at: later }],
    ]);
  });

  it("is read on behind an event that fails, which is tried again and holds up the position", async () => {
    const log = silently();
    await wasRead(t, 0);
    const [good, later] = [told({ kind: "other" }), t + minute];
    const bad: ProcessorEvent = {
      ...told({ kind: "other" }, { createdAt: new Date(t - second) }),
      get news(): News {
        throw new Error("Out of memory");
      },
    };
    await expect(read(later, [good, bad])).rejects.toThrow(/one event/i);
    expect(log.mock.calls.flat().join()).toContain(bad.id);
    expect([await outcomeOf(good), await outcomeOf(bad)]).toEqual(["ignored", undefined]);
    expect(await reading()).toMatchObject([{ events_until: t, read_at: 0 }]);
    await read(later, [good, { ...good, id: bad.id }]);
    expect([await outcomeOf(bad), await reading()]).toMatchObject([
      "ignored",
      [{ events_until: later, read_at: later }],
    ]);
  });

  it("counts as read for a quarter of an hour, its own and no other processor's", async () => {
    const ctx = withProcessor({ eventsBetween: () => Promise.resolve([]) });
    await wasRead(t, t, "stripe");
    expect(await arePaymentsRead(ctx, t)).toBe(false);
    await wasRead(0, t);
    expect(await arePaymentsRead(ctx, t + 15 * minute - 1)).toBe(true);
    expect(await arePaymentsRead(ctx, t + 15 * minute)).toBe(false);
  });
});

describe("an event", () => {
  it("that the processor did not sign is the caller's mistake, and any other failure is not", async () => {
    const failing = (error: Error) => withProcessor({ readEvent: () => Promise.reject(error) });
    await expect(readEvent(failing(new BadSignature("Too old")), "{}", "t=1")).rejects.toMatchObject({
      code: "invalid_request",
      extra: { issues: [{ path: "Stripe-Signature", message: "Too old" }] },
    });
    const error = new Error("Out of memory");
    await expect(readEvent(failing(error), "{}", "t=1")).rejects.toBe(error);
    const event = told({ kind: "other" });
    const readEventOf = vi.fn(() => Promise.resolve(event));
    expect(await readEvent(withProcessor({ readEvent: readEventOf }), "{}", "t=1")).toBe(event);
    expect(readEventOf).toHaveBeenCalledWith("{}", "t=1");
  });

  it("that is known changes nothing, though it says something else; its first outcome stays", async () => {
    const first = told({ kind: "other" });
    await receiveEvent(withProcessor(), first);
    const again = { ...first, news: disputed("needs_response").news };
    await receiveEvent(withProcessor(), again);
    expect([await outcomeOf(first), await flags()]).toEqual(["ignored", []]);
  });

  it("that came at the same moment as the same one is kept once", async () => {
    const event = disputed("needs_response");
    let times = 0;
    const ctx = interrupted(withProcessor(), async () => {
      if (++times === 1) await receiveEvent(withProcessor(), event);
    });
    await receiveEvent(ctx, event);
    expect([await outcomeOf(event), await flags()]).toMatchObject(["applied", [{ reason: "disputed" }]]);
  });

  it.each([true, false])(
    "about money in the wrong mode is flagged and has no effect (live: %s)",
    async (isLive) => {
      const invoice = await billed({ status: "paid" });
      const reference = uniqueName("pi");
      await write(paymentRow(invoice.id, reference));
      const event = told(
        { kind: "refunded", paymentReference: reference, amountCents: 1000, currency: "eur" },
        { isLive },
      );
      await receiveEvent(withProcessor({ isLive: !isLive }), event);
      expect([await outcomeOf(event), await statusOf("invoices", invoice.id), await flags()]).toEqual([
        "flagged",
        "paid",
        [{ reason: "wrong_mode", reference, invoice_id: null, amount_cents: 1000, currency: "eur" }],
      ]);
      const right = { ...event, id: uniqueName("evt") };
      await receiveEvent(withProcessor({ isLive }), right);
      expect([await outcomeOf(right), await statusOf("invoices", invoice.id)]).toEqual([
        "applied",
        "refunded",
      ]);
    },
  );

  describe("of a refund", () => {
    type Refund = { status: string; amount: number; of?: "other" };
    const cases: Record<
      string,
      {
        amount?: number;
        invoice?: Row;
        refunds?: Refund[];
        pending?: "other";
        status: string;
        isFlagged: boolean;
      }
    > = {
      "in full": { status: "refunded", isFlagged: true },
      "of more than was asked for": { amount: 1001, status: "refunded", isFlagged: true },
      "of a part": { amount: 999, status: "paid", isFlagged: true },
      "of an invoice that is not paid": { invoice: { status: "void" }, status: "void", isFlagged: true },
      "that was made here": {
        refunds: [{ status: "done", amount: 1000 }],
        status: "refunded",
        isFlagged: false,
      },
      "that is under way here": {
        refunds: [{ status: "pending", amount: 1000 }],
        status: "paid",
        isFlagged: false,
      },
      "of a cent more than here": {
        refunds: [{ status: "done", amount: 999 }],
        status: "refunded",
        isFlagged: true,
      },
      "that failed here": {
        refunds: [{ status: "failed", amount: 1000 }],
        status: "refunded",
        isFlagged: true,
      },
      "with another's here": {
        refunds: [{ status: "done", amount: 1000, of: "other" }],
        status: "refunded",
        isFlagged: true,
      },
      "with another's under way": {
        refunds: [{ status: "pending", amount: 1000, of: "other" }],
        status: "refunded",
        isFlagged: true,
      },
    };
    it.each(Object.entries(cases))(
      "%s has its effect once, on its own invoice alone",
      async (_, { amount = 1000, status, isFlagged, ...row }) => {
        const [invoice, other, elsewhere] = [
          await billed({ status: "paid", ...row.invoice }),
          await billed({ status: "paid" }),
          await billed({ status: "paid" }),
        ];
        const [reference, another] = [uniqueName("pi"), uniqueName("pi")];
        await write(
          // The same reference at another processor is another payment.
          paymentRow(elsewhere.id, reference, { processor: "stripe" }),
          paymentRow(other.id, another),
          paymentRow(invoice.id, reference),
          ...(row.refunds ?? []).map((refund) =>
            insert("refunds", {
              id: newId("refund"),
              invoice_id: refund.of === "other" ? other.id : invoice.id,
              payment_reference: refund.of === "other" ? another : reference,
              amount_cents: refund.amount,
              status: refund.status,
              created_by: "acc",
              created_at: 0,
            }),
          ),
        );
        const event = told({
          kind: "refunded",
          paymentReference: reference,
          amountCents: amount,
          currency: "eur",
        });
        for (const twice of [event, { ...event, id: uniqueName("evt") }]) {
          await receiveEvent(withProcessor(), twice);
          expect(await outcomeOf(twice)).toBe("applied");
        }
        expect(await statusOf("invoices", invoice.id)).toBe(status);
        expect(await flags()).toEqual(
          isFlagged
            ? [
                {
                  reason: "refunded_elsewhere",
                  reference: `${reference}:${amount}`,
                  invoice_id: invoice.id,
                  amount_cents: amount,
                  currency: "eur",
                },
              ]
            : [],
        );
        expect([await statusOf("invoices", other.id), await statusOf("invoices", elsewhere.id)]).toEqual([
          "paid",
          "paid",
        ]);
      },
    );

    it("of money that was flagged, which an operator was told to return, raises no other flag", async () => {
      const [invoice, reference, unknown] = [
        await billed({ status: "paid" }),
        uniqueName("pi"),
        uniqueName("pi"),
      ];
      const flag = {
        reason: "paid_twice",
        reference,
        invoice_id: invoice.id,
        amount_cents: 1000,
        currency: "eur",
      };
      await write(insert("payment_flags", { id: newId("flag"), created_at: 0, resolved_at: 0, ...flag }));
      const refunded = (paymentReference: string) =>
        told({ kind: "refunded", paymentReference, amountCents: 1000, currency: "eur" });
      await receiveEvent(withProcessor(), refunded(reference));
      expect([await flags(), await statusOf("invoices", invoice.id)]).toEqual([[flag], "paid"]);
      // A refund that is reported before its payment is.
      await receiveEvent(withProcessor(), refunded(unknown));
      expect((await flags()).map(({ reason }) => reason)).toEqual(["paid_twice", "refunded_elsewhere"]);
    });

    it("that the bank returned is flagged and noted at that refund alone", async () => {
      const invoice = await billed({ status: "refunded" });
      const [payment, reference] = [uniqueName("pi"), uniqueName("re")];
      const refundRow = (id: string, of: string) =>
        insert("refunds", {
          id,
          invoice_id: newId("invoice"),
          payment_reference: payment,
          reference: of,
          amount_cents: 1000,
          status: "done",
          created_by: "acc",
          created_at: 0,
        });
      const [id, other] = [newId("refund"), newId("refund")];
      await write(paymentRow(invoice.id, payment), refundRow(id, reference), refundRow(other, "re_other"));
      await receiveEvent(
        withProcessor(),
        told({
          kind: "refund_failed",
          reference,
          paymentReference: payment,
          amountCents: 1000,
          currency: "eur",
        }),
      );
      expect(await flags()).toEqual([
        { reason: "refund_failed", reference, invoice_id: invoice.id, amount_cents: 1000, currency: "eur" },
      ]);
      expect([(await rowOf("refunds", id))?.["error"], (await rowOf("refunds", other))?.["error"]]).toEqual([
        "The processor took it back",
        null,
      ]);
    });
  });

  const disputed = (status: string, more: Partial<Extract<News, { kind: "dispute" }>> = {}, ms = 0) =>
    told(
      {
        kind: "dispute",
        id: uniqueName("dp"),
        status,
        reason: "fraudulent",
        paymentReference: uniqueName("pi"),
        amountCents: 1000,
        currency: "eur",
        ...more,
      },
      { createdAt: new Date(now.getTime() + ms) },
    );

  it("of a dispute is kept with all that is known of it, and flagged with its invoice", async () => {
    const invoice = await billed({ status: "paid" });
    const [id, paymentReference] = [uniqueName("dp"), uniqueName("pi")];
    await write(paymentRow(invoice.id, paymentReference));
    await receiveEvent(withProcessor(), disputed("needs_response", { id, paymentReference }, 5));
    expect(await rowOf("disputes", id)).toEqual({
      id,
      payment_reference: paymentReference,
      amount_cents: 1000,
      currency: "eur",
      status: "needs_response",
      reason: "fraudulent",
      told_at: now.getTime() + 5,
    });
    expect(await flags()).toEqual([
      { reason: "disputed", reference: id, invoice_id: invoice.id, amount_cents: 1000, currency: "eur" },
    ]);
  });

  it.each([
    ["older news is not", "under_review", -1, "needs_response"],
    ["news of the same second is", "under_review", 0, "under_review"],
    ["newer news is", "under_review", 1, "under_review"],
    ["news of one that was won is not", "won", 1, "won"],
    ["news of one that was lost is not", "lost", 1, "lost"],
  ])("of a dispute is the last word where it ought to be: %s", async (_, status, ms, after) => {
    const id = uniqueName("dp");
    const isOver = status === "won" || status === "lost";
    await receiveEvent(withProcessor(), disputed(isOver ? status : "needs_response", { id }));
    await receiveEvent(
      withProcessor(),
      disputed(isOver ? "under_review" : status, { id, amountCents: 400 }, ms),
    );
    const isApplied = after === "under_review";
    expect(await rowOf("disputes", id)).toMatchObject({
      status: after,
      amount_cents: isApplied ? 400 : 1000,
      told_at: now.getTime() + (isApplied ? ms : 0),
    });
    expect(await flags()).toHaveLength(1);
  });
});
