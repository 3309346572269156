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
export const isSystem = (id: string) => id.startsWith("system:");
export const isAmount = (amount: number) => Number.isSafeInteger(amount) && amount > 0;

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
