import { afterEach, expect, it, vi } from "vitest";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import type { InvoiceStatus } from "../../protocol/states.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { balanceOf } from "../support/models/ledger.ts";
import { addDays } from "../../worker/domain/pricing.ts";
import type { PaymentReport } from "../../worker/domain/settlement.ts";
import { settleInvoice } from "../../worker/billing/invoices/settle.ts";
import { voidInvoice } from "../../worker/services/invoices/void.ts";
import { finishJob } from "../../worker/jobs/finish.ts";
import { leaseJob } from "../../worker/jobs/lease.ts";
import { verifyLedger } from "../../worker/services/ledger/verify.ts";
import { reapJobs } from "../../worker/jobs/reap.ts";
import { refundInvoice } from "../../worker/services/payments/refund.ts";
import { reconcileBilling, reconcileTerms } from "../../worker/cron.ts";
import { BillingModel, owner } from "../support/models/billing.ts";
import { randomOf } from "../support/random.ts";
import { crashingDatabase, type CrashPoint } from "./crashing-database.ts";
import { account, api, bindings, createSite, deployResult, uniqueName } from "./service.ts";
import { buyCredits, rows } from "./stripe-service.ts";
import { sendWarnings } from "./terms-service.ts";

afterEach(() => vi.restoreAllMocks());

/** One run again: `BERTH_SEED=123 vitest run --project worker test/worker/terms-simulation.test.ts`. */
const given = bindings as { BERTH_SEED?: string; BERTH_SIMULATION_SECONDS?: string };
const seedAgain = Number(given.BERTH_SEED ?? 0);
const budgetMs = 1000 * Number(given.BERTH_SIMULATION_SECONDS ?? 60);
const leastSeeds = 5;
const steps = 30;
const settlementReasons = ["invoice_void", "paid_twice", "wrong_amount", "wrong_currency"];

/** What is compared: of each invoice its state, of each resource its term, and the balance. */
type Seen = { invoices: Record<string, string>; resources: Record<string, string>; balance: number };

async function simulate(seed: number, done: Record<string, number>): Promise<void> {
  const random = randomOf(seed);
  for (const table of ["sites", "databases", "jobs"]) await bindings.DB.prepare(`DELETE FROM ${table}`).run();
  await bindings.DB.prepare("UPDATE hosts SET status = 'REMOVED'").run();
  const hostId = `host_${uniqueName("simulated")}` as const;
  await bindings.DB.prepare(
    `INSERT INTO hosts (id, name, status, token_hash, memory_mb, created_at, connected_at) VALUES (?1, ?1, 'ACTIVE', ?1, 100000, 0, 0)`,
  )
    .bind(hostId)
    .run();
  const key = await account();
  const [me] = await rows<{ id: `acc_${string}` }>("SELECT id FROM accounts ORDER BY rowid DESC LIMIT 1");
  const accountId = me?.id ?? "acc_none";

  const model = new BillingModel(new Date());
  /** The model's invoice → the service's. */
  const ids = new Map<string, string>();
  const site = await createSite(key);
  const { body: data } = await api<DatabaseCreated>(key, "POST", "/databases", {
    name: uniqueName("data"),
    type: "redis",
  });
  const bought = await buyCredits(key);
  const amountOf = async (id: string) =>
    (await rows<{ amount_cents: number }>("SELECT amount_cents FROM invoices WHERE id = ?", id))[0]
      ?.amount_cents ?? 0;
  const order = async (id: string, invoiceId: string) =>
    ids.set(model.order({ id, priceCents: await amountOf(invoiceId), billingTerm: 1 }).id, invoiceId);
  await order(site.siteId, site.invoiceId);
  await order(data.databaseId, data.invoiceId);
  ids.set(model.orderCredits(await amountOf(bought.invoiceId), 500).id, bought.invoiceId);

  const contextFor = (point: CrashPoint): Ctx => ({
    ...contextOf(
      { ...bindings, DB: crashingDatabase(bindings.DB, point), MAIL_ENDPOINT: undefined } as never,
      { type: "key", accountId, role: "operator", plan: "free", keyId: "key_simulation" },
      (hint) => void hint.catch(() => undefined),
    ),
    now: () => model.now,
  });

  /** Renewals that the cron issued are the model's newest of the same resource. */
  async function learn(): Promise<void> {
    for (const { id, resource } of [...model.invoices.values()].filter((one) => !ids.has(one.id))) {
      const known = [...ids.values()];
      const found = await rows<{ id: string }>(
        "SELECT id FROM invoices WHERE resource_id = ? AND kind = 'renewal' ORDER BY rowid",
        resource,
      );
      const fresh = found.find((one) => !known.includes(one.id));
      if (!fresh) throw new Error(`seed ${seed}: the cron issued no renewal of ${resource}`);
      ids.set(id, fresh.id);
    }
  }

  async function isSo(): Promise<Seen> {
    const [all, payments, flags, sites, databases] = await Promise.all([
      rows<{ id: string; status: InvoiceStatus }>(
        "SELECT id, status FROM invoices WHERE account_id = ?",
        accountId,
      ),
      rows<{ invoice_id: string; reference: string }>("SELECT * FROM payments"),
      rows<{ invoice_id: string; reason: string; reference: string }>("SELECT * FROM payment_flags"),
      rows<Row>(
        "SELECT id, status, paid_until, suspended_at, serving FROM sites WHERE account_id = ?",
        accountId,
      ),
      rows<Row>("SELECT id, status, paid_until, suspended_at FROM databases WHERE account_id = ?", accountId),
    ]);
    const described = all.map(({ id, status }) => [
      id,
      JSON.stringify([
        status,
        payments.filter(({ invoice_id }) => invoice_id === id).map(({ reference }) => reference),
        flags
          .filter(({ invoice_id, reason }) => invoice_id === id && settlementReasons.includes(reason))
          .map(({ reason, reference }) => `${reason} ${reference}`)
          .toSorted(),
      ]),
    ]);
    const resources = [...sites, ...databases]
      .filter(({ status }) => status !== "DELETING")
      .map(({ id, status, paid_until, suspended_at }) => [
        id,
        JSON.stringify([
          status === "PENDING" || status === "SUSPENDED" ? status : "ACTIVE",
          paid_until,
          suspended_at,
        ]),
      ]);
    return {
      invoices: Object.fromEntries(described) as Record<string, string>,
      resources: Object.fromEntries(resources) as Record<string, string>,
      balance:
        (await rows<{ balance: number }>("SELECT balance FROM ledger_accounts WHERE id = ?", accountId))[0]
          ?.balance ?? 0,
    };
  }

  const shouldBe = (): Seen => ({
    invoices: Object.fromEntries(
      [...model.invoices.values()].map(({ id, account: { status, payments, flags } }) => [
        ids.get(id),
        JSON.stringify([status, payments, [...flags].toSorted()]),
      ]),
    ) as Record<string, string>,
    resources: Object.fromEntries(
      [...model.resources.values()]
        .filter(({ gone }) => !gone)
        .map(({ id, term }) => [
          id,
          JSON.stringify(
            term
              ? [term.status, term.paidUntil.getTime(), term.suspendedAt?.getTime() ?? null]
              : ["PENDING", null, null],
          ),
        ]),
    ),
    balance: balanceOf(model.ledger, owner),
  });

  type Verb = { service: (ctx: Ctx) => Promise<unknown>; model: () => void };
  let payments = 0;
  const reports: { id: string; report: PaymentReport }[] = [];
  const settle = ({ id, report }: (typeof reports)[number]): Verb => ({
    service: (ctx) =>
      settleInvoice(ctx, ids.get(id) ?? null, { ...report, processor: "test", sessionId: report.reference }),
    model: () => model.settle(id, report),
  });
  const anyId = () => {
    const all = [...model.invoices.keys()];
    return random.pick([...all, ...all.slice(-3)] as [string, ...string[]]);
  };
  const verbs: Record<string, () => Verb> = {
    pay: () => {
      const id = anyId();
      const amountCents =
        (model.invoices.get(id)?.account.amountCents ?? 0) + (random.below(6) === 0 ? 1 : 0);
      const currency = random.below(12) === 0 ? "eur" : "usd";
      const one = { id, report: { reference: `${seed}-${++payments}-${accountId}`, amountCents, currency } };
      reports.push(one);
      return settle(one);
    },
    again: () => {
      const [first, ...others] = reports;
      return first
        ? settle(random.pick([first, ...others]))
        : { service: () => Promise.resolve(), model: () => undefined };
    },
    cron: () => ({
      service: async (ctx) => {
        await reconcileBilling(ctx);
        await reconcileTerms(ctx);
        await sendWarnings();
      },
      model: () => model.tick(),
    }),
    void: () => {
      const id = anyId();
      return {
        service: (ctx) => voidInvoice(ctx, { id: ids.get(id) ?? "" }),
        model: () => model.makeVoid(id),
      };
    },
    refund: () => {
      const id = anyId();
      return {
        service: (ctx) => refundInvoice(ctx, { id: ids.get(id) ?? "", force: false }),
        model: () => {
          if (model.beginRefund(id)) model.finishRefund(id);
        },
      };
    },
    agent: () => ({
      service: work,
      model: () => [...model.resources.keys()].forEach((id) => model.work(id)),
    }),
  };

  /** The host does all it is asked for, in the order of acceptance. */
  async function work(ctx: Ctx): Promise<void> {
    for (;;) {
      const offer = await leaseJob(ctx, hostId);
      if (!offer) return;
      const { id: jobId, kind } = offer.job;
      const result =
        kind === "site.deploy"
          ? deployResult
          : ["database.provision", "database.start", "database.restart"].includes(kind)
            ? { version: "7.2" }
            : {};
      await finishJob(ctx, hostId, { jobId, attempt: offer.attempt }, result);
      done[kind] = (done[kind] ?? 0) + 1;
    }
  }

  const calm = contextFor(null);
  const names = [
    "pay",
    "pay",
    "pay",
    "again",
    "cron",
    "cron",
    "cron",
    "cron",
    "void",
    "refund",
    "agent",
  ] as const;
  for (let step = 0; step < steps; step++) {
    const name = random.pick(names);
    if (name === "cron") model.now = addDays(model.now, random.pick([0, 1, 7, 7, 8, 8, 24, 31, 70]));
    const verb = verbs[name]?.();
    if (!verb) throw new Error(name);
    const where = `seed ${seed}, step ${step}: ${name}`;
    const point: CrashPoint =
      name !== "agent" && random.below(3) === 0
        ? { roundTrip: random.below(12), when: random.pick(["before", "after"]) }
        : null;
    // Cut short anywhere and done once more, it is as if it had been done once.
    for (const ctx of point ? [contextFor(point), calm] : [calm]) {
      const outcome = await verb.service(ctx).then(
        () => "done",
        (error: Error) =>
          error.name === "AppError"
            ? "refused"
            : ctx === calm
              ? `${error.name}: ${error.message}`
              : "crashed",
      );
      expect(["done", "refused", "crashed"], where).toContain(outcome);
      done[`${name} ${outcome}`] = (done[`${name} ${outcome}`] ?? 0) + 1;
    }
    verb.model();
    await learn();
    expect(await isSo(), where).toEqual(shouldBe());
    // What is paid has its work within rounds of the reaper, and what nobody paid for has none.
    // What waited too long ends in the first round, and is asked for again in the second.
    await reapJobs(calm);
    await reapJobs(calm);
    const idle = await rows(
      `SELECT id FROM sites s WHERE status = 'DEPLOYING' AND NOT EXISTS (SELECT 1 FROM jobs WHERE lane = s.id AND status IN ('QUEUED', 'LEASED'))
        UNION ALL SELECT id FROM databases d WHERE (status = 'PROVISIONING' OR status = 'STOPPED' AND wanted = 'RUNNING')
          AND NOT EXISTS (SELECT 1 FROM jobs WHERE lane = d.id AND status IN ('QUEUED', 'LEASED'))`,
    );
    expect(idle, where).toEqual([]);
    expect(
      await rows(
        "SELECT id FROM jobs WHERE lane IN (SELECT id FROM sites WHERE status = 'PENDING' UNION ALL SELECT id FROM databases WHERE status = 'PENDING')",
      ),
      where,
    ).toEqual([]);
  }
  // Whatever waited too long is asked for again.
  model.now = addDays(model.now, 0.01);
  await reconcileTerms(calm);
  await sendWarnings();
  await work(calm);
  expect(await rows("SELECT id FROM sites WHERE status = 'SUSPENDED' AND serving"), `seed ${seed}`).toEqual(
    [],
  );
  expect(await verifyLedger(calm), `seed ${seed}`).toMatchObject({ ok: true, problems: [] });
}

type Row = { id: string; status: string; paid_until: number | null; suspended_at: number | null };

it("payments, terms and crashes in any order come to what the model says they come to", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const done: Record<string, number> = {};
  const started = performance.now();
  let seed = seedAgain || 1;
  for (
    ;
    seedAgain ? seed === seedAgain : seed <= leastSeeds || performance.now() - started < budgetMs;
    seed++
  )
    await simulate(seed, done);
  console.info(`${seed - 1} seeds: ${JSON.stringify(done)}`);
  // On a slow machine there are few runs, and what is rare may not happen.
  if (seedAgain || seed < 30) return;
  for (const name of ["pay crashed", "cron crashed", "void crashed", "refund done", "site.stop"])
    expect([name, done[name]]).toEqual([name, expect.any(Number)]);
}, 240_000);
