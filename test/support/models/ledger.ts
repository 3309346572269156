import { isAmount, isSystem, type Transfer } from "../../../worker/domain/ledger.ts";

type Hold = { id: string; accountId: string; amount: number; status: "open" | "posted" | "voided" };

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

type LedgerRefusal = "not_an_amount" | "known" | "not_covered" | "hold_ended" | "over_the_hold";

export const emptyLedger: Ledger = { balances: new Map(), holds: new Map(), references: new Set() };

export const balanceOf = (ledger: Ledger, id: string): number => ledger.balances.get(id) ?? 0;

export const heldOf = (ledger: Ledger, accountId: string): number =>
  [...ledger.holds.values()]
    .filter((hold) => hold.accountId === accountId && hold.status === "open")
    .reduce((sum, { amount }) => sum + amount, 0);

export const availableOf = (ledger: Ledger, id: string): number => balanceOf(ledger, id) - heldOf(ledger, id);

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
