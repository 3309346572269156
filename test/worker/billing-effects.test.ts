import { eq, sql } from "drizzle-orm";
import type { BatchItem } from "drizzle-orm/batch";
import { beforeEach, describe, expect, it } from "vitest";
import type { InvoiceKind } from "../../protocol/states.ts";
import { refunded } from "../../worker/billing/effects/index.ts";
import { settleInvoice } from "../../worker/billing/invoices/settle.ts";
import { makeVoid } from "../../worker/billing/invoices/void.ts";
import { keepRoomForPack } from "../../worker/billing/terms/room-for-pack.ts";
import type { InvoiceRow } from "../../worker/db/rows.ts";
import type { AppError } from "../../worker/domain/app-error.ts";
import { invoices } from "../../worker/db/schema.ts";
import type { Id } from "../../protocol/ids.ts";
import {
  at,
  begin,
  billed as billedCredits,
  checkoutRow,
  hostRow,
  insert,
  invoiceRow,
  jobRow,
  listening,
  make,
  named,
  newId,
  now,
  packIds,
  resourceRow,
  rowOf,
  update,
  write,
  type Case,
  type Made,
  type Row,
} from "./billing-rows.ts";
import { bindings } from "./service.ts";
import { rows } from "./stripe-service.ts";

let hostId: Id<"host">;
beforeEach(async () => {
  ({ hostId } = await begin());
});

const invoiceId = ({ id }: Made) => id.replace(/^[a-z]+/, "invoice") as Id<"invoice">;
const billed =
  (kind: InvoiceKind, more: Row = {}) =>
  (made: Made) => [
    invoiceRow({ id: invoiceId(made), account_id: made.accountId, resource_id: made.id, kind, ...more }),
  ];
let payments = 0;
const pay = (ctx: ReturnType<typeof listening>["ctx"], id: string, amountCents = 1000) => {
  const reference = `payment-${++payments}`;
  return settleInvoice(ctx, id, {
    processor: "test",
    reference,
    sessionId: reference,
    amountCents,
    currency: "eur",
  });
};
const jobsOf = async (id: string) =>
  (await rows("SELECT kind, host_id FROM jobs WHERE lane = ? ORDER BY seq", id)).map(
    ({ kind, host_id }) => `${String(kind)} ${String(host_id)}`,
  );
/** 10 March and so many months. */
const monthsLater = (count: number) => Date.UTC(2026, 2 + count, 10, 12);

describe.each(["sites", "databases"] as const)("of %s", (kind) => {
  const word = kind === "sites" ? "site" : "database";
  const pending: Row = {
    status: "PENDING",
    wanted: "STOPPED",
    paid_until: null,
    ...(kind === "sites" ? { current_deployment_id: null, serving: 0 } : { version: null }),
  };

  describe("a first invoice", () => {
    it("that is paid begins the term and the first job, once, however often it is paid", async () => {
      const made = await make(
        kind,
        { row: pending, beside: billed(word, { term_months: 3 }) },
        { paid: {}, other: {} },
      );
      const before = await rowOf(kind, made.other.id);
      const { ctx, woken } = listening();
      expect(await pay(ctx, invoiceId(made.paid))).toBe("settled");
      expect(await pay(ctx, invoiceId(made.paid))).toBe("flagged");
      expect(await rowOf(kind, made.paid.id)).toMatchObject({
        status: kind === "sites" ? "DEPLOYING" : "PROVISIONING",
        wanted: "RUNNING",
        paid_until: monthsLater(3),
        updated_at: now.getTime(),
      });
      expect(await jobsOf(made.paid.id)).toEqual([
        kind === "sites" ? "site.deploy null" : "database.provision null",
      ]);
      if (kind === "sites")
        expect(await rows("SELECT site_id, trigger, status FROM deployments")).toEqual([
          { site_id: made.paid.id, trigger: "payment", status: "QUEUED" },
        ]);
      expect(await rowOf(kind, made.other.id)).toEqual(before);
      expect([woken(), await jobsOf(made.other.id)]).toEqual([[null], []]);
    });

    it("that is paid changes nothing of what is being deleted, or was paid for in another way", async () => {
      const beside = billed(word);
      const made = await make(
        kind,
        { row: pending, beside },
        {
          deleting: { row: { status: "DELETING" } },
          running: { row: { status: "RUNNING", paid_until: at(9) } },
        },
      );
      for (const one of Object.values(made)) {
        const { id } = one;
        const before = await rowOf(kind, id);
        const { ctx, woken } = listening();
        await pay(ctx, invoiceId(one));
        expect([await rowOf(kind, id), await jobsOf(id), woken()]).toEqual([before, [], []]);
      }
    });

    it("that is void takes with it what was never paid, and nothing else", async () => {
      const made = await make(
        kind,
        { row: pending, beside: billed(word) },
        {
          unpaid: {},
          running: { row: { status: "RUNNING" } },
          "being paid": {
            beside: (one) => [...billed(word)(one), checkoutRow(invoiceId(one), "processing")],
          },
          paid: { beside: billed(word, { status: "paid" }) },
          other: {},
        },
      );
      const { ctx } = listening();
      for (const name of ["unpaid", "running", "being paid", "paid"] as const) {
        const [invoice] = await ctx.db
          .select()
          .from(invoices)
          .where(eq(invoices.id, invoiceId(made[name])));
        if (invoice) await makeVoid(ctx, invoice, sql`status = 'processing'`);
      }
      expect(await named(made, `SELECT id FROM ${kind}`)).toEqual(["being paid", "other", "paid", "running"]);
      // An invoice that is of nothing may be void as well.
      await write(update("invoices", invoiceId(made.other), { resource_id: null }));
      const [invoice] = await ctx.db
        .select()
        .from(invoices)
        .where(eq(invoices.id, invoiceId(made.other)));
      if (invoice) await makeVoid(ctx, invoice, sql`0`);
      expect(await rowOf("invoices", invoiceId(made.other))).toMatchObject({ status: "void" });
    });

    it("whose refund was told before its payment takes it too, and begins nothing", async () => {
      const made = await make(kind, { row: pending, beside: billed(word) }, { refunded: {}, other: {} });
      const { ctx, woken } = listening();
      const reference = `early-${word}-${++payments}`;
      await write(
        insert("payment_flags", {
          id: newId("flag"),
          reason: "refunded_elsewhere",
          reference: `${reference}:1000`,
          amount_cents: 1000,
          currency: "eur",
          created_at: 0,
        }),
      );
      const paid = {
        processor: "test",
        reference,
        sessionId: reference,
        amountCents: 1000,
        currency: "eur",
      } as const;
      await settleInvoice(ctx, invoiceId(made.refunded), paid);
      expect(await named(made, `SELECT id FROM ${kind}`)).toEqual(["other"]);
      expect([await rows("SELECT id FROM jobs"), woken()]).toEqual([[], []]);
    });
  });

  describe("a paid renewal", () => {
    const renewed = (more: Row = {}, row: Row = {}): Case => ({ row, beside: billed("renewal", more) });
    const service: Row = {
      paid_until: at(4, 7),
      billing_term: 1,
      next_billing_term: 12,
    };

    it("goes on from the end of the term, in days of grace as well, and disturbs nothing", async () => {
      const made = await make(
        kind,
        { row: { ...service, host_id: hostId } },
        {
          early: renewed({ term_months: 3 }),
          grace: renewed({ term_months: 1 }, { paid_until: at(-3), status: "FAILED" }),
          other: renewed(),
        },
      );
      const before = await rowOf(kind, made.other.id);
      const { ctx, woken } = listening();
      await pay(ctx, invoiceId(made.early));
      await pay(ctx, invoiceId(made.grace));
      expect(await rowOf(kind, made.early.id)).toMatchObject({
        status: "RUNNING",
        paid_until: Date.UTC(2026, 5, 14, 12, 0, 0, 7),
        billing_term: 3,
        next_billing_term: null,
        next_pack_id: null,
        next_pack_at: null,
        pack_id: packIds.small,
        updated_at: now.getTime(),
      });
      expect(await rowOf(kind, made.grace.id)).toMatchObject({
        status: "FAILED",
        paid_until: Date.UTC(2026, 3, 7, 12),
      });
      expect(await rowOf(kind, made.other.id)).toEqual(before);
      expect([await rows("SELECT id FROM jobs"), woken()]).toEqual([[], [null, null]]);
    });

    it("of another pack has it from the end of the term, or from now on if that is over", async () => {
      const made = await make(
        kind,
        { row: { ...service, host_id: hostId } },
        {
          early: renewed({ pack_id: packIds.large }),
          grace: renewed({ pack_id: packIds.large }, { paid_until: at(-3) }),
          same: renewed({}, { next_pack_id: packIds.large }),
        },
      );
      const { ctx } = listening();
      for (const one of Object.values(made)) await pay(ctx, invoiceId(one));
      const pack = async (name: keyof typeof made) => {
        const row = await rowOf(kind, made[name].id);
        return [row?.["pack_id"], row?.["next_pack_id"], row?.["next_pack_at"]];
      };
      expect(await pack("early")).toEqual([packIds.small, packIds.large, at(4, 7)]);
      expect(await pack("grace")).toEqual([packIds.small, packIds.large, now.getTime()]);
      // The old one again, although another had been chosen before.
      expect(await pack("same")).toEqual([packIds.small, null, null]);
    });

    it("of what is suspended begins now and starts it again, with the pack that was paid for", async () => {
      const row = {
        ...service,
        status: "SUSPENDED",
        suspended_at: at(-9),
        paid_until: at(-16),
        pack_changed_at: 5,
      };
      const made = await make(
        kind,
        { row: { ...row, host_id: hostId } },
        {
          same: renewed({ term_months: 3 }, { next_pack_id: packIds.large, next_pack_at: at(3) }),
          larger: renewed({ pack_id: packIds.large }, { next_pack_id: packIds.large, next_pack_at: null }),
          stopped: renewed({}, { wanted: "STOPPED" }),
          "with its account": { ...renewed(), account: { suspended_at: at(-1) } },
          other: renewed(),
        },
      );
      const before = await rowOf(kind, made.other.id);
      const { ctx, woken } = listening();
      for (const name of ["same", "larger", "stopped", "with its account"] as const)
        expect(await pay(ctx, invoiceId(made[name]))).toBe("settled");
      const started = { status: kind === "sites" ? "DEPLOYING" : "STOPPED", suspended_at: null };
      const common = {
        next_billing_term: null,
        next_pack_id: null,
        next_pack_at: null,
        updated_at: now.getTime(),
      };
      expect(await rowOf(kind, made.same.id)).toMatchObject({
        ...common,
        ...started,
        paid_until: monthsLater(3),
        billing_term: 3,
        pack_id: packIds.small,
        pack_changed_at: 5,
      });
      expect(await rowOf(kind, made.larger.id)).toMatchObject({
        ...common,
        ...started,
        paid_until: monthsLater(1),
        pack_id: packIds.large,
        pack_changed_at: now.getTime(),
      });
      expect(await rowOf(kind, made.stopped.id)).toMatchObject({
        ...common,
        status: "STOPPED",
        suspended_at: null,
      });
      // Its operator has suspended the account: paid for, and still suspended.
      expect(await rowOf(kind, made["with its account"].id)).toMatchObject({
        ...common,
        status: "SUSPENDED",
        suspended_at: at(-9),
        paid_until: monthsLater(1),
      });
      expect(await rowOf(kind, made.other.id)).toEqual(before);
      const start = `${word}.start ${hostId}`;
      expect(await jobsOf(made.same.id)).toEqual([start]);
      expect(await jobsOf(made.larger.id)).toEqual([start]);
      expect(await jobsOf(made.stopped.id)).toEqual(kind === "sites" ? [`site.stop ${hostId}`] : []);
      expect(await jobsOf(made["with its account"].id)).toEqual([]);
      expect(woken()).toEqual([null, null, null, null]);
    });

    it("of what was suspended with its account within its term goes on from the end of that, as of what runs", async () => {
      const row = {
        ...service,
        host_id: hostId,
        status: "SUSPENDED",
        suspended_at: at(-1),
        pack_changed_at: 5,
      };
      const account = { suspended_at: at(-1) };
      const made = await make(
        kind,
        { row, account },
        {
          same: renewed(),
          larger: renewed({ pack_id: packIds.large }),
          released: { ...renewed(), account: { suspended_at: null } },
        },
      );
      const { ctx } = listening();
      for (const one of Object.values(made)) await pay(ctx, invoiceId(one));
      const paid = {
        status: "SUSPENDED",
        paid_until: Date.UTC(2026, 3, 14, 12, 0, 0, 7),
        pack_id: packIds.small,
        pack_changed_at: 5,
        next_pack_id: null,
        next_pack_at: null,
      };
      expect(await rowOf(kind, made.same.id)).toMatchObject(paid);
      expect(await rowOf(kind, made.larger.id)).toMatchObject({
        ...paid,
        next_pack_id: packIds.large,
        next_pack_at: at(4, 7),
      });
      expect(await rowOf(kind, made.released.id)).toMatchObject({
        ...paid,
        status: kind === "sites" ? "DEPLOYING" : "STOPPED",
      });
    });

    it("has no effect on what was never paid for or is being deleted, nor with another amount", async () => {
      const made = await make(
        kind,
        { row: { ...service, host_id: hostId } },
        {
          pending: renewed({}, { status: "PENDING" }),
          deleting: renewed({}, { status: "DELETING" }),
          running: renewed({}),
          suspended: renewed({}, { status: "SUSPENDED", suspended_at: at(-1) }),
        },
      );
      for (const [name, one] of Object.entries(made)) {
        const before = await rowOf(kind, one.id);
        const isWrong = name === "running" || name === "suspended";
        expect(await pay(listening().ctx, invoiceId(one), isWrong ? 999 : 1000)).toBe(
          isWrong ? "flagged" : "settled",
        );
        expect([name, await rowOf(kind, one.id)]).toEqual([name, before]);
      }
    });
  });

  describe("a refund", () => {
    const until = at(30);
    /** Of an invoice, once the processor has given the money back. */
    const refund = async (invoice: Partial<InvoiceRow>, mark: string) => {
      const { ctx } = listening();
      const statements = refunded[invoice.kind ?? "renewal"]?.(ctx, invoice as InvoiceRow, mark, now) ?? [];
      const [first, ...more] = statements;
      if (first) await ctx.db.batch([first, ...more] as [BatchItem<"sqlite">, ...BatchItem<"sqlite">[]]);
      return statements.length;
    };
    const refundRow = (made: Made) =>
      insert("refunds", {
        id: newId("refund"),
        invoice_id: invoiceId(made),
        payment_reference: made.id,
        amount_cents: 1,
        status: "done",
        mark: `mark-${made.id}`,
        created_by: made.accountId,
        created_at: 0,
      });
    const later =
      (more: Row = {}) =>
      (made: Made) => [
        refundRow(made),
        invoiceRow({
          account_id: made.accountId,
          resource_id: made.id,
          status: "paid",
          period_end: at(5, 1),
          ...more,
        }),
      ];

    it("takes back the term that it was for, what of it has begun to this moment, and no later one that is paid", async () => {
      const begins = new Date(at(5));
      const cases: Record<string, Case & { periodEnd?: Date | null; left: number }> = {
        "a first term": { periodEnd: null, left: now.getTime() },
        "one that is over": { periodEnd: null, row: { paid_until: at(-2) }, left: at(-2) },
        "one to come": { periodEnd: begins, left: at(5) },
        "one that has begun": { periodEnd: new Date(at(-5)), left: now.getTime() },
        "one before a paid one": { periodEnd: begins, beside: later(), left: until },
        "a first one before a paid one": { periodEnd: null, beside: later(), left: until },
        "the last paid one": { periodEnd: begins, beside: later({ period_end: at(5) }), left: at(5) },
        "one before an unpaid one": { periodEnd: begins, beside: later({ status: "unpaid" }), left: at(5) },
        "one before a refunded one": {
          periodEnd: begins,
          beside: later({ status: "refunded" }),
          left: at(5),
        },
        "one after a refunded first one": {
          periodEnd: begins,
          beside: later({ status: "refunded", kind: word, period_end: null }),
          left: now.getTime(),
        },
        "one after a refunded one": {
          periodEnd: begins,
          beside: (one) => [
            ...later({ status: "refunded", period_end: at(3) })(one),
            invoiceRow({
              account_id: one.accountId,
              resource_id: one.id,
              kind: word,
              status: "paid",
              period_end: null,
            }),
          ],
          left: at(3),
        },
        "one after a paid one, and that after a refunded one": {
          periodEnd: begins,
          beside: (one) => [
            ...later({ status: "refunded", kind: word, period_end: null })(one),
            invoiceRow({
              account_id: one.accountId,
              resource_id: one.id,
              status: "paid",
              period_end: at(3),
            }),
          ],
          left: at(5),
        },
        "one with a change": { periodEnd: begins, beside: later({ kind: "change" }), left: at(5) },
        "one before another's": { periodEnd: begins, beside: later({ resource_id: "another" }), left: at(5) },
        "one that was not refunded": { periodEnd: begins, beside: () => [], left: until },
      };
      const made = await make(kind, { row: { paid_until: until }, beside: (one) => [refundRow(one)] }, cases);
      const untouched = await make(kind, { row: { paid_until: until } }, { other: {} });
      for (const [name, one] of Object.entries(made)) {
        const { periodEnd = null, left } = cases[name] ?? { left: 0 };
        const before = await rowOf(kind, one.id);
        const invoice = {
          id: invoiceId(one),
          kind: periodEnd ? ("renewal" as const) : word,
          resourceId: one.id,
          periodEnd,
        };
        await refund(invoice as never, `mark-${one.id}`);
        const isTouched = ![
          "one before a paid one",
          "a first one before a paid one",
          "one that was not refunded",
        ].includes(name);
        // The next term begins on another day of the month if this one ends now.
        const billing_day = new Date(
          left === now.getTime() ? left : Number(before?.["paid_until"]),
        ).getUTCDate();
        expect([name, await rowOf(kind, one.id)]).toEqual([
          name,
          { ...before, paid_until: left, ...(isTouched && { updated_at: now.getTime(), billing_day }) },
        ]);
      }
      expect((await rowOf(kind, untouched.other.id))?.["paid_until"]).toBe(until);
    });

    it("of a renewal takes back the pack that was to begin with its term, and no pack of another", async () => {
      const bought = { next_pack_id: packIds.large, next_pack_at: at(5) };
      const made = await make(
        kind,
        { row: { paid_until: until, ...bought }, beside: (one) => [refundRow(one)] },
        {
          bought: {},
          chosen: { row: { next_pack_at: null } },
          due: { row: { next_pack_at: at(-5) } },
          "of a later one": { beside: later() },
        },
      );
      for (const one of Object.values(made)) {
        const invoice = {
          id: invoiceId(one),
          kind: "renewal",
          resourceId: one.id,
          periodEnd: new Date(at(5)),
        };
        await refund(invoice as never, `mark-${one.id}`);
      }
      const next = async (name: keyof typeof made) => {
        const row = await rowOf(kind, made[name].id);
        return [row?.["next_pack_id"], row?.["next_pack_at"]];
      };
      expect(await next("bought")).toEqual([null, null]);
      expect(await next("chosen")).toEqual([packIds.large, null]);
      expect(await next("due")).toEqual([packIds.large, at(-5)]);
      expect(await next("of a later one")).toEqual([packIds.large, at(5)]);
    });

    it("of an invoice that is of nothing any more ends no term", async () => {
      expect(await refund({ kind: word, resourceId: null, periodEnd: null }, "mark-none")).toBe(0);
    });
  });

  describe("a change of packs", () => {
    const chosen = { next_pack_id: packIds.large, next_billing_term: 6 };
    const beside = billed("change", { pack_id: packIds.large, period_end: at(20) });

    it("that is paid takes effect at once, with a restart, where it is still the one that was chosen", async () => {
      const made = await make(
        kind,
        { row: { ...chosen, host_id: hostId }, beside },
        { paid: {}, "chosen anew": { row: { next_pack_id: "pack_third" } }, other: {}, "paid wrongly": {} },
      );
      const wrongly = await rowOf(kind, made["paid wrongly"].id);
      expect(await pay(listening().ctx, invoiceId(made["paid wrongly"]), 999)).toBe("flagged");
      expect(await rowOf(kind, made["paid wrongly"].id)).toEqual(wrongly);
      const [second, third] = [await rowOf(kind, made["chosen anew"].id), await rowOf(kind, made.other.id)];
      const { ctx, woken } = listening();
      expect(await pay(ctx, invoiceId(made.paid))).toBe("settled");
      expect(await pay(ctx, invoiceId(made.paid))).toBe("flagged");
      await pay(ctx, invoiceId(made["chosen anew"]));
      expect(await rowOf(kind, made.paid.id)).toMatchObject({
        pack_id: packIds.large,
        next_pack_id: null,
        pack_changed_at: now.getTime(),
        // A term that was chosen with it comes with the renewal.
        next_billing_term: 6,
        paid_until: at(20),
      });
      expect(await jobsOf(made.paid.id)).toEqual([`${word}.restart ${hostId}`]);
      expect(await rowOf(kind, made["chosen anew"].id)).toEqual(second);
      expect(await rowOf(kind, made.other.id)).toEqual(third);
      expect([await jobsOf(made["chosen anew"].id), await jobsOf(made.other.id)]).toEqual([[], []]);
      expect(woken()).toEqual([null, null]);
    });

    it("that is void gives back what was reserved for it, unless another was chosen or it is paid for", async () => {
      const made = await make(
        kind,
        { row: { ...chosen, host_id: hostId }, beside },
        {
          void: {},
          "chosen anew": { row: { next_pack_id: "pack_third" } },
          "paid for": { row: { next_pack_at: at(9) } },
          "being paid": { beside: (one) => [...beside(one), checkoutRow(invoiceId(one), "processing")] },
          other: {},
        },
      );
      const { ctx } = listening();
      const before = await rows(`SELECT * FROM ${kind} WHERE id <> ? ORDER BY id`, made.void.id);
      for (const name of ["void", "chosen anew", "paid for", "being paid"] as const) {
        const [invoice] = await ctx.db
          .select()
          .from(invoices)
          .where(eq(invoices.id, invoiceId(made[name])));
        if (invoice) await makeVoid(ctx, invoice, sql`status = 'processing'`);
      }
      expect(await rowOf(kind, made.void.id)).toMatchObject({ next_pack_id: null, next_billing_term: 6 });
      expect(await rows(`SELECT * FROM ${kind} WHERE id <> ? ORDER BY id`, made.void.id)).toEqual(before);
    });
  });
});

it("a change or a renewal of nothing that has a term is not settled: the money is not lost by it", async () => {
  const accountId = newId("account");
  const { ctx } = listening();
  const voidIt = async (id: Id<"invoice">) => {
    const [invoice] = await ctx.db.select().from(invoices).where(eq(invoices.id, id));
    if (invoice) await makeVoid(ctx, invoice, sql`0`);
    expect(await rowOf("invoices", id)).toMatchObject({ status: "void" });
  };
  for (const kind of ["change", "renewal"] as const) {
    const id = newId("invoice");
    await write(invoiceRow({ id, account_id: accountId, resource_id: `${kind}_1`, kind }));
    await expect(pay(ctx, id)).rejects.toThrow(
      kind === "change"
        ? `The resource of invoice ${id} has no pack`
        : `The resource of renewal ${id} has no term`,
    );
    expect(await rowOf("invoices", id)).toMatchObject({ status: "unpaid" });
    await voidIt(id);
  }
  const id = newId("invoice");
  await write(invoiceRow({ id, account_id: accountId, resource_id: null, kind: "change" }));
  await voidIt(id);
});

it("credits that are paid are as many as the invoice promised, once, and its account's", async () => {
  const [one, other] = [await billedCredits(), await billedCredits({}, 50)];
  const { ctx } = listening();
  expect(await pay(ctx, one.id)).toBe("settled");
  expect(await pay(ctx, one.id)).toBe("flagged");
  expect(await pay(ctx, other.id, 999)).toBe("flagged");
  const transfers = await rows(
    "SELECT debit_id, credit_id, amount, type, reference, created_at FROM ledger_transfers WHERE reference IN (?, ?)",
    one.id,
    other.id,
  );
  expect(transfers).toEqual([
    {
      debit_id: "system:sold",
      credit_id: one.accountId,
      amount: 700,
      type: "purchase",
      reference: one.id,
      created_at: now.getTime(),
    },
  ]);
});

it("a void change of a site keeps the host that a move is going to, and gives back one that nothing moves to", async () => {
  const beside = billed("change", { pack_id: packIds.large });
  const row = { next_pack_id: packIds.large, move_host_id: "host_other", host_id: hostId };
  const moving = (status: string) => (one: Made) => [
    ...beside(one),
    jobRow("sites", one.id, { kind: "site.deploy", status }),
  ];
  const made = await make(
    "sites",
    { row, beside },
    {
      idle: {},
      waiting: { beside: moving("QUEUED") },
      moving: { beside: moving("LEASED") },
      moved: { beside: moving("DONE") },
    },
  );
  const { ctx } = listening();
  for (const one of Object.values(made)) {
    const [invoice] = await ctx.db
      .select()
      .from(invoices)
      .where(eq(invoices.id, invoiceId(one)));
    if (invoice) await makeVoid(ctx, invoice, sql`0`);
  }
  expect(await named(made, "SELECT id FROM sites WHERE next_pack_id IS NULL")).toHaveLength(4);
  expect(await named(made, "SELECT id FROM sites WHERE move_host_id IS NULL")).toEqual(["idle", "moved"]);
});

describe("memory for a pack that is being paid", () => {
  const row = { next_pack_id: packIds.large, paid_until: at(0, 1) };
  const roomFor = (one: Made, more: Partial<InvoiceRow> = {}) => {
    const invoice = { kind: "change", resourceId: one.id, packId: packIds.large, accountId: one.accountId };
    const asked = { id: invoiceId(one), ...invoice, ...more } as unknown as InvoiceRow;
    return keepRoomForPack(listening().ctx, asked, `mark-${one.id}`);
  };
  /** Whether the checkout opens for a customer who begins to pay, and what is told. */
  async function begun(one: Made, more: Partial<InvoiceRow> = {}) {
    const { ctx } = listening();
    const room = roomFor(one, more);
    if (!room) throw new Error("No memory is asked for");
    await ctx.db.batch([room.statement]);
    const [found] = await ctx.db.all<{ opens: number }>(sql`SELECT ${room.guard} AS opens`);
    const told =
      found?.opens === 1
        ? null
        : await room.refuse().then(
            () => "not refused",
            ({ extra }: AppError) => extra["reason"],
          );
    const table = one.id.startsWith("site") ? "sites" : "databases";
    const after = await rowOf(table, one.id);
    return {
      opens: found?.opens === 1,
      told,
      isReserved: after?.["mark"] === `mark-${one.id}`,
      ...(table === "sites" && { movesTo: after?.["move_host_id"] }),
    };
  }
  const large = (memory_mb: number) =>
    bindings.DB.prepare("UPDATE packs SET memory_mb = ? WHERE id = ?").bind(memory_mb, packIds.large).run();

  it("is asked for only where an invoice may change the pack", async () => {
    const one: Made = { id: newId("database") as Made["id"], accountId: newId("account"), name: "one" };
    for (const other of [
      { kind: "database" },
      { kind: "site" },
      { kind: "credits" },
      { resourceId: null },
      { resourceId: "thing_1" },
      { packId: null },
    ])
      expect(roomFor(one, other as never)).toBeNull();
    for (const kind of ["change", "renewal"] as const) expect(roomFor(one, { kind })).not.toBeNull();
  });

  it("is no reason to refuse a checkout that did not open for another one, such as one in the same moment", async () => {
    const made = await make(
      "databases",
      { row: { ...row, host_id: hostId } },
      { fits: {}, "has it": { row: { pack_id: packIds.large } } },
    );
    for (const one of Object.values(made)) await expect(roomFor(one)?.refuse()).resolves.toBeUndefined();
  });

  it("of a database is there to the last megabyte, and the reason for none is told", async () => {
    // 4512 MB less 512 for the system; its own pack counts with 256.
    await large(4000);
    const second = newId("host");
    await write(hostRow(second, 4512), update("hosts", hostId, { memory_mb: 600 }));
    const { one } = await make("databases", { row: { ...row, host_id: second } }, { one: {} });
    expect(await begun(one)).toEqual({ opens: true, told: null, isReserved: true });
    await large(4001);
    await write(update("databases", one.id, { mark: null }));
    const { told, ...refused } = await begun(one);
    expect(refused).toEqual({ opens: false, isReserved: false });
    expect(told).toContain(
      "Its host has no room for 4001 MB, and a database cannot move because its data is there",
    );
    await write(update("databases", one.id, { host_id: null }));
    expect(await begun(one)).toMatchObject({ opens: true, isReserved: true });
  });

  it("is not needed for a smaller pack, on a host that has less than none", async () => {
    await write(update("hosts", hostId, { memory_mb: 600 }));
    const { one } = await make(
      "databases",
      { row: { ...row, pack_id: packIds.large, next_pack_id: packIds.small, host_id: hostId } },
      { one: {} },
    );
    expect(await begun(one, { packId: packIds.small })).toMatchObject({
      opens: true,
      isReserved: true,
    });
    // As large as before: no more memory either.
    await large(256);
    await write(update("databases", one.id, { mark: null }));
    expect(await begun(one, { packId: packIds.small })).toMatchObject({
      opens: true,
      isReserved: true,
    });
  });

  it("is not reserved for what has the pack, has chosen another, has paid for one, or is overdue: that is paid all the same", async () => {
    await large(9999);
    const made = await make(
      "databases",
      { row: { ...row, host_id: hostId } },
      {
        "has it": { row: { pack_id: packIds.large } },
        "has chosen another": { row: { next_pack_id: packIds.small } },
        "has chosen none": { row: { next_pack_id: null } },
        "has paid": { row: { next_pack_at: at(1) } },
        overdue: { row: { paid_until: at(0) } },
        suspended: { row: { status: "SUSPENDED" } },
      },
    );
    for (const [name, one] of Object.entries(made))
      expect([name, await begun(one)]).toEqual([name, { opens: true, told: null, isReserved: false }]);
    const { due } = await make("databases", { row: { ...row, host_id: hostId } }, { due: {} });
    expect(await begun(due)).toMatchObject({ opens: false });
  });

  it("is four GiB an account at most beside other changes that are being paid, whatever one alone takes", async () => {
    await write(update("hosts", hostId, { memory_mb: 90_000 }));
    await large(2304);
    const accountId = newId("account");
    const paying = (one: Made, status = "open", more: Row = {}) => {
      const id = newId("invoice");
      return [
        invoiceRow({
          id,
          account_id: one.accountId,
          resource_id: one.id,
          kind: "change",
          pack_id: packIds.large,
          ...more,
        }),
        checkoutRow(id, status),
      ];
    };
    const { one } = await make(
      "databases",
      { row: { ...row, host_id: hostId, account_id: accountId } },
      { one: {} },
    );
    /** Of the same account, and none of it counts. */
    const other = (more: Row = {}) => {
      const id = newId("site");
      const made = { id, accountId, name: id } as unknown as Made;
      return { made, row: resourceRow("sites", { id, account_id: accountId, host_id: hostId, ...more }) };
    };
    const [paid, isVoid, idle, smaller, first] = [
      other(),
      other(),
      other(),
      other({ pack_id: packIds.large }),
      other(),
    ];
    const { stranger } = await make("databases", { row }, { stranger: { beside: (made) => paying(made) } });
    expect(stranger.accountId).not.toBe(accountId);
    await write(
      ...[paid, isVoid, idle, smaller, first].map(({ row: inserted }) => inserted),
      ...paying(paid.made, "open", { status: "paid" }),
      ...paying(isVoid.made, "open", { status: "void" }),
      ...paying(idle.made, "expired"),
      ...paying(smaller.made, "open", { pack_id: packIds.small }),
      ...paying(first.made, "open", { kind: "site" }),
    );
    await write(
      invoiceRow({
        id: invoiceId(one),
        account_id: accountId,
        resource_id: one.id,
        kind: "change",
        pack_id: packIds.large,
      }),
      checkoutRow(invoiceId(one), "open"),
    );
    // Alone it may be more than four GiB.
    await large(5000);
    expect(await begun(one)).toMatchObject({ opens: true });
    await large(2304);
    // 2048 MB more of a site, and 2048 MB of this database: four GiB.
    const counted = other();
    await write(counted.row, ...paying(counted.made, "processing"));
    await write(bindings.DB.prepare("UPDATE packs SET memory_mb = 300 WHERE id = ?").bind(packIds.small));
    for (const kind of ["change", "renewal"]) {
      await write(
        bindings.DB.prepare("UPDATE invoices SET kind = ? WHERE resource_id = ?").bind(kind, counted.made.id),
      );
      await large(2348);
      await write(update("databases", one.id, { mark: null }));
      expect(await begun(one)).toMatchObject({ opens: true, isReserved: true });
      await large(2349);
      await write(update("databases", one.id, { mark: null }));
      expect(await begun(one)).toEqual({
        opens: false,
        isReserved: false,
        told: expect.stringContaining("Capacity is reserved for another pack of yours that is being paid"),
      });
    }
    // A smaller pack takes none, whatever is reserved.
    await large(9000);
    await write(
      update("databases", one.id, { mark: null, pack_id: "pack_huge", next_pack_id: packIds.small }),
    );
    await write(
      bindings.DB.prepare(
        `INSERT OR REPLACE INTO packs (id, kind, name, price_cents, memory_mb, cpu_milli, pids, disk_gb)
          VALUES ('pack_huge', 'database', 'Huge', 9000, 512, 500, 100, 10)`,
      ),
    );
    expect(await begun(one, { packId: packIds.small })).toMatchObject({ opens: false });
  });

  describe("of a site", () => {
    it("is on its host, or on another with the most, if nothing holds it where it is", async () => {
      await large(2000);
      await write(update("hosts", hostId, { memory_mb: 1024 }));
      const volume = ({ id }: Made) => [insert("site_volumes", { site_id: id, name: "data", created_at: 0 })];
      const busy = (status: string) => (one: Made) => [
        jobRow("sites", one.id, { kind: "site.route", status }),
      ];
      const cases = {
        running: {},
        stopped: { row: { status: "STOPPED" } },
        failed: { row: { status: "FAILED" } },
        deploying: { row: { status: "DEPLOYING" } },
        leaving: { row: { leaving_host_id: "host_old" } },
        waiting: { beside: busy("QUEUED") },
        working: { beside: busy("LEASED") },
        done: { beside: busy("DONE") },
        "with a volume": { beside: volume },
      };
      const common = { row: { ...row, host_id: hostId } };
      const first = await make("sites", common, { alone: {} });
      const [roomy, roomier, tight] = [newId("host"), newId("host"), newId("host")];
      const { told, ...refused } = await begun(first.alone);
      expect(refused).toEqual({ opens: false, isReserved: false, movesTo: null });
      expect(told).toContain("No host has room for 2000 MB that this site could run on");
      // One lacks a megabyte, and one has less than the best.
      await write(hostRow(tight, 2511));
      expect(await begun(first.alone)).toMatchObject({ opens: false, movesTo: null });
      await write(hostRow(roomy, 40_000), hostRow(roomier, 50_000));
      const made = await make("sites", common, cases);
      for (const name of ["running", "stopped", "done"] as const)
        expect([name, await begun(made[name])]).toEqual([
          name,
          { opens: true, told: null, isReserved: true, movesTo: roomier },
        ]);
      for (const name of ["failed", "deploying", "leaving", "waiting", "working", "with a volume"] as const)
        expect([name, await begun(made[name])]).toEqual([
          name,
          {
            opens: false,
            told: expect.stringContaining("No host has room"),
            isReserved: false,
            movesTo: null,
          },
        ]);
      // To the last megabyte.
      await write(...[roomy, roomier].map((id) => update("hosts", id, { status: "DRAINING" })));
      await write(update("hosts", tight, { memory_mb: 2512 }));
      expect(await begun(first.alone)).toEqual({ opens: true, told: null, isReserved: true, movesTo: tight });
    });

    it("is taken where it is, without a move, and a move that goes on is not turned back", async () => {
      const made = await make(
        "sites",
        { row: { ...row, host_id: hostId, move_host_id: "host_other" } },
        {
          idle: {},
          moving: { beside: (one) => [jobRow("sites", one.id, { kind: "site.deploy", status: "LEASED" })] },
        },
      );
      expect(await begun(made.idle)).toMatchObject({ opens: true, isReserved: true, movesTo: null });
      expect(await begun(made.moving)).toMatchObject({
        opens: true,
        isReserved: true,
        movesTo: "host_other",
      });
    });

    it("is not needed where it gave its own up: it has what the pack takes when it runs again", async () => {
      await write(update("hosts", hostId, { memory_mb: 600 }));
      const made = await make(
        "sites",
        { row: { ...row, host_id: hostId, status: "FAILED" } },
        { "gave up": { row: { reserved: 0 } }, reserves: {} },
      );
      expect(await begun(made["gave up"])).toMatchObject({ opens: true });
      expect(await begun(made.reserves)).toMatchObject({ opens: false });
    });
  });
});
