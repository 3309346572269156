import { systemAccounts, type Transfer } from "../../../worker/domain/ledger.ts";
import { applyToLedger, availableOf, emptyLedger, type Ledger, type LedgerEvent } from "./ledger.ts";
import { addDays, addMonths, invoiceDueDays } from "../../../worker/domain/pricing.ts";
import { type PaymentReport } from "../../../worker/domain/settlement.ts";
import { applyToInvoice, whyNotSettled, type InvoiceAccount } from "./invoice.ts";
import { applyToTerm, termSteps, type Term } from "./term.ts";

export const owner = "acc_owner";

export type ModelInvoice = {
  id: string;
  kind: "site" | "credits" | "renewal";
  resource: string | null;
  account: InvoiceAccount;
  dueAt: Date;
  issuedAt: Date;
  credits: number;
  periodEnd: Date | null;
  refund: { holdId: string | null; taken: number } | null;
};

/** A site or database. `job`: the pending job of its host. */
export type ModelResource = {
  id: string;
  /** null: never paid. */
  term: Term | null;
  gone: boolean;
  priceCents: number;
  billingTerm: number;
  runs: boolean;
  job: "start" | "stop" | "delete" | null;
};

/**
 * Invoices, payments, ledger and terms without D1: each method is one batch, which takes effect entirely or not at
 * all.
 */
export class BillingModel {
  now: Date;
  readonly invoices = new Map<string, ModelInvoice>();
  readonly resources = new Map<string, ModelResource>();
  ledger: Ledger = emptyLedger;
  readonly log: Transfer[] = [];
  private made = 0;

  constructor(now: Date) {
    this.now = now;
  }

  order(resource: { id: string; priceCents: number; billingTerm: number }): ModelInvoice {
    this.resources.set(resource.id, { ...resource, term: null, gone: false, runs: false, job: null });
    return this.issue("site", resource.id, resource.priceCents, { dueAt: addDays(this.now, invoiceDueDays) });
  }

  orderCredits(amountCents: number, credits: number): ModelInvoice {
    return this.issue("credits", null, amountCents, { credits, dueAt: addDays(this.now, invoiceDueDays) });
  }

  private issue(
    kind: ModelInvoice["kind"],
    resource: string | null,
    amountCents: number,
    more: { dueAt: Date; credits?: number; periodEnd?: Date },
  ): ModelInvoice {
    const invoice: ModelInvoice = {
      id: `invoice_${++this.made}`,
      kind,
      resource,
      account: { status: "unpaid", amountCents, currency: "usd", payments: [], flags: new Set() },
      issuedAt: this.now,
      credits: 0,
      periodEnd: null,
      refund: null,
      ...more,
    };
    this.invoices.set(invoice.id, invoice);
    return invoice;
  }

  private post(event: LedgerEvent): void {
    const next = applyToLedger(this.ledger, event);
    if (typeof next === "string") throw new Error(`the ledger refused: ${next}`);
    this.ledger = next;
    if (event.kind === "transfer" || event.kind === "post") this.log.push(event.transfer);
  }

  /** The processor has received this money. */
  settle(id: string, report: PaymentReport): void {
    const invoice = this.invoices.get(id);
    if (
      !invoice ||
      [...this.invoices.values()].some(({ account }) => account.payments.includes(report.reference))
    )
      return;
    const settles = whyNotSettled(invoice.account, report) === null;
    invoice.account = applyToInvoice(invoice.account, { kind: "paid", ...report });
    if (!settles) return;
    if (invoice.kind === "credits")
      this.post({
        kind: "transfer",
        transfer: {
          id: `tx_${++this.made}`,
          debitId: systemAccounts.sold,
          creditId: owner,
          amount: invoice.credits,
          type: "purchase",
          reference: id,
        },
      });
    const resource = this.resources.get(invoice.resource ?? "");
    if (!resource || resource.gone) return;
    if (invoice.kind === "site") {
      resource.term = {
        status: "ACTIVE",
        paidUntil: addMonths(this.now, resource.billingTerm),
        billingTerm: resource.billingTerm,
        billingDay: this.now.getUTCDate(),
        suspendedAt: null,
        warnedAt: null,
        renewal: null,
      };
      resource.job = "start";
    } else if (resource.term) {
      const wasSuspended = resource.term.status === "SUSPENDED";
      resource.term = applyToTerm(resource.term, { kind: "renewed" }, this.now);
      if (wasSuspended) resource.job = "start";
    }
  }

  makeVoid(id: string): void {
    const invoice = this.invoices.get(id);
    if (invoice?.account.status !== "unpaid") return;
    invoice.account = applyToInvoice(invoice.account, { kind: "voided" });
    const resource = this.resources.get(invoice.resource ?? "");
    if (!resource) return;
    if (resource.term === null) resource.gone = true;
    else if (invoice.kind === "renewal")
      resource.term = applyToTerm(resource.term, { kind: "voided" }, this.now);
  }

  voidOverdue(): void {
    for (const { id, kind, dueAt } of this.invoices.values())
      if (kind !== "renewal" && dueAt < this.now) this.makeVoid(id);
  }

  /** One of the cron's steps for one resource. */
  termStep(id: string, step: (typeof termSteps)[number]): void {
    const resource = this.resources.get(id);
    if (!resource?.term || resource.gone) return;
    const before = resource.term;
    resource.term = step(before, this.now);
    if (resource.term.renewal && !before.renewal)
      this.issue("renewal", id, resource.priceCents, {
        dueAt: before.paidUntil,
        periodEnd: before.paidUntil,
      });
    if (resource.term.status === "SUSPENDED" && before.status === "ACTIVE") resource.job = "stop";
    if (resource.term.status !== "GONE") return;
    resource.gone = true;
    resource.job = "delete";
    for (const invoice of this.invoices.values())
      if (invoice.resource === id) invoice.account = applyToInvoice(invoice.account, { kind: "voided" });
  }

  tick(): void {
    this.voidOverdue();
    for (const step of termSteps) for (const id of this.resources.keys()) this.termStep(id, step);
  }

  /** The host completes the pending job. */
  work(id: string): void {
    const resource = this.resources.get(id);
    if (!resource?.job) return;
    resource.runs = resource.job === "start";
    resource.job = null;
  }

  /** Records the refund and holds the bought credits; false: some of them are spent. */
  beginRefund(id: string): boolean {
    const invoice = this.invoices.get(id);
    if (invoice?.account.status !== "paid" || invoice.refund) return invoice?.refund !== null;
    if (invoice.credits > availableOf(this.ledger, owner)) return false;
    const holdId = invoice.credits > 0 ? `hold_${id}` : null;
    if (holdId) this.post({ kind: "hold", id: holdId, accountId: owner, amount: invoice.credits });
    invoice.refund = { holdId, taken: invoice.credits };
    return true;
  }

  finishRefund(id: string): void {
    const invoice = this.invoices.get(id);
    if (invoice?.account.status !== "paid" || !invoice.refund) return;
    const { holdId, taken } = invoice.refund;
    if (holdId)
      this.post({
        kind: "post",
        holdId,
        transfer: {
          id: `tx_${++this.made}`,
          debitId: owner,
          creditId: systemAccounts.sold,
          amount: taken,
          type: "refund",
          reference: id,
        },
      });
    invoice.account = applyToInvoice(invoice.account, { kind: "refunded" });
    const resource = this.resources.get(invoice.resource ?? "");
    if (!resource?.term || resource.gone || this.isFollowed(invoice)) return;
    resource.term = applyToTerm(
      resource.term,
      { kind: "refunded", periodEnd: this.unpaidFrom(invoice) },
      this.now,
    );
    const { paidUntil } = resource.term;
    for (const one of this.invoices.values())
      if (one.resource === resource.id && one.kind === "renewal" && one.account.status === "unpaid")
        one.periodEnd = paidUntil;
  }

  /** Where the terms begin that were refunded and are not followed by a paid one. null: with the first payment. */
  private unpaidFrom({ resource }: ModelInvoice): Date | null {
    const begins = (status: string) =>
      [...this.invoices.values()]
        .filter((other) => other.resource === resource && other.account.status === status)
        .map(({ periodEnd }) => periodEnd?.getTime() ?? 0);
    const lastPaid = Math.max(-1, ...begins("paid"));
    return new Date(Math.min(...begins("refunded").filter((begin) => begin > lastPaid)));
  }

  /** Whether a later term of the same resource is paid. */
  private isFollowed({ resource, periodEnd }: ModelInvoice): boolean {
    return [...this.invoices.values()].some(
      (other) =>
        other.resource === resource &&
        other.account.status === "paid" &&
        (other.periodEnd?.getTime() ?? 0) > (periodEnd?.getTime() ?? 0),
    );
  }

  spend(amount: number, id: string): void {
    if (availableOf(this.ledger, owner) < amount || this.ledger.holds.has(id)) return;
    this.post({ kind: "hold", id, accountId: owner, amount });
  }

  endSpending(id: string, used: number): void {
    const hold = this.ledger.holds.get(id);
    if (hold?.status !== "open") return;
    if (used === 0) return this.post({ kind: "void", holdId: id });
    this.post({
      kind: "post",
      holdId: id,
      transfer: {
        id: `tx_${++this.made}`,
        debitId: owner,
        creditId: systemAccounts.spent,
        amount: Math.min(used, hold.amount),
        type: "chat",
        reference: id,
      },
    });
  }
}
