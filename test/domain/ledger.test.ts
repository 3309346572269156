import { describe, expect, it } from "vitest";
import { LedgerAudit, systemAccounts } from "../../worker/domain/ledger.ts";
import { applyToLedger, type Ledger } from "../support/models/ledger.ts";

const funded = (): Ledger => ({
  balances: new Map([
    [systemAccounts.sold, -100],
    ["acc_1", 100],
    ["acc_2", 0],
  ]),
  holds: new Map([["hold_1", { id: "hold_1", accountId: "acc_1", amount: 40, status: "open" as const }]]),
  references: new Set(),
});
const transfer = (overrides: object = {}) => ({
  id: "tx_1",
  debitId: "acc_1",
  creditId: systemAccounts.sold,
  amount: 40,
  type: "chat" as const,
  reference: "ref_1",
  ...overrides,
});

describe("a hold", () => {
  it.each([
    ["more than it holds", { amount: 41 }],
    ["from another account", { debitId: "acc_2", amount: 1 }],
  ])("posts not %s", (_, overrides) => {
    const event = { kind: "post" as const, holdId: "hold_1", transfer: transfer(overrides) };
    expect(applyToLedger(funded(), event)).toBe("over_the_hold");
  });

  it.each(["post", "void"] as const)("that is over (%s) is not open, and no other ends with it", (kind) => {
    const before = funded();
    const other = { id: "hold_2", accountId: "acc_1", amount: 10, status: "open" as const };
    const ledger = { ...before, holds: new Map([...before.holds, ["hold_2", other] as const]) };
    const event =
      kind === "post" ? { kind, holdId: "hold_1", transfer: transfer() } : { kind, holdId: "hold_1" };
    const after = applyToLedger(ledger, event) as Ledger;
    expect(after.holds.get("hold_1")).toEqual({
      id: "hold_1",
      accountId: "acc_1",
      amount: 40,
      status: kind === "post" ? "posted" : "voided",
    });
    expect(after.holds.get("hold_2")).toEqual(other);
    expect(applyToLedger(after, event)).toBe("hold_ended");
  });
});

it.each([0, -1, 0.5, Number.MAX_SAFE_INTEGER + 1])("%d credits are no amount", (amount) => {
  expect(applyToLedger(funded(), { kind: "transfer", transfer: transfer({ amount }) })).toBe("not_an_amount");
  expect(applyToLedger(funded(), { kind: "hold", id: "hold_2", accountId: "acc_1", amount })).toBe(
    "not_an_amount",
  );
});

describe("an audit", () => {
  const bought = {
    seq: 1,
    ...transfer({ debitId: systemAccounts.sold, creditId: "acc_1", type: "purchase" }),
  };

  it("counts transfers, and finds one that comes again or late", () => {
    const audit = new LedgerAudit();
    audit.add(bought);
    expect(audit.problems).toEqual([]);
    audit.add({ ...bought, id: "tx_2", reference: "ref_2" });
    expect([audit.transfers, audit.problems]).toEqual([2, ["tx_2 is out of order"]]);
  });

  it("finds a transfer of nothing", () => {
    const audit = new LedgerAudit();
    audit.add({ ...bought, amount: 0 });
    expect(audit.problems).toEqual(["tx_1 moves 0, which is not a valid amount"]);
  });

  it("sums up to nothing over all accounts", () => {
    const audit = new LedgerAudit();
    audit.add(bought);
    audit.add({ ...bought, seq: 2, id: "tx_2", reference: "ref_2" });
    audit.close(
      [
        { id: systemAccounts.sold, balance: -80, held: 0 },
        { id: "acc_1", balance: 80, held: 0 },
      ],
      new Map(),
    );
    expect(audit.problems).toEqual([]);
  });

  it("finds a transfer that leaves and arrives nowhere: money from nothing", () => {
    const audit = new LedgerAudit();
    // Not a number is lost between the two ends.
    audit.add({ ...bought, amount: Number.NaN });
    audit.close([], new Map());
    expect(audit.problems).toContain("All accounts together have a balance of NaN, which must be 0");
  });
});
