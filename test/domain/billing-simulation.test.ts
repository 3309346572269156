import { expect, it } from "vitest";
import { LedgerAudit } from "../../worker/domain/ledger.ts";
import { availableOf, balanceOf, heldOf } from "../support/models/ledger.ts";
import { addDays } from "../../worker/domain/pricing.ts";
import { graceDays, keepSuspendedDays, warnDays } from "../../worker/domain/terms.ts";
import { termSteps } from "../support/models/term.ts";
import { BillingModel, owner, type ModelInvoice, type ModelResource } from "../support/models/billing.ts";
import { randomOf } from "../support/random.ts";

/** One run again: `BERTH_SEED=123 vitest run --project unit test/domain/billing-simulation.test.ts`. */
const seedAgain = Number(process.env["BERTH_SEED"] ?? 0);
/** Fewer of them for each mutant (test/mutants). */
const runsMax = Number(process.env["BERTH_SIMULATION_RUNS"] ?? 10_000);
const seeds = seedAgain > 0 ? [seedAgain] : Array.from({ length: runsMax }, (_, index) => index + 1);
const steps = 80;

/** What the processor knows, whoever hears of it. */
type Fact = { invoiceId: string; reference: string; amountCents: number; currency: string };

class Run {
  readonly seed: number;
  readonly random;
  readonly model = new BillingModel(new Date(Date.UTC(2026, 0, 31, 11, 22, 33)));
  readonly facts: Fact[] = [];
  /** Facts that were reported at least once. */
  readonly heard = new Set<Fact>();
  private readonly statuses = new Map<string, string>();
  private logged = 0;
  private spendings = 0;
  private readonly before = new Map<string, ModelResource>();

  constructor(seed: number) {
    this.seed = seed;
    this.random = randomOf(seed);
    const { model } = this;
    model.order({ id: "site_a", priceCents: 500, billingTerm: this.random.pick([1, 3, 12]) });
    model.order({ id: "db_b", priceCents: 900, billingTerm: 1 });
    for (const credits of [100, 500]) model.orderCredits(credits, credits);
  }

  check(isTrue: boolean, guarantee: string): void {
    if (!isTrue) throw new Error(`seed ${this.seed}: ${guarantee}`);
  }

  /** Does the steps of a verb one after the other, and may end between any two: before the first, or behind the last. */
  private verb(all: readonly (() => void)[]): void {
    const end = this.random.below(3) === 0 ? this.random.below(all.length + 1) : all.length;
    for (const step of all.slice(0, end)) {
      step();
      this.invariants();
    }
  }

  private anyInvoice(): ModelInvoice {
    const [first, ...others] = this.model.invoices.values();
    if (!first) throw new Error("There is no invoice");
    // The newest are what people look at.
    return this.random.pick([first, ...others, ...others.slice(-2), ...others.slice(-2)]);
  }

  private report(fact: Fact): void {
    this.heard.add(fact);
    this.model.settle(fact.invoiceId, fact);
  }

  readonly events: Record<string, () => void> = {
    customerPays: () => {
      const { id, account } = this.anyInvoice();
      const fits = this.random.below(6) > 0;
      this.facts.push({
        invoiceId: id,
        reference: `pi_${this.facts.length}`,
        amountCents: account.amountCents + (fits ? 0 : this.random.pick([-1, 1, 100])),
        currency: this.random.below(15) === 0 ? "eur" : "usd",
      });
    },
    reported: () => {
      const [first, ...others] = this.facts;
      if (!first) return;
      const fact = this.random.pick([first, ...others]);
      this.verb(Array.from({ length: this.random.below(21) }, () => () => this.report(fact)));
    },
    timePasses: () => {
      const days = this.random.pick([0, 0.01, 1, 1, 3, 7, 7, 23, 30, 31, 61, 200]);
      this.model.now = addDays(this.model.now, days);
    },
    cron: () => {
      const { model } = this;
      const each = [...model.resources.keys()];
      this.verb([
        ...this.facts.map((fact) => () => (this.random.below(2) === 0 ? this.report(fact) : undefined)),
        ...[...model.invoices.keys()].map((id) => () => model.finishRefund(id)),
        () => model.voidOverdue(),
        ...termSteps.flatMap((step) => each.map((id) => () => model.termStep(id, step))),
      ]);
    },
    nobodyLooks: () => {
      for (let week = this.random.below(8); week > 0; week--) {
        this.model.now = addDays(this.model.now, 8);
        this.events["cron"]?.();
      }
    },
    operatorVoids: () => this.verb([() => this.model.makeVoid(this.anyInvoice().id)]),
    operatorRefunds: () => {
      const { id } = this.anyInvoice();
      this.verb([() => void this.model.beginRefund(id), () => this.model.finishRefund(id)]);
    },
    hostWorks: () => this.verb([...this.model.resources.keys()].map((id) => () => this.model.work(id))),
    spends: () => {
      const id = `chat_${this.spendings++}`;
      this.verb([
        () => this.model.spend(1 + this.random.below(200), id),
        () => this.model.endSpending(id, this.random.below(100)),
      ]);
    },
    spendingEnds: () =>
      this.verb([() => this.model.endSpending(`chat_${this.random.below(this.spendings + 1)}`, 0)]),
  };

  invariants(): void {
    const { model } = this;
    const { ledger, log } = model;
    // L1, L2, L4, L5.
    const balance = balanceOf(ledger, owner);
    this.check(
      Number.isSafeInteger(balance) && balance >= 0,
      "L1: the balance is a whole number, never below zero",
    );
    this.check(
      heldOf(ledger, owner) <= balance && availableOf(ledger, owner) >= 0,
      "L4: no more is held than there is",
    );
    let sum = 0;
    for (const one of ledger.balances.values()) sum += one;
    this.check(sum === 0, "L2: all accounts sum up to zero");
    this.check(log.length >= this.logged, "L5: nothing of the log goes");
    this.logged = log.length;
    for (const invoice of model.invoices.values()) {
      const { id, account } = invoice;
      const was = this.statuses.get(id) ?? "unpaid";
      const { status } = account;
      const isLegal =
        was === status ||
        (was === "unpaid" && (status === "paid" || status === "void")) ||
        (was === "paid" && status === "refunded");
      this.check(isLegal, `I1: an invoice does not go from ${was} to ${status}`);
      this.statuses.set(id, status);
      const isPaid = status === "paid" || status === "refunded";
      this.check(account.payments.length === (isPaid ? 1 : 0), "I1: paid once, or not");
      if (invoice.kind === "credits")
        this.check(
          ledger.references.has(`purchase ${id}`) === isPaid,
          "L3: one purchase for each paid invoice",
        );
    }
    for (const resource of model.resources.values()) this.terms(resource);
  }

  private terms(resource: ModelResource): void {
    const { now, invoices } = this.model;
    const { id, term, gone, runs, job } = resource;
    const was = this.before.get(id);
    const mine = [...invoices.values()].filter((one) => one.resource === id);
    const open = mine.filter(({ kind, account }) => kind === "renewal" && account.status === "unpaid");
    this.check(open.length <= 1, "one renewal to pay at a time");
    this.check(
      gone || ((term?.renewal ?? null) !== null) === (open.length === 1),
      "the term knows its renewal",
    );
    if (term === null) this.check(!runs && job === null, "I3: what nobody paid runs nowhere");
    if (term?.status === "ACTIVE" && !gone)
      this.check(runs || job === "start", "I2: what is paid runs, or is to");
    if (term?.status === "SUSPENDED")
      this.check(!runs || job === "stop", "what is suspended does not run, or is to end");
    if (term?.status === "SUSPENDED" && was?.term?.status === "ACTIVE") {
      this.check(
        addDays(was.term.paidUntil, graceDays) <= now,
        "nothing is suspended before its grace is over",
      );
      this.check(
        open.every(({ issuedAt }) => addDays(issuedAt, graceDays) <= now) && open.length === 1,
        "nobody is suspended without an invoice for a week",
      );
    }
    if (gone && term && was && !was.gone) {
      this.check(was.term?.status === "SUSPENDED", "only what is suspended is deleted");
      const { suspendedAt, warnedAt } = was.term ?? {};
      this.check(
        !!suspendedAt && addDays(suspendedAt, keepSuspendedDays) <= now,
        "data is kept for thirty days",
      );
      this.check(!!warnedAt && addDays(warnedAt, warnDays) <= now, "a deletion is told a week before");
      this.check(
        mine.every(({ account }) => account.status !== "unpaid"),
        "nothing that is gone can be paid",
      );
    }
    this.before.set(id, { ...resource });
  }

  /** All is heard of, and the cron comes by until nothing is under way. */
  calm(): void {
    const { model } = this;
    for (const fact of this.facts.toSorted(() => this.random.below(3) - 1)) this.report(fact);
    for (let index = 0; index < this.spendings; index++) model.endSpending(`chat_${index}`, 0);
    for (const id of model.invoices.keys()) model.finishRefund(id);
    model.tick();
    for (const id of model.resources.keys()) model.work(id);
    this.invariants();
    for (const { invoiceId, reference } of this.facts) {
      const { payments, flags } = model.invoices.get(invoiceId)?.account ?? {
        payments: [],
        flags: new Set<string>(),
      };
      const times =
        payments.filter((one) => one === reference).length +
        [...flags].filter((flag) => flag.endsWith(` ${reference}`)).length;
      this.check(times === 1, `money is a payment or a flag, once: ${reference} is ${times}`);
    }
    const all = () =>
      JSON.stringify([
        [...model.invoices.values()].map((one) => ({ ...one, flags: [...one.account.flags].toSorted() })),
        [...model.resources.values()],
        [...model.ledger.balances],
        model.log.length,
      ]);
    const settled = all();
    for (const fact of [...this.facts, ...this.facts]) this.report(fact);
    model.tick();
    this.check(all() === settled, "L6: all of it once more, in any order, changes nothing");
    this.check(heldOf(model.ledger, owner) === 0, "L4: each hold ends");
    const audit = new LedgerAudit();
    for (const [index, transfer] of model.log.entries()) audit.add({ ...transfer, seq: index + 1 });
    audit.close(
      [...model.ledger.balances].map(([id, balance]) => ({ id, balance, held: 0 })),
      new Map(),
    );
    this.check(
      audit.problems.length === 0,
      `L7: the balance is the fold of the log: ${audit.problems.join("; ")}`,
    );
  }
}

const likely = [
  "customerPays",
  "customerPays",
  "reported",
  "reported",
  "reported",
  "cron",
  "cron",
  "cron",
  "hostWorks",
];

it(`${seeds.length} runs of events in any order and number, ending between any two steps, keep every invariant of money and terms`, () => {
  const done: Record<string, number> = {};
  for (const seed of seeds) {
    const run = new Run(seed);
    const names = [...Object.keys(run.events), ...likely] as [string, ...string[]];
    for (let step = 0; step < steps; step++) {
      run.events[run.random.pick(names)]?.();
      run.invariants();
    }
    run.calm();
    for (const { term, gone } of run.model.resources.values()) {
      const ended = gone ? (term ? "deleted" : "never paid") : (term?.status ?? "PENDING");
      done[ended] = (done[ended] ?? 0) + 1;
    }
    for (const { kind, account } of run.model.invoices.values()) {
      const name = `${kind} ${account.status}`;
      done[name] = (done[name] ?? 0) + 1;
    }
  }
  if (seedAgain > 0) return;
  // A simulation that never gets somewhere proves nothing of it.
  for (const name of [
    "deleted",
    "never paid",
    "ACTIVE",
    "SUSPENDED",
    "renewal paid",
    "renewal refunded",
    "renewal void",
    "credits refunded",
    "site refunded",
  ])
    expect([name, (done[name] ?? 0) > runsMax / 100]).toEqual([name, true]);
}, 120_000);
