import { eq } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Id } from "../../protocol/ids.ts";
import { checkoutStatuses } from "../../protocol/states.ts";
import {
  BadSignature,
  ProcessorRefused,
  UnknownCheckout,
  type Checkout,
  type News,
  type Payments,
  type ProcessorEvent,
  type Refunded,
  type Session,
} from "../../worker/adapters/payments/payments.ts";
import { applySession } from "../../worker/billing/payments/apply-session.ts";
import { openCheckout } from "../../worker/billing/payments/checkout.ts";
import { arePaymentsRead, readEvents } from "../../worker/billing/payments/read-events.ts";
import { readEvent, receiveEvent } from "../../worker/billing/payments/receive-event.ts";
import { reconcileInvoice, reconcilePayments } from "../../worker/billing/payments/reconcile.ts";
import { beginRefund, finishRefund } from "../../worker/billing/payments/refund.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { invoices, refunds } from "../../worker/db/schema.ts";
import {
  at,
  begin,
  checkoutRow,
  insert,
  interrupted,
  invoiceRow,
  listening,
  make,
  minutes,
  newId,
  now,
  packIds,
  resourceRow,
  update,
  write,
  type Row,
} from "./billing-rows.ts";
import { bindings, siteUrl, uniqueName } from "./service.ts";
import { rows } from "./stripe-service.ts";

// Rows are written as a step finds them, the processor answers as the test says, and the step is called itself.
let hostId: Id<"host">;
beforeEach(async () => {
  ({ hostId } = await begin());
  await write(bindings.DB.prepare("DELETE FROM processor_readings"));
});
afterEach(() => vi.restoreAllMocks());

const second = 1000;
const unexpected = () => Promise.reject(new Error("Nobody expected this question"));
/** With a processor that answers as it is told to. */
const withProcessor = (answers: Partial<Payments> = {}, time = now): Ctx => ({
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
const reported = (more: Partial<Session>): Session => ({
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
const told = (news: News, more: Partial<ProcessorEvent> = {}): ProcessorEvent => ({
  id: uniqueName("evt"),
  type: "told",
  isLive: false,
  createdAt: now,
  news,
  body: "{}",
  ...more,
});

type Billed = { id: Id<"invoice">; accountId: Id<"account"> };
/** An invoice for 700 credits at 1000 cents. */
async function billed(more: Row = {}): Promise<Billed> {
  const [id, accountId] = [newId("invoice"), newId("account")];
  await write(
    invoiceRow({
      id,
      account_id: accountId,
      kind: "credits",
      resource_id: null,
      term_months: null,
      pack_id: null,
      ...more,
    }),
    insert("credit_purchases", { invoice_id: id, package_id: "cpk_1", credits: 700 }),
  );
  return { id, accountId };
}
const paymentRow = (invoice_id: string, reference: string, more: Row = {}) =>
  insert("payments", {
    id: newId("payment"),
    invoice_id,
    processor: "test",
    reference,
    amount_cents: 1000,
    currency: "eur",
    created_at: 0,
    ...more,
  });
const one = async <Found = Record<string, unknown>>(query: string, ...values: (string | number)[]) => {
  const [found, ...more] = await rows<Found>(query, ...values);
  expect(more).toEqual([]);
  return found;
};
const rowOf = (table: string, id: string) => one(`SELECT * FROM ${table} WHERE id = ?`, id);
const statusOf = async (table: string, id: string) => (await rowOf(table, id))?.["status"];
const flags = () =>
  rows("SELECT reason, reference, invoice_id, amount_cents, currency FROM payment_flags ORDER BY rowid");
const outcomeOf = async ({ id }: ProcessorEvent) =>
  (await one("SELECT outcome FROM processor_events WHERE id = ?", id))?.["outcome"];
const checkoutsOf = (invoiceId: string) =>
  rows("SELECT number, status FROM checkouts WHERE invoice_id = ? ORDER BY number", invoiceId);
const because = (reason: string) => ({
  code: "conflict",
  extra: { reason: expect.stringContaining(reason) },
});
const silently = () =>
  vi
    .spyOn(console, "error")
    .mockClear()
    .mockImplementation(() => undefined);

describe("what the processor says of a checkout", () => {
  it.each([
    ["open", ["opening"]],
    ["processing", ["opening", "open"]],
    ["expired", ["opening", "open"]],
    ["failed", ["opening", "open", "processing"]],
  ] as const)("'%s' leads there from %j, and from no other state", async (status, from) => {
    const ctx = withProcessor();
    const sessions = checkoutStatuses.map((before) => ({
      before,
      session: uniqueName("session"),
      id: newId("checkout"),
    }));
    const [elsewhere, other] = [newId("checkout"), newId("checkout")];
    await write(
      ...sessions.map(({ before, session, id }) =>
        checkoutRow(newId("invoice"), before, { id, session_id: session }),
      ),
      checkoutRow(newId("invoice"), "opening", {
        id: elsewhere,
        processor: "stripe",
        session_id: sessions[0]?.session ?? null,
      }),
      checkoutRow(newId("invoice"), "opening", { id: other }),
    );
    for (const { session } of sessions) await applySession(ctx, reported({ id: session, status }));
    for (const { before, id } of sessions)
      expect([before, await statusOf("checkouts", id)]).toEqual([
        before,
        (from as readonly string[]).includes(before) ? status : before,
      ]);
    expect([await statusOf("checkouts", elsewhere), await statusOf("checkouts", other)]).toEqual([
      "opening",
      "opening",
    ]);
    expect(await flags()).toEqual([]);
  });

  it("is kept beside the event that told it, whose text is kept too", async () => {
    const session = reported({ status: "expired" });
    await write(checkoutRow(newId("invoice"), "open", { session_id: session.id }));
    const event = told({ kind: "session", session }, { type: "session.expired", body: '{"a":1}' });
    await receiveEvent(withProcessor(), event);
    expect(await one("SELECT * FROM processor_events WHERE id = ?", event.id)).toEqual({
      id: event.id,
      type: "session.expired",
      body: '{"a":1}',
      outcome: "applied",
      received_at: now.getTime(),
    });
  });

  it.each([true, false])("in the wrong mode pays nothing, and is flagged (live: %s)", async (isLive) => {
    const invoice = await billed();
    const session = reported({ status: "paid", isLive, invoiceId: invoice.id });
    await write(checkoutRow(invoice.id, "open", { session_id: session.id }));
    const ctx = withProcessor({ isLive: !isLive });
    await applySession(ctx, session);
    const flag = {
      reason: "wrong_mode",
      reference: session.id,
      invoice_id: invoice.id,
      amount_cents: 1000,
      currency: "eur",
    };
    expect(await flags()).toEqual([flag]);
    const event = told({ kind: "session", session: { ...session, paymentReference: `pi-${session.id}` } });
    for (let time = 0; time < 2; time++) await receiveEvent(ctx, event);
    expect(await flags()).toEqual([flag, { ...flag, reference: `pi-${session.id}` }]);
    expect(await outcomeOf(event)).toBe("flagged");
    expect([await statusOf("invoices", invoice.id), await checkoutsOf(invoice.id)]).toEqual([
      "unpaid",
      [{ number: 1, status: "open" }],
    ]);
  });

  it("settles the invoice once it is paid, by the payment's reference or, without one, its own", async () => {
    const [named, unnamed] = [await billed(), await billed()];
    const sessions = [
      reported({ status: "paid", invoiceId: named.id, paymentReference: uniqueName("pi") }),
      reported({ status: "paid", invoiceId: unnamed.id }),
    ];
    for (const session of sessions) {
      await write(checkoutRow(session.invoiceId ?? "", "open", { session_id: session.id }));
      await applySession(withProcessor(), session);
    }
    for (const [index, { id }] of [named, unnamed].entries()) {
      expect(await one("SELECT processor, reference FROM payments WHERE invoice_id = ?", id)).toEqual({
        processor: "test",
        reference: sessions[index]?.paymentReference ?? sessions[index]?.id,
      });
      expect([await statusOf("invoices", id), await checkoutsOf(id)]).toEqual([
        "paid",
        [{ number: 1, status: "paid" }],
      ]);
    }
  });

  it("of a payment without an amount or a currency pays nothing, and is flagged", async () => {
    const [amount, currency] = [await billed(), await billed()];
    await applySession(
      withProcessor(),
      reported({ status: "paid", invoiceId: amount.id, amountCents: null, id: "no-amount" }),
    );
    await applySession(
      withProcessor(),
      reported({ status: "paid", invoiceId: currency.id, currency: null, id: "no-currency" }),
    );
    expect(await flags()).toMatchObject([
      { reason: "wrong_amount", reference: "no-amount", amount_cents: 0 },
      { reason: "wrong_currency", reference: "no-currency", currency: "" },
    ]);
  });
});

describe("a checkout", () => {
  /** Opens whatever is asked for, and keeps the questions. */
  const opening = (more: Partial<Session> = {}) => {
    const asked: Checkout[] = [];
    const createCheckout = (checkout: Checkout) => {
      asked.push(checkout);
      return Promise.resolve(reported({ invoiceId: checkout.invoiceId, ...more }));
    };
    return { asked, createCheckout };
  };

  it("asks for what the invoice says, for an hour, and is asked about after two minutes", async () => {
    const invoice = await billed({
      lines: JSON.stringify([
        { description: "Site: Small", amountCents: 900 },
        { description: "Tax", amountCents: 100 },
      ]),
      token: uniqueName("inv"),
    });
    const { asked, createCheckout } = opening();
    const session = await openCheckout(withProcessor({ createCheckout }), invoice.id);
    const checkout = await one("SELECT * FROM checkouts WHERE invoice_id = ?", invoice.id);
    expect(checkout).toEqual({
      id: expect.stringMatching(/^chk_/),
      invoice_id: invoice.id,
      number: 1,
      processor: "test",
      session_id: session?.id,
      url: "https://pay.example/1",
      status: "open",
      created_at: now.getTime(),
      expires_at: minutes(60),
      check_at: minutes(2),
    });
    const row = await rowOf("invoices", invoice.id);
    expect(asked).toEqual([
      {
        key: `${invoice.id}:checkout:1`,
        id: checkout?.["id"],
        invoiceId: invoice.id,
        description: "Site: Small, Tax",
        amountCents: 1000,
        currency: "eur",
        expiresAt: new Date(minutes(60)),
        returnUrl: `${siteUrl}/invoice/${String(row?.["token"])}`,
      },
    ]);
  });

  it("is the one that is open, until it has ended, and its number is one more than the last", async () => {
    const [invoice, other] = [await billed(), await billed()];
    await write(
      checkoutRow(invoice.id, "expired", { number: 1 }),
      checkoutRow(invoice.id, "failed", { number: 4 }),
      checkoutRow(other.id, "opening", { number: 9, session_id: null }),
    );
    const { asked, createCheckout } = opening();
    const first = await openCheckout(withProcessor({ createCheckout }), invoice.id);
    const session = reported({ id: first?.id ?? "" });
    const retrieve = vi.fn(() => Promise.resolve(session));
    expect(await openCheckout(withProcessor({ retrieve }), invoice.id)).toEqual(session);
    expect(retrieve).toHaveBeenCalledExactlyOnceWith(first?.id);
    expect(asked.map(({ key }) => key)).toEqual([`${invoice.id}:checkout:5`]);
    expect(await checkoutsOf(invoice.id)).toEqual([
      { number: 1, status: "expired" },
      { number: 4, status: "failed" },
      { number: 5, status: "open" },
    ]);
    expect(await checkoutsOf(other.id)).toEqual([{ number: 9, status: "opening" }]);
  });

  it("is not opened of an invoice that is not there, not unpaid, or has a payment that does not match", async () => {
    const ctx = withProcessor();
    await expect(openCheckout(ctx, newId("invoice"))).rejects.toMatchObject({ code: "not_found" });
    const [paid, isVoid, refunded, flagged] = [
      await billed({ status: "paid" }),
      await billed({ status: "void" }),
      await billed({ status: "refunded" }),
      await billed(),
    ];
    const flag = newId("flag");
    await write(
      insert("payment_flags", {
        id: flag,
        reason: "wrong_amount",
        reference: "1",
        invoice_id: flagged.id,
        created_at: 0,
      }),
    );
    expect(await openCheckout(ctx, paid.id)).toBeNull();
    await expect(openCheckout(ctx, isVoid.id)).rejects.toMatchObject(
      because("This invoice is void and can no longer be paid"),
    );
    await expect(openCheckout(ctx, refunded.id)).rejects.toMatchObject(because("is refunded"));
    await expect(openCheckout(ctx, flagged.id)).rejects.toMatchObject(
      because("that does not match this invoice"),
    );
    expect(await rows("SELECT id FROM checkouts")).toEqual([]);
    // Another invoice's flag, and one that was dealt with, hold nothing up.
    const other = await billed();
    const { createCheckout } = opening();
    expect(await openCheckout(withProcessor({ createCheckout }), other.id)).toMatchObject({ status: "open" });
    await write(update("payment_flags", flag, { resolved_at: 1 }));
    expect(await openCheckout(withProcessor({ createCheckout }), flagged.id)).toMatchObject({
      status: "open",
    });
  });

  it("that is at the bank is waited for", async () => {
    const invoice = await billed();
    const session = reported({ status: "processing" });
    await write(checkoutRow(invoice.id, "open", { session_id: session.id }));
    const retrieve = () => Promise.resolve(session);
    await expect(openCheckout(withProcessor({ retrieve }), invoice.id)).rejects.toMatchObject(
      because("is pending"),
    );
    expect(await checkoutsOf(invoice.id)).toEqual([{ number: 1, status: "processing" }]);
  });

  it("that ends again and again while it is opened is not tried for ever", async () => {
    const invoice = await billed();
    const { asked } = opening();
    const createCheckout = (checkout: Checkout) => {
      asked.push(checkout);
      const session = reported({ status: "expired" });
      return Promise.resolve(session);
    };
    await expect(openCheckout(withProcessor({ createCheckout }), invoice.id)).rejects.toMatchObject(
      because("Someone else is paying"),
    );
    expect(asked.map(({ key }) => key.at(-1))).toEqual(["1", "2"]);
  });

  it("that another request has begun at the same moment is that one's, and is shared", async () => {
    const invoice = await billed();
    const ctx = withProcessor(opening());
    const id = newId("checkout");
    let times = 0;
    // Before the second batch: it has read, and is about to begin one.
    const other = interrupted(ctx, async () => {
      if (++times === 2)
        await write(checkoutRow(invoice.id, "opening", { id, session_id: null, expires_at: at(1) }));
    });
    expect(await openCheckout(other, invoice.id)).toMatchObject({ status: "open" });
    expect(await rows("SELECT id, status FROM checkouts WHERE invoice_id = ?", invoice.id)).toEqual([
      { id, status: "open" },
    ]);
  });

  it("is not begun of an invoice that is void at the same moment", async () => {
    const [invoice, other] = [await billed(), await billed()];
    let times = 0;
    const ctx = interrupted(withProcessor(), async () => {
      if (++times === 2) await write(update("invoices", invoice.id, { status: "void" }));
    });
    await expect(openCheckout(ctx, invoice.id)).rejects.toMatchObject(because("is void"));
    expect(await rows("SELECT id FROM checkouts")).toEqual([]);
    expect(await statusOf("invoices", other.id)).toBe("unpaid");
  });

  it.each(["sites", "databases"] as const)(
    "of a larger pack of one of the %s begins only where its memory is there, to the last megabyte",
    async (kind) => {
      // 4512 MB less 512 for the system; its own pack counts with 256.
      const large = (memory_mb: number) => write(update("packs", packIds.large, { memory_mb }));
      const id = newId("invoice");
      await make(
        kind,
        { row: { next_pack_id: packIds.large, host_id: hostId } },
        {
          one: {
            beside: (made) => [
              invoiceRow({
                id,
                account_id: made.accountId,
                resource_id: made.id,
                kind: "change",
                pack_id: packIds.large,
              }),
            ],
          },
        },
      );
      await large(4001);
      await expect(openCheckout(withProcessor(opening()), id)).rejects.toMatchObject(
        because("room for 4001 MB"),
      );
      expect(await checkoutsOf(id)).toEqual([]);
      await large(4000);
      expect(await openCheckout(withProcessor(opening()), id)).toMatchObject({ status: "open" });
    },
  );

  it("whose memory is reserved is not refused for another of the same account that begins just after it", async () => {
    await write(
      update("hosts", hostId, { memory_mb: 90_000 }),
      update("packs", packIds.large, { memory_mb: 3000 }),
    );
    const accountId = newId("account");
    const ids = { first: newId("invoice"), second: newId("invoice") };
    for (const id of Object.values(ids)) {
      const resource = newId("database");
      await write(
        resourceRow("databases", {
          id: resource,
          account_id: accountId,
          host_id: hostId,
          next_pack_id: packIds.large,
        }),
        invoiceRow({
          id,
          account_id: accountId,
          resource_id: resource,
          kind: "change",
          pack_id: packIds.large,
        }),
      );
    }
    const ctx = withProcessor(opening());
    let times = 0;
    const db = Object.create(ctx.db, {
      batch: {
        value: async (statements: Parameters<Ctx["db"]["batch"]>[0]) => {
          const answers = await ctx.db.batch(statements);
          // It has read, and has begun.
          if (++times === 2) await write(checkoutRow(ids.second, "open"));
          return answers;
        },
      },
    }) as Ctx["db"];
    expect(await openCheckout({ ...ctx, db }, ids.first)).toMatchObject({ status: "open" });
    await write(bindings.DB.prepare("DELETE FROM checkouts WHERE invoice_id = ?").bind(ids.second));
    await expect(openCheckout(ctx, ids.second)).rejects.toMatchObject(
      because("Capacity is reserved for another pack of yours"),
    );
  });

  it("that was never shown to anybody is over after its hour, and one that was is asked about", async () => {
    const cases = {
      "never shown, over": { session_id: null, expires_at: now.getTime(), over: true },
      "never shown, not yet over": { session_id: null, expires_at: now.getTime() + 1, over: false },
      "shown, over": { session_id: "shown", expires_at: at(-1), over: false },
      "another processor's": { session_id: "elsewhere", processor: "stripe", over: true },
    };
    for (const [name, { over, ...row }] of Object.entries(cases)) {
      const invoice = await billed();
      await write(checkoutRow(invoice.id, row.session_id === null ? "opening" : "open", row));
      const { asked, createCheckout } = opening();
      const retrieve = vi.fn((id: string) => Promise.resolve(reported({ id })));
      await openCheckout(withProcessor({ createCheckout, retrieve }), invoice.id);
      expect([name, await checkoutsOf(invoice.id)]).toEqual([
        name,
        over
          ? [
              { number: 1, status: "expired" },
              { number: 2, status: "open" },
            ]
          : [{ number: 1, status: "open" }],
      ]);
      expect([name, asked.map(({ key }) => key.at(-1)), retrieve.mock.calls.length]).toEqual([
        name,
        over ? ["2"] : row.session_id === null ? ["1"] : [],
        name === "shown, over" ? 1 : 0,
      ]);
    }
  });

  it.each([
    ["refuses to open", { session_id: null }, new ProcessorRefused("Too little"), "failed"],
    ["refuses to tell of", {}, new ProcessorRefused("Forbidden"), "open"],
    ["does not know yet, though its hour is not over", {}, new UnknownCheckout("None"), "open"],
    ["has no answer about", {}, new Error("Lost"), "open"],
    ["may or may not have opened", { session_id: null }, new Error("Lost"), "opening"],
    ["has no answer about after its hour", { expires_at: at(-1) }, new Error("Lost"), "open"],
  ])("that the processor %s leaves the customer to try again", async (_, row, error, status) => {
    const [invoice, other] = [await billed(), await billed()];
    const log = silently();
    const before = "session_id" in row ? "opening" : "open";
    await write(checkoutRow(invoice.id, before, row), checkoutRow(other.id, before, row));
    const fails = () => Promise.reject(error);
    const failing = withProcessor({ createCheckout: fails, retrieve: fails });
    await expect(openCheckout(failing, invoice.id)).rejects.toMatchObject(
      because("The payment processor is not reachable right now"),
    );
    expect([await checkoutsOf(invoice.id), await checkoutsOf(other.id)]).toEqual([
      [{ number: 1, status }],
      [{ number: 1, status: before }],
    ]);
    const [{ id } = {}] = await rows("SELECT id FROM checkouts WHERE invoice_id = ?", invoice.id);
    expect(JSON.parse(String(log.mock.calls[0]?.[0]))).toMatchObject({ checkout: id });
  });

  it.each([
    ["at its hour", now.getTime(), true],
    ["a millisecond before", now.getTime() + 1, false],
  ])("that the processor does not know %s makes room for another: %s %s", async (_, expires_at, isOver) => {
    silently();
    const invoice = await billed();
    await write(checkoutRow(invoice.id, "open", { expires_at }));
    const retrieve = () => Promise.reject(new UnknownCheckout("None"));
    const opened = openCheckout(withProcessor({ ...opening(), retrieve }), invoice.id);
    if (isOver) expect(await opened).toMatchObject({ status: "open" });
    else await expect(opened).rejects.toMatchObject(because("not reachable"));
    expect(await checkoutsOf(invoice.id)).toEqual(
      isOver
        ? [
            { number: 1, status: "expired" },
            { number: 2, status: "open" },
          ]
        : [{ number: 1, status: "open" }],
    );
  });

  it("that was paid while the processor was asked stays paid, whatever is answered", async () => {
    silently();
    for (const answer of ["opened", "refused"]) {
      const invoice = await billed();
      const id = newId("checkout");
      await write(checkoutRow(invoice.id, "opening", { id, session_id: null }));
      const createCheckout = async () => {
        await write(
          update("checkouts", id, { status: "paid", session_id: `paid-${id}` }),
          update("invoices", invoice.id, { status: "paid" }),
        );
        if (answer === "refused") throw new ProcessorRefused("Paid");
        return reported({ id: `paid-${id}`, status: "expired" });
      };
      const opened = openCheckout(withProcessor({ createCheckout }), invoice.id);
      if (answer === "refused") await expect(opened).rejects.toMatchObject(because("not reachable"));
      else expect(await opened).toBeNull();
      expect([answer, await rowOf("checkouts", id)]).toMatchObject([answer, { status: "paid", url: null }]);
    }
  });
});

describe("reconciliation", () => {
  const asking = () => {
    const asked: string[] = [];
    const answer = (word: string) => (id: string) => {
      asked.push(`${word} ${id}`);
      return Promise.resolve(reported({ id, status: word === "expire" ? "expired" : "open" }));
    };
    const createCheckout = ({ invoiceId }: Checkout) => answer("create")(invoiceId);
    return { asked, createCheckout, retrieve: answer("retrieve"), expire: answer("expire") };
  };

  it("asks about what is due, the longest waiting first, 20 at once, and again after half its age", async () => {
    const cases = {
      young: { created_at: now.getTime() - 3 * 60_000, next: minutes(2) },
      "four minutes": { created_at: now.getTime() - 4 * 60_000, next: minutes(2) },
      older: { created_at: now.getTime() - 30 * 60_000, next: minutes(15) },
      "two hours": { created_at: now.getTime() - 120 * 60_000, next: minutes(60) },
      old: { created_at: at(-2), next: minutes(60) },
    };
    const ids: Record<string, Id<"checkout">> = {};
    for (const [index, [name, { created_at }]] of Object.entries(cases).entries()) {
      const { id } = await billed();
      ids[name] = newId("checkout");
      await write(
        checkoutRow(id, index % 2 === 0 ? "open" : "processing", {
          id: ids[name],
          session_id: `${name}-${id}`,
          created_at,
          check_at: now.getTime() - index,
        }),
      );
    }
    const [early, ended] = [await billed(), await billed()];
    await write(
      checkoutRow(early.id, "open", { check_at: now.getTime() + 1 }),
      ...["paid", "expired", "failed"].map((status, number) =>
        checkoutRow(ended.id, status, { check_at: 0, number }),
      ),
    );
    const { asked, ...answers } = asking();
    await reconcilePayments(withProcessor(answers));
    expect(asked.map((one) => one.split(/[ -]/).slice(1, -1).join(" "))).toEqual(
      ["old", "two hours", "older", "four minutes", "young"].map((name) => expect.stringContaining(name)),
    );
    for (const [name, { next }] of Object.entries(cases))
      expect([name, (await rowOf("checkouts", ids[name] ?? ""))?.["check_at"]]).toEqual([name, next]);
    expect(await rows("SELECT check_at FROM checkouts WHERE invoice_id = ?", early.id)).toEqual([
      { check_at: now.getTime() + 1 },
    ]);
  });

  it("takes 20 checkouts and 20 refunds a turn", async () => {
    silently();
    const refund = vi.fn(() => Promise.reject(new Error("Lost")));
    for (let count = 0; count < 21; count++) {
      const invoice = await billed({ status: "paid" });
      await write(
        checkoutRow(invoice.id, "open", { check_at: 0 }),
        insert("refunds", {
          id: newId("refund"),
          invoice_id: invoice.id,
          payment_reference: uniqueName("pi"),
          amount_cents: 1000,
          status: "pending",
          created_by: invoice.accountId,
          created_at: 0,
        }),
      );
    }
    const { asked, ...answers } = asking();
    await reconcilePayments(withProcessor({ ...answers, refund }));
    expect([asked.length, refund.mock.calls.length]).toEqual([20, 20]);
  });

  it("finishes the refunds that are pending, and only those, though one of them fails", async () => {
    silently();
    const refundRow = async (status: string) => {
      const { id } = await billed({ status: "paid" });
      await write(
        insert("refunds", {
          id: newId("refund"),
          invoice_id: id,
          payment_reference: id,
          amount_cents: 1000,
          status,
          created_by: "acc",
          created_at: 0,
        }),
      );
      return id;
    };
    const [first, lost, done, failed] = [
      await refundRow("pending"),
      await refundRow("pending"),
      await refundRow("done"),
      await refundRow("failed"),
    ];
    const refund = vi.fn(({ invoiceId }: { invoiceId: string }): Promise<Refunded> =>
      invoiceId === lost
        ? Promise.reject(new Error("Lost"))
        : Promise.resolve({ reference: "re_1", status: "done", error: null }),
    );
    await reconcilePayments(withProcessor({ refund }));
    expect(refund.mock.calls.map(([{ invoiceId }]) => invoiceId).toSorted()).toEqual(
      [first, lost].toSorted(),
    );
    expect(await Promise.all([first, lost, done, failed].map((id) => statusOf("invoices", id)))).toEqual([
      "refunded",
      "paid",
      "paid",
      "paid",
    ]);
  });

  it.each([
    ["an unpaid invoice's is asked about", "unpaid", "open", {}, "retrieve"],
    ["a void invoice's is closed", "void", "open", {}, "expire"],
    ["a paid invoice's is closed", "paid", "open", {}, "expire"],
    ["a void invoice's at the bank is asked about", "void", "processing", {}, "retrieve"],
    [
      "a void invoice's that is over is asked about",
      "void",
      "open",
      { expires_at: now.getTime() },
      "retrieve",
    ],
    [
      "a void invoice's that is nearly over is closed",
      "void",
      "open",
      { expires_at: now.getTime() + 1 },
      "expire",
    ],
    ["one that was never shown waits for its customer", "unpaid", "opening", { session_id: null }, null],
    ["a void one that was never shown waits for its end", "void", "opening", { session_id: null }, null],
    ["one without a session is not closed", "void", "open", { session_id: null }, null],
  ])("%s", async (_, status, of, row, asks) => {
    for (const how of ["cron", "return"]) {
      const invoice = await billed({ status });
      const session = uniqueName("session");
      await write(checkoutRow(invoice.id, of, { session_id: session, check_at: 0, ...row }));
      const { asked, ...answers } = asking();
      const ctx = withProcessor(answers);
      if (how === "cron") await reconcilePayments(ctx);
      else await reconcileInvoice(ctx, invoice);
      expect(asked).toEqual(asks === null ? [] : [`${asks} ${session}`]);
      expect(await checkoutsOf(invoice.id)).toEqual([
        { number: 1, status: asks === "expire" ? "expired" : of },
      ]);
      await write(bindings.DB.prepare("DELETE FROM checkouts"));
    }
  });

  it("ends what was never shown to anybody once its hour is over", async () => {
    const [over, waits] = [await billed(), await billed()];
    await write(
      checkoutRow(over.id, "opening", { session_id: null, check_at: 0, expires_at: now.getTime() }),
      checkoutRow(waits.id, "opening", { session_id: null, check_at: 0, expires_at: now.getTime() + 1 }),
    );
    await reconcilePayments(withProcessor());
    expect([await checkoutsOf(over.id), await checkoutsOf(waits.id)]).toEqual([
      [{ number: 1, status: "expired" }],
      [{ number: 1, status: "opening" }],
    ]);
  });

  it("of an invoice asks about its own checkout that may be paid, and about no other", async () => {
    const [invoice, other] = [await billed(), await billed()];
    const session = uniqueName("session");
    await write(
      checkoutRow(invoice.id, "expired", { number: 1 }),
      checkoutRow(invoice.id, "processing", { number: 2, session_id: session }),
      checkoutRow(other.id, "open"),
    );
    const { asked, ...answers } = asking();
    await reconcileInvoice(withProcessor(answers), invoice);
    expect(asked).toEqual([`retrieve ${session}`]);
  });

  it("asks nobody about a checkout whose invoice is gone, and goes on", async () => {
    const log = silently();
    const invoice = await billed();
    const session = uniqueName("session");
    await write(
      checkoutRow(newId("invoice"), "open", { check_at: 0 }),
      checkoutRow(invoice.id, "open", { check_at: 1, session_id: session }),
    );
    const { asked, ...answers } = asking();
    await reconcilePayments(withProcessor(answers));
    expect([asked, log.mock.calls]).toEqual([[`retrieve ${session}`], []]);
  });

  it("goes on with the others where the processor has no answer about one", async () => {
    silently();
    const sessions: string[] = [];
    for (let index = 0; index < 2; index++) {
      const { id } = await billed();
      const session = uniqueName("session");
      sessions.push(session);
      await write(checkoutRow(id, "open", { check_at: index, session_id: session }));
    }
    const { asked, retrieve } = asking();
    const failing = (id: string) => (id === sessions[0] ? Promise.reject(new Error("Lost")) : retrieve(id));
    await reconcilePayments(withProcessor({ retrieve: failing }));
    expect(asked).toEqual([`retrieve ${sessions[1]}`]);
    expect(await rows("SELECT check_at FROM checkouts")).toEqual([
      { check_at: minutes(60) },
      { check_at: minutes(60) },
    ]);
  });
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
  const [t, minute] = [now.getTime(), 60_000];

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
  ])("is read again %s", async (_, until, readAt, isRead) => {
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
    it.each(Object.entries(cases))("%s", async (_, { amount = 1000, status, isFlagged, ...row }) => {
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

describe("a refund", () => {
  const operatorId = newId("account");
  const asOperator = (ctx: Ctx): Ctx => ({
    ...ctx,
    actor: { type: "key", accountId: operatorId, role: "operator", plan: "free", keyId: "key_1" },
  });
  const granted = (accountId: string, amount: number) =>
    write(
      insert("ledger_transfers", {
        id: newId("transaction"),
        debit_id: "system:granted",
        credit_id: accountId,
        amount,
        type: "grant",
        reference: uniqueName("grant"),
        created_at: 0,
      }),
    );
  const held = (account_id: string, amount: number) =>
    write(
      insert("ledger_holds", { id: uniqueName("hold"), account_id, amount, status: "open", created_at: 0 }),
    );
  const balanceOf = async (accountId: string) =>
    one("SELECT balance, held FROM ledger_accounts WHERE id = ?", accountId);
  /** A paid invoice, with so many of its 700 credits left. */
  async function paid(left = 700, more: Row = {}) {
    const reference = uniqueName("pi");
    const invoice = await billed({ status: "paid", ...more });
    await write(paymentRow(invoice.id, reference));
    if (left > 0) await granted(invoice.accountId, left);
    return { ...invoice, reference };
  }
  const invoiceOf = async (ctx: Ctx, id: Id<"invoice">) => {
    const [row] = await ctx.db.select().from(invoices).where(eq(invoices.id, id));
    if (!row) throw new Error(`There is no invoice ${id}`);
    return row;
  };
  const beginOf = async (of: Billed, isForced = false, ctx = withProcessor()) =>
    beginRefund(asOperator(ctx), await invoiceOf(ctx, of.id), isForced);
  const answering = (answer: Partial<Refunded> = {}) => {
    const refund = vi.fn((): Promise<Refunded> =>
      Promise.resolve({ reference: "re_1", status: "done", error: null, ...answer }),
    );
    return { refund };
  };
  const transfersOf = (id: string) =>
    rows(
      "SELECT debit_id, credit_id, amount, type, created_at FROM ledger_transfers WHERE reference = ?",
      id,
    );

  describe("begins", () => {
    it("once, with its credits held, and the operator who wanted it", async () => {
      const [other, of] = [await paid(), await paid()];
      const refund = await beginOf(of);
      expect(refund).toEqual({
        id: expect.stringMatching(/^rfd_/),
        invoiceId: of.id,
        paymentReference: of.reference,
        reference: null,
        amountCents: 1000,
        status: "pending",
        holdId: refund.id,
        missingCredits: 0,
        error: null,
        mark: null,
        createdBy: operatorId,
        createdAt: now,
      });
      expect(await one("SELECT * FROM ledger_holds WHERE id = ?", refund.id)).toMatchObject({
        account_id: of.accountId,
        amount: 700,
        status: "open",
        created_at: now.getTime(),
        expires_at: null,
      });
      expect(await beginOf(of)).toEqual(refund);
      expect([await balanceOf(of.accountId), await balanceOf(other.accountId)]).toEqual([
        { balance: 700, held: 700 },
        { balance: 700, held: 0 },
      ]);
      expect((await beginOf(other)).id).not.toBe(refund.id);
    });

    it("again where the last one failed", async () => {
      const of = await paid();
      const first = await beginOf(of);
      await finishRefund(withProcessor(answering({ status: "failed", error: "No" })), first);
      const next = await beginOf(of);
      expect([next.id === first.id, next.status]).toEqual([false, "pending"]);
      expect(await balanceOf(of.accountId)).toEqual({ balance: 700, held: 700 });
    });

    it("of what has no credits without a hold", async () => {
      const of = await paid(0);
      await write(bindings.DB.prepare("DELETE FROM credit_purchases WHERE invoice_id = ?").bind(of.id));
      // Beside it there is somebody else's purchase.
      await billed({ status: "paid" });
      const refund = await beginOf(of);
      expect(refund).toMatchObject({ holdId: null, missingCredits: 0, status: "pending" });
      expect(await rows("SELECT id FROM ledger_holds WHERE account_id = ?", of.accountId)).toEqual([]);
    });

    it("where credits are spent or held only if it is forced, and takes what there is", async () => {
      for (const [left, open, free] of [
        [700, 1, 699],
        [699, 0, 699],
        [5, 5, 0],
        [0, 0, 0],
      ] as const) {
        const of = await paid(left);
        if (open > 0) await held(of.accountId, open);
        await expect(beginOf(of)).rejects.toMatchObject(
          because(`${700 - free} of the 700 credits are spent or held. Send {"force": true}`),
        );
        expect(await rows("SELECT id FROM refunds WHERE invoice_id = ?", of.id)).toEqual([]);
        const refund = await beginOf(of, true);
        expect(refund).toMatchObject({ holdId: free > 0 ? refund.id : null, missingCredits: 700 - free });
        const taken = await rows("SELECT amount FROM ledger_holds WHERE id = ?", refund.id);
        expect(taken).toEqual(free > 0 ? [{ amount: free }] : []);
      }
    });

    it("not of what was paid through another processor, nor of what has no payment", async () => {
      const of = await paid();
      await expect(beginOf(of, false, withProcessor({ name: "stripe" }))).rejects.toMatchObject(
        because("It was paid through the test processor"),
      );
      const unpaid = await billed({ status: "paid" });
      await expect(beginOf(unpaid)).rejects.toThrow(`Invoice ${unpaid.id} is paid but has no payment`);
      expect(await rows("SELECT id FROM refunds")).toEqual([]);
    });

    it("not if the invoice or its credits change at the same moment, or another one began", async () => {
      const spent = await paid();
      const third = () => {
        let times = 0;
        return (act: () => Promise<unknown>) => async () => {
          if (++times === 2) await act();
        };
      };
      const during = (act: () => Promise<unknown>) => interrupted(withProcessor(), third()(act));
      await expect(
        beginOf(
          spent,
          false,
          during(() => held(spent.accountId, 1)),
        ),
      ).rejects.toMatchObject(because("changed in the meantime"));
      const refunded = await paid();
      await expect(
        beginOf(
          refunded,
          false,
          during(() => write(update("invoices", refunded.id, { status: "refunded" }))),
        ),
      ).rejects.toMatchObject(because("changed in the meantime"));
      const twice = await paid();
      await expect(
        beginOf(
          twice,
          false,
          during(() =>
            write(
              insert("refunds", {
                id: newId("refund"),
                invoice_id: twice.id,
                payment_reference: twice.reference,
                amount_cents: 1000,
                status: "pending",
                created_by: "acc",
                created_at: 0,
              }),
            ),
          ),
        ),
      ).rejects.toMatchObject(because("changed in the meantime"));
      // To the last credit.
      const exact = await paid(701);
      expect(
        await beginOf(
          exact,
          false,
          during(() => held(exact.accountId, 1)),
        ),
      ).toMatchObject({
        missingCredits: 0,
      });
      expect(await balanceOf(exact.accountId)).toEqual({ balance: 701, held: 701 });
      for (const of of [refunded, twice])
        expect(await balanceOf(of.accountId)).toEqual({ balance: 700, held: 0 });
    });
  });

  const reread = async (id: string) => rowOf("refunds", id);
  const activityOf = (id: string) => rows("SELECT operation, actor FROM activity WHERE resource_id = ?", id);

  it("that is done ends the hold, takes the credits back and refunds the invoice, once and alone", async () => {
    const [of, other] = [await paid(), await paid()];
    const [refund, waiting] = [await beginOf(of), await beginOf(other)];
    const { refund: asked } = answering();
    const ctx = withProcessor({ refund: asked });
    await finishRefund(ctx, refund);
    expect(asked).toHaveBeenCalledExactlyOnceWith(refund);
    const done = await reread(refund.id);
    expect(done).toMatchObject({ status: "done", reference: "re_1", error: null });
    // What was read before it was done changes nothing.
    await finishRefund(
      withProcessor(answering({ reference: "re_2", status: "failed", error: "No" })),
      refund,
    );
    await finishRefund(withProcessor(answering({ reference: "re_3" })), refund);
    await finishRefund(withProcessor(answering({ reference: "re_4", status: "pending" })), refund);
    expect(await reread(refund.id)).toEqual(done);
    expect(await transfersOf(of.id)).toEqual([
      {
        debit_id: of.accountId,
        credit_id: "system:sold",
        amount: 700,
        type: "refund",
        created_at: now.getTime(),
      },
    ]);
    expect(await statusOf("invoices", of.id)).toBe("refunded");
    expect(await activityOf(of.id)).toEqual([{ operation: "refundInvoice", actor: "system" }]);
    expect([await balanceOf(of.accountId), await flags()]).toEqual([{ balance: 0, held: 0 }, []]);
    expect([
      await statusOf("invoices", other.id),
      await reread(waiting.id),
      await activityOf(other.id),
    ]).toMatchObject(["paid", { status: "pending", reference: null }, []]);
    expect(await balanceOf(other.accountId)).toEqual({ balance: 700, held: 700 });
  });

  it("that failed gives the credits back and leaves the invoice paid", async () => {
    const [of, other] = [await paid(), await paid()];
    const [refund, waiting] = [await beginOf(of), await beginOf(other)];
    const error = "The card is closed";
    await finishRefund(withProcessor(answering({ status: "failed", error })), refund);
    expect(await reread(refund.id)).toMatchObject({ status: "failed", reference: "re_1", error });
    // An answer that is late changes nothing.
    await finishRefund(withProcessor(answering()), refund);
    expect([await balanceOf(of.accountId), await balanceOf(other.accountId)]).toEqual([
      { balance: 700, held: 0 },
      { balance: 700, held: 700 },
    ]);
    expect([
      await statusOf("invoices", of.id),
      await transfersOf(of.id),
      await activityOf(of.id),
      await flags(),
      await reread(waiting.id),
    ]).toMatchObject(["paid", [], [], [], { status: "pending" }]);
  });

  it("that is on its way to the bank is asked about by its reference, and changes nothing else", async () => {
    const [of, other] = [await paid(), await paid()];
    const [refund, waiting] = [await beginOf(of), await beginOf(other)];
    await finishRefund(withProcessor(answering({ status: "pending" })), refund);
    expect(await reread(refund.id)).toMatchObject({ status: "pending", reference: "re_1" });
    expect([
      await balanceOf(of.accountId),
      await statusOf("invoices", of.id),
      await reread(waiting.id),
    ]).toMatchObject([{ balance: 700, held: 700 }, "paid", { reference: null }]);
  });

  it("without an answer changes nothing, and is written to the log", async () => {
    const log = silently();
    const of = await paid();
    const refund = await beginOf(of);
    const before = await reread(refund.id);
    await finishRefund(withProcessor({ refund: () => Promise.reject(new Error("Lost")) }), refund);
    expect([await reread(refund.id), await statusOf("invoices", of.id)]).toEqual([before, "paid"]);
    expect(JSON.parse(String(log.mock.calls[0]?.[0]))).toMatchObject({ refund: refund.id });
  });

  it("of credits that were spent is flagged, with one missing or all", async () => {
    const [some, all] = [await paid(699), await paid(0)];
    for (const of of [some, all]) {
      const refund = await beginOf(of, true);
      await finishRefund(withProcessor(answering()), refund);
      expect(
        await one(
          "SELECT reason, invoice_id, amount_cents, currency FROM payment_flags WHERE reference = ?",
          refund.id,
        ),
      ).toEqual({
        reason: "refund_of_spent_credits",
        invoice_id: of.id,
        amount_cents: 1000,
        currency: "eur",
      });
      await finishRefund(withProcessor(answering()), { ...refund, id: newId("refund") });
      expect([await flags(), await statusOf("invoices", of.id)]).toEqual([
        expect.objectContaining({ length: of === some ? 1 : 2 }),
        "refunded",
      ]);
    }
    expect(await transfersOf(some.id)).toMatchObject([{ amount: 699 }]);
    expect(await transfersOf(all.id)).toEqual([]);
  });

  it.each(["sites", "databases"] as const)("of one of the %s ends the term that it bought", async (kind) => {
    const id = newId("invoice");
    const word = kind === "sites" ? ("site" as const) : ("database" as const);
    const { one: made } = await make(
      kind,
      { row: { paid_until: at(20) } },
      {
        one: {
          beside: (of) => [
            invoiceRow({ id, account_id: of.accountId, resource_id: of.id, kind: word, status: "paid" }),
            paymentRow(id, uniqueName("pi")),
          ],
        },
      },
    );
    const refund = await beginOf({ id, accountId: made.accountId });
    await finishRefund(withProcessor(answering({ status: "failed" })), refund);
    expect((await rowOf(kind, made.id))?.["paid_until"]).toBe(at(20));
    const next = await beginOf({ id, accountId: made.accountId });
    await finishRefund(withProcessor(answering()), next);
    expect((await rowOf(kind, made.id))?.["paid_until"]).toBe(now.getTime());
    expect(await statusOf("invoices", id)).toBe("refunded");
    expect(await listening().ctx.db.select().from(refunds)).toHaveLength(2);
  });
});
