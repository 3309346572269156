import { eq, sql } from "drizzle-orm";
import { beforeEach, describe, expect, it } from "vitest";
import type { Id } from "../../protocol/ids.ts";
import { availableCredits } from "../../worker/billing/credits/balance.ts";
import { holdCredits } from "../../worker/billing/credits/hold.ts";
import { spendHold } from "../../worker/billing/credits/post-hold.ts";
import { voidExpiredHolds, voidHold } from "../../worker/billing/credits/void-hold.ts";
import { invoiceById } from "../../worker/billing/invoices/by-id.ts";
import { firstInvoice } from "../../worker/billing/invoices/first.ts";
import { neverPaid, refuseMoreUnpaid } from "../../worker/billing/invoices/never-paid.ts";
import { settleInvoice, type Settlement } from "../../worker/billing/invoices/settle.ts";
import { makeVoid, voidOverdue } from "../../worker/billing/invoices/void.ts";
import { invoices, packs } from "../../worker/db/schema.ts";
import {
  at,
  begin,
  billed,
  checkoutRow,
  insert,
  interrupted,
  invoiceRow,
  listening,
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
  type Billed,
  type Made,
  type Row,
} from "./billing-rows.ts";
import { interruptedDatabase } from "./crashing-database.ts";
import { bindings, uniqueName } from "./service.ts";
import { flagsOf, rows } from "./stripe-service.ts";
import { ctxAt } from "./terms-service.ts";

// Rows are written as a step finds them, and the step is called itself.
beforeEach(async () => {
  await begin();
});

const invoiceOf = async (id: Id<"invoice">) => {
  const [row] = await listening().ctx.db.select().from(invoices).where(eq(invoices.id, id));
  if (!row) throw new Error(`There is no invoice ${id}`);
  return row;
};

describe("money that was received", () => {
  const { ctx } = listening();
  const payment = (more: Partial<Settlement> = {}): Settlement => ({
    processor: "test",
    reference: uniqueName("pi"),
    sessionId: uniqueName("session"),
    amountCents: 1000,
    currency: "eur",
    ...more,
  });
  const paymentsOf = (id: string) => rows("SELECT * FROM payments WHERE invoice_id = ?", id);
  const event = () => ({ id: uniqueName("evt"), type: "paid", body: "{}" });
  const outcomeOf = async (id: string) =>
    (await one("SELECT outcome FROM processor_events WHERE id = ?", id))?.["outcome"];
  const activityOf = (id: string) =>
    rows("SELECT operation, actor, account_id FROM activity WHERE resource_id = ?", id);

  it("pays its invoice once, with its payment, its checkout and its event, and no other invoice", async () => {
    const [of, other] = [await billed(), await billed()];
    const paid = payment({ event: event() });
    const checkouts = {
      own: newId("checkout"),
      "of another session": newId("checkout"),
      "of another processor": newId("checkout"),
    };
    await write(
      checkoutRow(of.id, "open", { id: checkouts.own, session_id: paid.sessionId }),
      checkoutRow(other.id, "open", { id: checkouts["of another session"] }),
      checkoutRow(newId("invoice"), "open", {
        id: checkouts["of another processor"],
        session_id: paid.sessionId,
        processor: "stripe",
      }),
    );
    expect(await settleInvoice(ctx, of.id, paid)).toBe("settled");
    expect(await rowOf("invoices", of.id)).toMatchObject({
      status: "paid",
      paid_at: now.getTime(),
      settlement_mark: expect.any(String),
    });
    expect(await paymentsOf(of.id)).toEqual([
      {
        id: expect.stringMatching(/^pay_/),
        invoice_id: of.id,
        processor: "test",
        reference: paid.reference,
        amount_cents: 1000,
        currency: "eur",
        created_at: now.getTime(),
      },
    ]);
    expect(await outcomeOf(paid.event?.id ?? "")).toBe("applied");
    const again = { ...paid, event: event() };
    expect(await settleInvoice(ctx, of.id, again)).toBe("known");
    expect(await outcomeOf(again.event.id)).toBe("known");
    expect(await paymentsOf(of.id)).toHaveLength(1);
    expect(await activityOf(of.id)).toEqual([
      { operation: "settleInvoice", actor: "system", account_id: of.accountId },
    ]);
    expect([await flagsOf(of.id), await activityOf(other.id)]).toEqual([[], []]);
    expect(await rowOf("invoices", other.id)).toMatchObject({ status: "unpaid", paid_at: null });
    expect(await Promise.all(Object.values(checkouts).map((id) => statusOf("checkouts", id)))).toEqual([
      "paid",
      "open",
      "open",
    ]);
  });

  it.each([
    ["another amount", {}, { amountCents: 999 }, "wrong_amount"],
    ["more than was asked for", {}, { amountCents: 1001 }, "wrong_amount"],
    ["another currency", {}, { currency: "usd" }, "wrong_currency"],
    ["another currency and amount", {}, { currency: "usd", amountCents: 1 }, "wrong_currency"],
    ["a void invoice", { status: "void" }, {}, "invoice_void"],
    ["another amount of a void invoice", { status: "void" }, { amountCents: 999 }, "wrong_amount"],
    ["a paid invoice", { status: "paid" }, {}, "paid_twice"],
    ["a refunded invoice", { status: "refunded" }, {}, "paid_twice"],
  ])("for %s is flagged, once however often it is told, and pays nothing", async (_, row, more, reason) => {
    const of = await billed(row);
    const before = await rowOf("invoices", of.id);
    const paid = payment({ ...more, event: event() });
    for (let time = 0; time < 2; time++) expect(await settleInvoice(ctx, of.id, paid)).toBe("flagged");
    expect(await rows("SELECT * FROM payment_flags")).toEqual([
      {
        id: expect.stringMatching(/^flag_/),
        reason,
        reference: paid.reference,
        invoice_id: of.id,
        amount_cents: paid.amountCents,
        currency: paid.currency,
        created_at: now.getTime(),
        resolved_at: null,
        resolved_by: null,
        resolution: null,
      },
    ]);
    expect(await outcomeOf(paid.event?.id ?? "")).toBe("flagged");
    expect([await rowOf("invoices", of.id), await paymentsOf(of.id), await activityOf(of.id)]).toEqual([
      before,
      [],
      [],
    ]);
  });

  it("for an invoice that is not there, or for none, is flagged as well, though it was refunded before", async () => {
    await billed();
    const unknown = [null, "something", newId("invoice"), newId("site")];
    for (const id of unknown) {
      const paid = payment();
      await write(
        insert("payment_flags", {
          id: newId("flag"),
          reason: "refunded_elsewhere",
          reference: `${paid.reference}:1000`,
          amount_cents: 1000,
          currency: "eur",
          created_at: 0,
        }),
      );
      expect(await settleInvoice(ctx, id, paid)).toBe("flagged");
      expect(
        await rows("SELECT reason, invoice_id FROM payment_flags WHERE reference = ?", paid.reference),
      ).toEqual([{ reason: "unknown_invoice", invoice_id: id }]);
    }
  });

  it("that paid one invoice pays no other, and is no other payment of another processor's", async () => {
    const [first, second, third] = [await billed(), await billed(), await billed()];
    const paid = payment();
    await settleInvoice(ctx, first.id, paid);
    const again = event();
    expect(await settleInvoice(ctx, second.id, { ...paid, event: again })).toBe("known");
    expect([
      await statusOf("invoices", second.id),
      await flagsOf(second.id),
      await outcomeOf(again.id),
    ]).toEqual(["unpaid", [], "known"]);
    // Of two processors, each names its payments itself.
    expect(await settleInvoice(ctx, third.id, { ...paid, processor: "stripe" })).toBe("settled");
    // One that is known is not flagged where it does not match.
    expect(await settleInvoice(ctx, second.id, { ...paid, amountCents: 1 })).toBe("known");
    expect(await settleInvoice(ctx, null, paid)).toBe("known");
    expect(await rows("SELECT id FROM payment_flags")).toEqual([]);
    expect(await settleInvoice(ctx, second.id, payment({ processor: "stripe" }))).toBe("settled");
    const elsewhere = payment();
    await settleInvoice(ctx, (await billed()).id, elsewhere);
    const wrong = { ...elsewhere, processor: "stripe", amountCents: 1 } as const;
    expect(await settleInvoice(ctx, (await billed()).id, wrong)).toBe("flagged");
  });

  it("is settled where a kind of invoice has an effect, and nothing is lost where it has none", async () => {
    const of = await billed({ kind: "gift" });
    await expect(settleInvoice(ctx, of.id, payment())).rejects.toThrow(
      "A paid gift invoice has no effect defined",
    );
    expect([await statusOf("invoices", of.id), await paymentsOf(of.id)]).toEqual(["unpaid", []]);
  });

  describe("and whose refund was told before", () => {
    const reference = () => uniqueName("early");
    const told = (of: string, amount: number, more: Row = {}) =>
      write(
        insert("payment_flags", {
          id: newId("flag"),
          reason: "refunded_elsewhere",
          reference: `${of}:${amount}`,
          amount_cents: amount,
          currency: "eur",
          created_at: 0,
          ...more,
        }),
      );
    const creditsOf = ({ accountId }: Billed) => availableCredits(ctx, accountId);

    it.each([1000, 1001])("in full buys nothing: the invoice is refunded (%d cents)", async (amount) => {
      const [of, other] = [await billed(), await billed()];
      const paid = payment({ reference: reference(), event: event() });
      await told(paid.reference, amount);
      expect(await settleInvoice(ctx, of.id, paid)).toBe("settled");
      expect(await rowOf("invoices", of.id)).toMatchObject({ status: "refunded", paid_at: now.getTime() });
      expect([await creditsOf(of), await paymentsOf(of.id), await activityOf(of.id)]).toMatchObject([
        0,
        [{ reference: paid.reference }],
        [],
      ]);
      expect(await outcomeOf(paid.event?.id ?? "")).toBe("applied");
      expect(await settleInvoice(ctx, of.id, paid)).toBe("known");
      expect([await statusOf("invoices", of.id), await statusOf("invoices", other.id)]).toEqual([
        "refunded",
        "unpaid",
      ]);
    });

    it.each([
      ["in part", 999, {}],
      ["of another payment", 1000, { reference: "another:1000" }],
      ["told as a dispute", 1000, { reason: "disputed" }],
      ["of a payment with a longer name", 1000, { reference: "longer:1:1000" }],
    ])("%s buys what it is for", async (_, amount, more) => {
      const of = await billed();
      const paid = payment({ reference: reference() });
      await told(paid.reference, amount, more);
      expect(await settleInvoice(ctx, of.id, paid)).toBe("settled");
      expect([await statusOf("invoices", of.id), await creditsOf(of)]).toEqual(["paid", 700]);
    });

    it("at the same moment takes the site that waited for it as well", async () => {
      const id = newId("invoice");
      const { one: made } = await make(
        "sites",
        { row: { status: "PENDING", wanted: "STOPPED", paid_until: null, current_deployment_id: null } },
        {
          one: {
            beside: (of) => [invoiceRow({ id, account_id: of.accountId, resource_id: of.id, kind: "site" })],
          },
        },
      );
      const paid = payment({ reference: reference() });
      // It has read what there is.
      const database = interruptedDatabase(bindings.DB, 1, () => told(paid.reference, 1000));
      expect(await settleInvoice(ctxAt(now, database), id, paid)).toBe("settled");
      expect([await statusOf("invoices", id), await rowOf("sites", made.id)]).toEqual([
        "refunded",
        undefined,
      ]);
    });

    it("takes the site that waited for it, and only if it was settled by this payment", async () => {
      const beside = (made: Made) => [
        invoiceRow({
          id: made.id.replace("site", "invoice"),
          account_id: made.accountId,
          resource_id: made.id,
          kind: "site",
        }),
      ];
      const row = { status: "PENDING", wanted: "STOPPED", paid_until: null, current_deployment_id: null };
      const made = await make("sites", { row, beside }, { refunded: {}, wrongly: {} });
      for (const [name, amountCents] of [
        ["refunded", 1000],
        ["wrongly", 999],
      ] as const) {
        const paid = payment({ reference: reference(), amountCents });
        await told(paid.reference, 1000);
        await settleInvoice(ctx, made[name].id.replace("site", "invoice"), paid);
      }
      expect(await rows("SELECT id FROM sites")).toEqual([{ id: made.wrongly.id }]);
    });
  });
});

describe("an invoice that is overdue", () => {
  it("is void, unless it is a renewal or somebody is paying it", async () => {
    const cases: Record<string, { row?: Row; paying?: string; status: string }> = {
      overdue: { status: "void" },
      "of a change": { row: { kind: "change" }, status: "void" },
      "due now": { row: { due_at: now.getTime() }, status: "unpaid" },
      "of a renewal": { row: { kind: "renewal" }, status: "unpaid" },
      paid: { row: { status: "paid" }, status: "paid" },
      refunded: { row: { status: "refunded" }, status: "refunded" },
      "that somebody begins to pay": { paying: "opening", status: "unpaid" },
      "that somebody is paying": { paying: "open", status: "unpaid" },
      "at the bank": { paying: "processing", status: "unpaid" },
      "that nobody paid in time": { paying: "expired", status: "void" },
      "whose payment failed": { paying: "failed", status: "void" },
    };
    const ids: Record<string, Id<"invoice">> = {};
    for (const [name, { row, paying }] of Object.entries(cases)) {
      const { id } = await billed({ due_at: now.getTime() - 1, ...row });
      ids[name] = id;
      if (paying !== undefined) await write(checkoutRow(id, paying));
    }
    await voidOverdue(listening().ctx);
    for (const [name, { status }] of Object.entries(cases))
      expect([name, await statusOf("invoices", ids[name] ?? "")]).toEqual([name, status]);
  });

  it("is void in its turn of 50, however many others are being paid", async () => {
    const unpaid = () => rows("SELECT id FROM invoices WHERE status = 'unpaid' ORDER BY id");
    const paying: Row[] = [];
    for (let count = 0; count < 50; count++) {
      const { id } = await billed({ due_at: at(-9) });
      await write(checkoutRow(id, "processing"));
      paying.push({ id });
    }
    const { ctx } = listening();
    await billed({ due_at: at(-1) });
    await voidOverdue(ctx);
    expect(await unpaid()).toEqual(paying.toSorted((a, b) => (String(a["id"]) < String(b["id"]) ? -1 : 1)));
    for (let count = 0; count < 51; count++) await billed({ due_at: at(-1) });
    await voidOverdue(ctx);
    expect(await unpaid()).toHaveLength(51);
    await voidOverdue(ctx);
    expect(await unpaid()).toHaveLength(50);
  });

  it.each(["opening", "open", "processing"])(
    "stays where somebody begins to pay at the same moment (%s)",
    async (status) => {
      const of = await billed({ due_at: at(-1) });
      const ctx = interrupted(listening().ctx, () => write(checkoutRow(of.id, status)));
      await voidOverdue(ctx);
      expect(await statusOf("invoices", of.id)).toBe("unpaid");
    },
  );
});

describe("an invoice that is made void", () => {
  const { ctx } = listening();

  it("is answered as it is afterwards, and no other is void by it", async () => {
    const [of, paid, other] = [await billed(), await billed({ status: "paid" }), await billed()];
    const atBank = await billed();
    await write(checkoutRow(atBank.id, "processing"), checkoutRow(of.id, "open"));
    const holds = sql`status = 'processing'`;
    expect(await makeVoid(ctx, await invoiceOf(of.id), holds)).toMatchObject({
      id: of.id,
      status: "void",
      settlementMark: expect.any(String),
    });
    expect(await makeVoid(ctx, await invoiceOf(paid.id), holds)).toMatchObject({ status: "paid" });
    expect(await makeVoid(ctx, await invoiceOf(atBank.id), holds)).toMatchObject({ status: "unpaid" });
    expect(await statusOf("invoices", other.id)).toBe("unpaid");
  });

  it("may be gone meanwhile", async () => {
    const of = await billed();
    const row = await invoiceOf(of.id);
    await write(bindings.DB.prepare("DELETE FROM invoices WHERE id = ?").bind(of.id));
    expect(await makeVoid(ctx, row, sql`0`)).toEqual(row);
  });
});

describe("a first invoice", () => {
  it.each(["site", "database"] as const)("of a %s is beside its row, and never without it", async (kind) => {
    const { ctx } = listening();
    const table = kind === "site" ? "sites" : "databases";
    const [id, other, missing] = [newId(kind), newId(kind), newId(kind)];
    const accountId = newId("account");
    await write(
      update("packs", packIds.small, { kind }),
      resourceRow(table, { id, account_id: accountId, billing_term: 3, created_at: 7, status: "PENDING" }),
      resourceRow(table, { id: other, account_id: newId("account") }),
    );
    const [pack] = await ctx.db
      .select()
      .from(packs)
      .where(eq(packs.id, packIds.small as never));
    if (!pack) throw new Error("There is no pack");
    const ordered = { what: "Site mine", pack, billingTerm: 3, createdAt: now } as const;
    for (const each of [missing, id]) {
      const invoice = firstInvoice(ctx, { id: each, ...ordered });
      await ctx.db.batch([invoice.statement]);
      if (each === missing) expect(await rows("SELECT id FROM invoices")).toEqual([]);
      else
        expect(await rows("SELECT * FROM invoices")).toMatchObject([
          {
            id: invoice.invoiceId,
            token: invoice.invoiceToken,
            account_id: accountId,
            kind,
            status: "unpaid",
            // Three months at 1000 cents, less a tenth.
            amount_cents: 2700,
            currency: "eur",
            lines: JSON.stringify([{ description: "Site mine: Small, 3 months", amountCents: 2700 }]),
            resource_id: id,
            term_months: 3,
            pack_id: null,
            period_end: null,
            created_at: 7,
            due_at: at(14),
          },
        ]);
      // Nobody guesses it.
      expect(invoice.invoiceToken).toMatch(/^inv_.{40}/);
    }
    await write(update("packs", packIds.small, { kind: "site" }));
  });

  it("is refused to an account with 100 sites and databases that were never paid", async () => {
    const { ctx } = listening();
    const [accountId, stranger] = [newId("account"), newId("account")];
    const row = (table: "sites" | "databases", account_id: string, status: string) =>
      resourceRow(table, { id: newId(table === "sites" ? "site" : "database"), account_id, status });
    await write(
      insert("accounts", {
        id: accountId,
        name: "A",
        email: `${accountId}@example.com`,
        created_at: 0,
        updated_at: 0,
      }),
      insert("accounts", {
        id: stranger,
        name: "B",
        email: `${stranger}@example.com`,
        created_at: 0,
        updated_at: 0,
      }),
      ...(["sites", "sites", "databases"] as const).map((table) => row(table, accountId, "PENDING")),
      ...(["sites", "databases"] as const).flatMap((table) => [
        row(table, accountId, "RUNNING"),
        row(table, stranger, "PENDING"),
      ]),
    );
    expect(await neverPaid(ctx, accountId)).toEqual([{ count: 3 }]);
    expect(await neverPaid(ctx, newId("account"))).toEqual([]);
    expect(() => refuseMoreUnpaid([])).not.toThrow();
    expect(() => refuseMoreUnpaid([{ count: 99 }])).not.toThrow();
    expect(() => refuseMoreUnpaid([{ count: 100 }])).toThrow(
      expect.objectContaining({
        code: "conflict",
        extra: { reason: expect.stringContaining("100 of your sites and databases") },
      }),
    );
  });
});

it("an invoice is found by its id alone", async () => {
  const [of] = [await billed(), await billed()];
  const { ctx } = listening();
  expect((await invoiceById(ctx, of.id)).id).toBe(of.id);
  for (const id of [newId("invoice"), "invoice_1", ""])
    await expect(invoiceById(ctx, id)).rejects.toMatchObject({ code: "not_found" });
});

describe("credits", () => {
  const { ctx } = listening();
  const balanceOf = (accountId: string) =>
    one("SELECT balance, held FROM ledger_accounts WHERE id = ?", accountId);
  /** An account with so many credits, beside another. */
  async function rich(amount: number): Promise<Id<"account">> {
    const accountId = newId("account");
    await write(
      ...[accountId, newId("account")].map((credit_id) =>
        insert("ledger_transfers", {
          id: newId("transaction"),
          debit_id: "system:granted",
          credit_id,
          amount,
          type: "grant",
          reference: uniqueName("grant"),
          created_at: 0,
        }),
      ),
    );
    return accountId;
  }
  const hold = (accountId: Id<"account">, amount: number, more: { id?: string; least?: number } = {}) =>
    holdCredits(ctx, { id: uniqueName("hold"), accountId, amount, expiresAt: new Date(minutes(5)), ...more });
  const holdOf = (id: string) => rowOf("ledger_holds", id);

  it("that can be spent are those that no hold keeps, and none of an account that never had any", async () => {
    const accountId = await rich(10);
    expect(await availableCredits(ctx, accountId)).toBe(10);
    await hold(accountId, 3);
    expect(await availableCredits(ctx, accountId)).toBe(7);
    expect(await availableCredits(ctx, newId("account"))).toBe(0);
  });

  it("are held to the last one, with what is known of the hold", async () => {
    const accountId = await rich(10);
    const id = uniqueName("hold");
    expect(await hold(accountId, 10, { id })).toBe(10);
    expect(await holdOf(id)).toEqual({
      id,
      account_id: accountId,
      amount: 10,
      status: "open",
      mark: null,
      created_at: now.getTime(),
      expires_at: minutes(5),
    });
    expect(await balanceOf(accountId)).toEqual({ balance: 10, held: 10 });
    const refused = { code: "payment_required", extra: { balance: 0, needed: 1 } };
    await expect(hold(accountId, 1)).rejects.toMatchObject(refused);
    const nobody = newId("account");
    await expect(hold(nobody, 1)).rejects.toMatchObject(refused);
  });

  it("are held as far as they go, where the least of it is there", async () => {
    const accountId = await rich(10);
    await expect(hold(accountId, 11)).rejects.toMatchObject({ extra: { balance: 10, needed: 11 } });
    await expect(hold(accountId, 20, { least: 11 })).rejects.toMatchObject({
      extra: { balance: 10, needed: 11 },
    });
    await hold(accountId, 4);
    expect(await hold(accountId, 5, { least: 1 })).toBe(5);
    expect(await hold(accountId, 5, { least: 1 })).toBe(1);
  });

  it("are held once under an id: again for the same, and never for another account or amount", async () => {
    const [accountId, other] = [await rich(20), await rich(20)];
    const id = uniqueName("hold");
    await hold(accountId, 6, { id });
    expect(await hold(accountId, 6, { id })).toBe(6);
    expect(await hold(accountId, 9, { id, least: 6 })).toBe(6);
    const wrong = `Hold ${id} exists with another account or amount`;
    await expect(hold(other, 6, { id })).rejects.toThrow(wrong);
    await expect(hold(accountId, 5, { id })).rejects.toThrow(wrong);
    await expect(hold(accountId, 9, { id, least: 7 })).rejects.toThrow(wrong);
    expect([await balanceOf(accountId), await balanceOf(other)]).toEqual([
      { balance: 20, held: 6 },
      { balance: 20, held: 0 },
    ]);
  });

  it("of a hold are spent once, as many as were used, and the rest is free again", async () => {
    const accountId = await rich(10);
    const [used, open] = [uniqueName("hold"), uniqueName("hold")];
    await hold(accountId, 6, { id: used });
    await hold(accountId, 1, { id: open });
    await expect(spendHold(ctx, used, 7)).rejects.toThrow(`Hold ${used} keeps 6, not 7`);
    expect(await holdOf(used)).toMatchObject({ status: "open" });
    expect(await spendHold(ctx, used, 2)).toEqual({ isSpent: true, balance: 8 });
    expect(await spendHold(ctx, used, 2)).toEqual({ isSpent: false, balance: 8 });
    expect(await spendHold(ctx, used, 6)).toEqual({ isSpent: false, balance: 8 });
    expect(
      await rows(
        "SELECT debit_id, credit_id, amount, type, created_at FROM ledger_transfers WHERE reference = ?",
        used,
      ),
    ).toEqual([
      { debit_id: accountId, credit_id: "system:spent", amount: 2, type: "chat", created_at: now.getTime() },
    ]);
    expect([await balanceOf(accountId), await holdOf(open)]).toMatchObject([
      { balance: 8, held: 1 },
      { status: "open" },
    ]);
    expect(await spendHold(ctx, open, 1)).toEqual({ isSpent: true, balance: 7 });
    expect(await spendHold(ctx, uniqueName("none"), 1)).toEqual({ isSpent: false, balance: 0 });
  });

  it("of a hold that is not spent are free again once, when it ends or its time is over", async () => {
    const accountId = await rich(10);
    const ids = { ended: uniqueName("hold"), left: uniqueName("hold"), spent: uniqueName("hold") };
    for (const id of Object.values(ids)) await hold(accountId, 2, { id });
    const forever = uniqueName("hold");
    await write(
      insert("ledger_holds", {
        id: forever,
        account_id: accountId,
        amount: 1,
        status: "open",
        created_at: 0,
      }),
    );
    expect([await voidHold(ctx, ids.ended), await voidHold(ctx, ids.ended)]).toEqual([true, false]);
    await spendHold(ctx, ids.spent, 2);
    expect(await voidHold(ctx, ids.spent)).toBe(false);
    expect(await voidHold(ctx, uniqueName("none"))).toBe(false);
    const statuses = async () =>
      Promise.all([...Object.values(ids), forever].map(async (id) => (await holdOf(id))?.["status"]));
    await voidExpiredHolds(listening(new Date(minutes(5))).ctx);
    expect(await statuses()).toEqual(["voided", "open", "posted", "open"]);
    await voidExpiredHolds(listening(new Date(minutes(5) + 1)).ctx);
    expect(await statuses()).toEqual(["voided", "voided", "posted", "open"]);
    expect(await balanceOf(accountId)).toEqual({ balance: 8, held: 1 });
  });
});
