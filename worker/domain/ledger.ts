import type { TransactionType } from "../../protocol/states.ts";

/** The sources and destinations of credits; a customer's ledger account has the id of the account. */
export const systemAccounts = {
  sold: "system:sold",
  granted: "system:granted",
  spent: "system:spent",
} as const;

export type Transfer = {
  id: string;
  debitId: string;
  creditId: string;
  amount: number;
  type: TransactionType;
  reference: string;
};
export type Hold = { id: string; accountId: string; amount: number; status: "open" | "posted" | "voided" };

/** A pure model of the ledger: what D1's triggers and CHECKs enforce, without D1. */
export type Ledger = {
  balances: ReadonlyMap<string, number>;
  holds: ReadonlyMap<string, Hold>;
  /** `type reference` of every transfer. */
  references: ReadonlySet<string>;
};

export type LedgerEvent =
  | { kind: "transfer"; transfer: Transfer }
  | { kind: "hold"; id: string; accountId: string; amount: number }
  | { kind: "post"; holdId: string; transfer: Transfer }
  | { kind: "void"; holdId: string };

export type LedgerRefusal = "not_an_amount" | "known" | "not_covered" | "hold_ended" | "over_the_hold";

export const emptyLedger: Ledger = { balances: new Map(), holds: new Map(), references: new Set() };

const isSystem = (id: string) => id.startsWith("system:");
export const balanceOf = (ledger: Ledger, id: string): number => ledger.balances.get(id) ?? 0;

export const heldOf = (ledger: Ledger, accountId: string): number =>
  [...ledger.holds.values()]
    .filter((hold) => hold.accountId === accountId && hold.status === "open")
    .reduce((sum, { amount }) => sum + amount, 0);

export const availableOf = (ledger: Ledger, id: string): number => balanceOf(ledger, id) - heldOf(ledger, id);

const isAmount = (amount: number) => Number.isSafeInteger(amount) && amount > 0;

function transferred(ledger: Ledger, transfer: Transfer): Ledger | LedgerRefusal {
  const { debitId, creditId, amount, type, reference } = transfer;
  if (!isAmount(amount) || debitId === creditId) return "not_an_amount";
  if (ledger.references.has(`${type} ${reference}`)) return "known";
  if (!isSystem(debitId) && availableOf(ledger, debitId) < amount) return "not_covered";
  const balances = new Map(ledger.balances);
  balances.set(debitId, balanceOf(ledger, debitId) - amount);
  balances.set(creditId, balanceOf(ledger, creditId) + amount);
  return { ...ledger, balances, references: new Set([...ledger.references, `${type} ${reference}`]) };
}

const ended = (ledger: Ledger, hold: Hold, status: "posted" | "voided"): Ledger => ({
  ...ledger,
  holds: new Map([...ledger.holds, [hold.id, { ...hold, status }]]),
});

/** The ledger after the event, or why the event is refused; a refused event has no effect. */
export function applyToLedger(ledger: Ledger, event: LedgerEvent): Ledger | LedgerRefusal {
  if (event.kind === "transfer") return transferred(ledger, event.transfer);
  if (event.kind === "hold") {
    if (!isAmount(event.amount)) return "not_an_amount";
    if (ledger.holds.has(event.id)) return "known";
    if (availableOf(ledger, event.accountId) < event.amount) return "not_covered";
    const { id, accountId, amount } = event;
    return {
      ...ledger,
      holds: new Map([...ledger.holds, [id, { id, accountId, amount, status: "open" as const }]]),
    };
  }
  const hold = ledger.holds.get(event.holdId);
  if (hold?.status !== "open") return "hold_ended";
  if (event.kind === "void") return ended(ledger, hold, "voided");
  if (event.transfer.amount > hold.amount || event.transfer.debitId !== hold.accountId)
    return "over_the_hold";
  return transferred(ended(ledger, hold, "posted"), event.transfer);
}

/** Folds a ledger's transfers in order, and reports inconsistencies in them and in the stored balances. */
export class LedgerAudit {
  readonly problems: string[] = [];
  transfers = 0;
  private readonly balances = new Map<string, number>();
  private readonly references = new Set<string>();
  private lastSeq = 0;

  add({ seq, id, debitId, creditId, amount, type, reference }: Transfer & { seq: number }): void {
    this.transfers++;
    if (seq <= this.lastSeq) this.problems.push(`${id} is out of order`);
    this.lastSeq = seq;
    if (!isAmount(amount)) this.problems.push(`${id} moves ${amount}, which is not a valid amount`);
    if (this.references.has(`${type} ${reference}`))
      this.problems.push(`${id} is a second ${type} for ${reference}`);
    this.references.add(`${type} ${reference}`);
    this.balances.set(debitId, (this.balances.get(debitId) ?? 0) - amount);
    this.balances.set(creditId, (this.balances.get(creditId) ?? 0) + amount);
    if (!isSystem(debitId) && (this.balances.get(debitId) ?? 0) < 0)
      this.problems.push(`${id} takes ${debitId} below zero`);
  }

  /** @param kept balances and held credits as stored; @param openHolds sum of open holds by account */
  close(
    kept: readonly { id: string; balance: number; held: number }[],
    openHolds: ReadonlyMap<string, number>,
  ): void {
    const stored = new Map(kept.map((account) => [account.id, account]));
    for (const id of new Set([...stored.keys(), ...this.balances.keys(), ...openHolds.keys()])) {
      const { balance = 0, held = 0 } = stored.get(id) ?? {};
      const folded = this.balances.get(id) ?? 0;
      if (balance !== folded)
        this.problems.push(`${id} has a balance of ${balance}, but its transfers sum up to ${folded}`);
      const open = openHolds.get(id) ?? 0;
      if (held !== open) this.problems.push(`${id} has ${held} held, but its open holds sum up to ${open}`);
      if (!isSystem(id) && held > balance) this.problems.push(`${id} holds more than its balance`);
    }
    const sum = [...this.balances.values()].reduce((total, balance) => total + balance, 0);
    if (sum !== 0) this.problems.push(`All accounts together have a balance of ${sum}, which must be 0`);
  }
}
