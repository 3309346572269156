import { afterEach, expect, it, vi } from "vitest";
import type { InvoiceStatus } from "../../protocol/states.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { type Transfer } from "../../worker/domain/ledger.ts";
import { applyToLedger, balanceOf, emptyLedger } from "../support/models/ledger.ts";
import { applyToInvoice, type InvoiceAccount, type InvoiceEvent } from "../support/models/invoice.ts";
import { holdCredits } from "../../worker/billing/credits/hold.ts";
import { spendHold } from "../../worker/billing/credits/post-hold.ts";
import { voidHold } from "../../worker/billing/credits/void-hold.ts";
import { voidInvoice } from "../../worker/services/invoices/void.ts";
import { payInvoice } from "../../worker/services/invoices/pay.ts";
import { readEvent, receiveEvent } from "../../worker/billing/payments/receive-event.ts";
import { reconcilePayments } from "../../worker/billing/payments/reconcile.ts";
import { refundInvoice } from "../../worker/services/payments/refund.ts";
import { account, api, bindings, operator } from "./service.ts";
import { randomOf } from "../support/random.ts";
import { crashingDatabase, type CrashPoint } from "./crashing-database.ts";
import { buyCredits, credits, rows, stripeService } from "./stripe-service.ts";

afterEach(() => vi.restoreAllMocks());

const hourMs = 3_600_000;
const settlementReasons = ["invoice_void", "paid_twice", "wrong_amount", "wrong_currency"];

async function invoiceState(id: string): Promise<InvoiceAccount> {
  const [[invoice], payments, flags] = await Promise.all([
    rows<{ status: InvoiceStatus; amount_cents: number; currency: string }>(
      "SELECT * FROM invoices WHERE id = ?",
      id,
    ),
    rows<{ reference: string }>("SELECT reference FROM payments WHERE invoice_id = ?", id),
    rows<{ reason: string; reference: string }>("SELECT * FROM payment_flags WHERE invoice_id = ?", id),
  ]);
  if (!invoice) throw new Error(`There is no invoice ${id}`);
  return {
    status: invoice.status,
    amountCents: invoice.amount_cents,
    currency: invoice.currency,
    payments: payments.map(({ reference }) => reference),
    flags: new Set(
      flags
        .filter(({ reason }) => settlementReasons.includes(reason))
        .map(({ reason, reference }) => `${reason} ${reference}`),
    ),
  };
}
const shown = (state: InvoiceAccount) =>
  JSON.stringify({ ...state, payments: [...state.payments], flags: [...state.flags].toSorted() });

async function simulate(seed: number): Promise<Record<string, number>> {
  const random = randomOf(seed);
  const service = stripeService();
  const { stripe } = service;
  const key = await account();
  const [owner] = await rows<{ id: `acc_${string}` }>("SELECT id FROM accounts ORDER BY id DESC LIMIT 1");
  const accountId = owner?.id as `acc_${string}`;
  const operatorKey = await operator();
  const invoices = [await buyCredits(key), await buyCredits(key), await buyCredits(key)];
  const done: Record<string, number> = {};
  let holds = 0;
  let clockMs = 0;

  const contextFor = (point: CrashPoint): Ctx => ({
    ...contextOf(
      { ...service.env, DB: crashingDatabase(bindings.DB, point) },
      { type: "key", accountId, role: "operator", plan: "free", keyId: "key_simulation" },
      () => undefined,
    ),
    now: () => new Date(Date.now() + clockMs),
  });
  const sessionsOf = (invoiceId: string) =>
    [...stripe.sessions.values()].filter((session) => session.client_reference_id === invoiceId);

  /** What may have become of an invoice: any of what Stripe and the operator know of it, in any order, or none yet. */
  function reachable(before: InvoiceAccount, invoiceId: string, command: InvoiceEvent | null): Set<string> {
    const facts: InvoiceEvent[] = command ? [command] : [];
    for (const session of sessionsOf(invoiceId)) {
      const intent = session.payment_intent === null ? undefined : stripe.intents.get(session.payment_intent);
      if (intent?.status !== "succeeded") continue;
      const { id: reference, amount: amountCents, currency } = intent;
      facts.push({ kind: "paid", reference, amountCents, currency });
      if (intent.refunded >= intent.amount) facts.push({ kind: "refunded" });
    }
    const states = new Map([[shown(before), before]]);
    for (const state of states.values())
      for (const fact of facts) {
        const next = applyToInvoice(state, fact);
        states.set(shown(next), next);
      }
    return new Set(states.keys());
  }

  const steps: Record<string, (ctx: Ctx, of: (typeof invoices)[number]) => Promise<unknown>> = {
    press: (ctx, { invoiceToken }) => payInvoice(ctx, invoiceToken),
    customer: async (_ctx, { invoiceId }) => {
      const open = sessionsOf(invoiceId).find(({ status }) => status === "open");
      if (open) stripe.pay(open.id, random.below(3) === 0);
    },
    bank: async (_ctx, { invoiceId }) => {
      const waiting = sessionsOf(invoiceId).find(
        ({ payment_intent }) => payment_intent && stripe.intents.get(payment_intent)?.status === "processing",
      );
      if (waiting) stripe.end(waiting.id, random.below(2) === 0);
    },
    event: async (ctx) => {
      const event = random.pick(stripe.events);
      if (!event) return;
      const { body, headers } = stripe.signed(event);
      await receiveEvent(ctx, await readEvent(ctx, body, headers["Stripe-Signature"]));
    },
    cron: async (ctx) => {
      clockMs += 10 * 60_000;
      await reconcilePayments(ctx);
    },
    void: (ctx, { invoiceId }) => voidInvoice(ctx, { id: invoiceId }),
    refund: (ctx, { invoiceId }) => refundInvoice(ctx, { id: invoiceId, force: random.below(2) === 0 }),
    byHand: async (_ctx, { invoiceId }) => {
      const intent = sessionsOf(invoiceId).map(({ payment_intent }) =>
        stripe.intents.get(payment_intent ?? ""),
      )[0];
      if (intent?.status === "succeeded" && intent.refunded === 0)
        stripe.refundByHand(intent.id, random.below(2) === 0 ? intent.amount : 100);
    },
    hold: (ctx) =>
      holdCredits(ctx, {
        id: `simulation-${seed}-${holds++}`,
        accountId,
        amount: 1 + random.below(400),
        expiresAt: new Date(Date.now() + clockMs + 5 * hourMs),
      }),
    end: (ctx) => {
      const id = `simulation-${seed}-${random.below(holds + 1)}`;
      return random.below(2) === 0 ? spendHold(ctx, id, 1) : voidHold(ctx, id);
    },
  };
  // What happens in the world is likelier than what an operator does.
  const names = [
    "press",
    "press",
    "customer",
    "customer",
    "bank",
    "event",
    "event",
    "event",
    "cron",
    "hold",
    "end",
    "void",
    "refund",
    "byHand",
  ];

  for (let step = 0; step < 40; step++) {
    const name = random.pick(names) ?? "cron";
    const of = random.pick(invoices) ?? { invoiceId: "", invoiceToken: "" };
    const point: CrashPoint =
      random.below(3) === 0
        ? { roundTrip: random.below(5), when: random.below(2) === 0 ? "before" : "after" }
        : null;
    const before = await Promise.all(invoices.map(({ invoiceId }) => invoiceState(invoiceId)));
    const outcome = await (steps[name] ?? (() => Promise.resolve()))(contextFor(point), of).then(
      () => "done",
      (error: Error) =>
        error.name === "AppError" ? "refused" : point ? "crashed" : `${error.name}: ${error.message}`,
    );
    expect(["done", "refused", "crashed"], `seed ${seed}, step ${step}: ${name}`).toContain(outcome);
    done[`${name} ${outcome}`] = (done[`${name} ${outcome}`] ?? 0) + 1;
    const command: InvoiceEvent | null = name === "void" ? { kind: "voided" } : null;
    for (const [index, { invoiceId }] of invoices.entries()) {
      const state = await invoiceState(invoiceId);
      expect(
        reachable(before[index] ?? state, invoiceId, command),
        `seed ${seed}, step ${step}: ${name}`,
      ).toContain(shown(state));
    }
    const [ledger] = await rows<{ balance: number; held: number }>(
      "SELECT * FROM ledger_accounts WHERE id = ?",
      accountId,
    );
    expect(ledger === undefined || (ledger.held >= 0 && ledger.balance >= ledger.held)).toBe(true);
  }

  // Nothing breaks any more: everything is heard of, in any order, and asked for until nothing is open.
  const calm = contextFor(null);
  for (const event of stripe.events.toSorted(() => random.below(3) - 1)) {
    const { body, headers } = stripe.signed(event);
    await receiveEvent(calm, await readEvent(calm, body, headers["Stripe-Signature"]));
  }
  // By the events alone: asking is for those that never come.
  for (const intent of stripe.intents.values()) {
    if (intent.status !== "succeeded") continue;
    const found = await rows(
      "SELECT reference FROM payments WHERE reference = ?1 UNION ALL SELECT reference FROM payment_flags WHERE reference = ?1 AND reason IN ('invoice_void', 'paid_twice')",
      intent.id,
    );
    expect(found, `seed ${seed}: ${intent.id} was paid`).toHaveLength(1);
  }
  for (let round = 0; round < 3; round++) {
    clockMs += 2 * hourMs;
    await reconcilePayments(calm);
  }

  expect(await rows("SELECT id FROM refunds WHERE status = 'pending'")).toEqual([]);
  for (const { invoiceId } of invoices) {
    const { status, payments } = await invoiceState(invoiceId);
    expect([status, payments.length]).toEqual([status, ["paid", "refunded"].includes(status) ? 1 : 0]);
  }

  // The pure ledger takes every transfer in its order, and arrives at the same balances.
  let model = emptyLedger;
  for (const transfer of await rows<Transfer>(
    'SELECT id, debit_id AS "debitId", credit_id AS "creditId", amount, type, reference FROM ledger_transfers ORDER BY seq',
  )) {
    const next = applyToLedger(model, { kind: "transfer", transfer });
    if (typeof next === "string") throw new Error(`seed ${seed}: ${transfer.id} is ${next}`);
    model = next;
  }
  expect((await credits(key)).balance).toBe(balanceOf(model, accountId));
  expect((await api(operatorKey, "GET", "/ledger/verify")).body).toMatchObject({ ok: true, problems: [] });
  return done;
}

it("any events in any order and number, with crashes between any two steps, lose no money and charge once", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const total: Record<string, number> = {};
  for (let seed = 1; seed <= 8; seed++) {
    for (const [name, count] of Object.entries(await simulate(seed)))
      total[name] = (total[name] ?? 0) + count;
    vi.restoreAllMocks();
    vi.spyOn(console, "error").mockImplementation(() => undefined);
  }
  // A simulation in which nothing happens proves nothing.
  for (const name of ["press", "event", "cron", "void", "refund", "hold"]) {
    expect([name, total[`${name} done`]]).toEqual([name, expect.any(Number)]);
    expect([name, total[`${name} crashed`]]).toEqual([name, expect.any(Number)]);
  }
}, 180_000);

const crashPoints = [0, 1, 2].flatMap((roundTrip) =>
  (["before", "after"] as const).map((when) => ({ roundTrip, when })),
);

it.each(crashPoints)(
  "an event whose delivery ends $when round trip $roundTrip is done by the next one",
  async (point) => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const service = stripeService();
    const key = await account();
    const { invoiceToken } = await buyCredits(key);
    const event = service.stripe.pay(await service.open(invoiceToken));
    const { body, headers } = service.stripe.signed(event);
    const deliver = async (database: D1Database) => {
      const ctx = contextOf({ ...service.env, DB: database }, { type: "link" }, () => undefined);
      await receiveEvent(ctx, await readEvent(ctx, body, headers["Stripe-Signature"]));
    };
    const ended = await deliver(crashingDatabase(bindings.DB, point)).catch((error: unknown) => error);
    expect(ended).toBeInstanceOf(Error);
    await deliver(bindings.DB);
    expect(await credits(key)).toMatchObject({ balance: 500, transactions: [{ type: "purchase" }] });
  },
);
