import { eq } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Id } from "../../protocol/ids.ts";
import type { Refunded } from "../../worker/adapters/payments/payments.ts";
import { beginRefund, finishRefund } from "../../worker/billing/payments/refund.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { invoices, refunds } from "../../worker/db/schema.ts";
import {
  at,
  begin,
  billed,
  insert,
  interrupted,
  invoiceRow,
  listening,
  make,
  newId,
  now,
  one,
  paymentRow,
  rowOf,
  statusOf,
  update,
  write,
  type Billed,
} from "./billing-rows.ts";
import { because, flags, silently, withProcessor } from "./processor.ts";
import { bindings, uniqueName } from "./service.ts";
import { rows } from "./stripe-service.ts";

// Rows are written as a step finds them, the processor answers as the test says, and the step is called itself.
beforeEach(async () => {
  await begin();
});
afterEach(() => vi.restoreAllMocks());

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
  async function paid(left = 700) {
    const reference = uniqueName("pi");
    const invoice = await billed({ status: "paid" });
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
