import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Id } from "../../protocol/ids.ts";
import { checkoutStatuses } from "../../protocol/states.ts";
import {
  ProcessorRefused,
  UnknownCheckout,
  type Checkout,
  type Refunded,
} from "../../worker/adapters/payments/payments.ts";
import { applySession } from "../../worker/billing/payments/apply-session.ts";
import { openCheckout } from "../../worker/billing/payments/checkout.ts";
import { receiveEvent } from "../../worker/billing/payments/receive-event.ts";
import { reconcileInvoice, reconcilePayments } from "../../worker/billing/payments/reconcile.ts";
import type { Ctx } from "../../worker/ctx.ts";
import {
  at,
  begin,
  billed,
  checkoutRow,
  insert,
  interrupted,
  invoiceRow,
  make,
  minutes,
  newId,
  now,
  one,
  packIds,
  resourceRow,
  rowOf,
  statusOf,
  update,
  write,
} from "./billing-rows.ts";
import {
  because,
  checkoutsOf,
  flags,
  outcomeOf,
  reported,
  silently,
  told,
  withProcessor,
} from "./processor.ts";
import { bindings, siteUrl, uniqueName } from "./service.ts";
import { rows } from "./stripe-service.ts";

// Rows are written as a step finds them, the processor answers as the test says, and the step is called itself.
let hostId: Id<"host">;
beforeEach(async () => {
  ({ hostId } = await begin());
});
afterEach(() => vi.restoreAllMocks());

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
  const opening = () => {
    const asked: Checkout[] = [];
    const createCheckout = (checkout: Checkout) => {
      asked.push(checkout);
      return Promise.resolve(reported({ invoiceId: checkout.invoiceId }));
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

  it("is not begun of an invoice that is overdue, unless it is a renewal's", async () => {
    const due = { due_at: at(0) };
    const [change, renewal] = [
      await billed({ ...due, kind: "change" }),
      await billed({ ...due, kind: "renewal" }),
    ];
    const { createCheckout } = opening();
    const ctx = withProcessor({ createCheckout });
    await expect(openCheckout(ctx, change.id)).rejects.toMatchObject(
      because("was due on 2026-03-10 and can no longer be paid"),
    );
    expect(await openCheckout(ctx, renewal.id)).toMatchObject({ status: "open" });
    // One that was begun in time may be completed.
    const begun = reported({ status: "open" });
    await write(checkoutRow(change.id, "open", { session_id: begun.id }));
    const retrieve = () => Promise.resolve(begun);
    expect(await openCheckout(withProcessor({ retrieve }), change.id)).toEqual(begun);
  });

  it("is not begun anew when one that was held open ends after the invoice was due", async () => {
    const invoice = await billed({ kind: "change", due_at: at(0) });
    const ended = reported({ status: "expired" });
    await write(checkoutRow(invoice.id, "open", { session_id: ended.id }));
    const retrieve = () => Promise.resolve(ended);
    await expect(openCheckout(withProcessor({ retrieve }), invoice.id)).rejects.toMatchObject(
      because("can no longer be paid"),
    );
    expect(await checkoutsOf(invoice.id)).toEqual([{ number: 1, status: "expired" }]);
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
    ["makes room for another once its hour is over", now.getTime(), true],
    ["is kept until then", now.getTime() + 1, false],
  ])("that the processor does not know %s", async (_, expires_at, isOver) => {
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
    expect(asked).toEqual(
      ["old", "two hours", "older", "four minutes", "young"].map((name) =>
        expect.stringContaining(`retrieve ${name}-`),
      ),
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
