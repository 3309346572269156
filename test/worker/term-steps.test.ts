import { beforeEach, describe, expect, it } from "vitest";
import { changeDue } from "../../worker/billing/terms/change-due.ts";
import { deleteExpired } from "../../worker/billing/terms/delete-expired.ts";
import { issueRenewal, issueRenewals } from "../../worker/billing/terms/issue.ts";
import { reconcileSuspended } from "../../worker/billing/terms/reconcile-suspended.ts";
import { remindOwners } from "../../worker/billing/terms/remind.ts";
import { resumeReleased } from "../../worker/billing/terms/resume.ts";
import { suspendOfAccounts, suspendOverdue } from "../../worker/billing/terms/suspend.ts";
import type { Ctx } from "../../worker/ctx.ts";
import type { Termed } from "../../worker/db/resource.ts";
import {
  at,
  begin,
  checkoutRow,
  hostRow,
  insert,
  interrupted,
  interruptedAlone,
  invoiceRow,
  jobRow,
  listening,
  make,
  minutes,
  named,
  newId,
  now,
  one,
  packIds,
  update,
  write,
  yes,
  type Case,
  type Made,
} from "./billing-rows.ts";
import { siteUrl } from "./service.ts";
import { rows } from "./stripe-service.ts";

// Rows are written as a step finds them, and the step is called itself: who is due, who is not by a hair, and what is done.
let hostId: string;
beforeEach(async () => {
  ({ hostId } = await begin());
});

type Cases = Record<string, Case & { is?: boolean }>;
const renewal = ({ id, accountId }: Made, more: object = {}) =>
  invoiceRow({ account_id: accountId, resource_id: id, period_end: at(20), ...more });
/** An invoice with a checkout in this state. */
const paying = (made: Made, status: string, more: object = {}) => {
  const id = newId("invoice");
  return [renewal(made, { id, ...more }), checkoutRow(id, status)];
};
const jobsOf = (id: string) =>
  rows("SELECT kind, status, host_id, account_id FROM jobs WHERE lane = ? ORDER BY seq", id);
const everything = async (kind: Termed, id: string) => ({
  row: await rows(`SELECT * FROM ${kind} WHERE id = ?`, id),
  invoices: await rows("SELECT * FROM invoices WHERE resource_id = ?", id),
  jobs: await rows("SELECT * FROM jobs"),
  mails: await rows("SELECT * FROM mails"),
  activity: await rows("SELECT * FROM activity"),
  deployments: await rows("SELECT * FROM deployments"),
});
const others = { sites: "databases", databases: "sites" } as const;
const only = <Name extends string>(made: Record<Name, Made>, name: Name): Made => made[name];

describe.each(["sites", "databases"] as const)("of %s", (kind) => {
  const word = kind === "sites" ? "site" : "database";

  describe("a renewal", () => {
    it("is issued from seven days before the end, for what has a term and no invoice that can be paid", async () => {
      const invoice = (more: object, status?: string) => (made: Made) =>
        status === undefined ? [renewal(made, more)] : paying(made, status, more);
      const unpaid = { kind: "change" };
      const cases: Cases = {
        "seven days before its end": {},
        "a millisecond earlier": { row: { paid_until: at(7, 1) }, is: false },
        "long after its end": { row: { paid_until: at(-100) } },
        deploying: { row: { status: kind === "sites" ? "DEPLOYING" : "PROVISIONING" } },
        stopped: { row: { status: "STOPPED" } },
        failed: { row: { status: "FAILED" } },
        "never paid": { row: { status: "PENDING" }, is: false },
        "being deleted": { row: { status: "DELETING" }, is: false },
        suspended: { row: { status: "SUSPENDED" } },
        "suspended with its account": {
          row: { status: "SUSPENDED" },
          account: { suspended_at: at(-1) },
          is: false,
        },
        "with another pack paid for": {
          row: { next_pack_at: at(9), next_pack_id: packIds.large },
          is: false,
        },
        "with a renewal to pay": { beside: invoice({}), is: false },
        "with this end paid for": { beside: invoice({ status: "paid", period_end: at(7) }), is: false },
        "with an earlier one paid": { beside: invoice({ status: "paid", period_end: at(-20) }) },
        "with a void one": { beside: invoice({ status: "void", period_end: at(7) }) },
        "with a refunded one": { beside: invoice({ status: "refunded", period_end: at(7) }) },
        "with a change that nobody pays": { beside: invoice(unpaid) },
        "with a change that begins to be paid": { beside: invoice(unpaid, "opening"), is: false },
        "with a change that is being paid": { beside: invoice(unpaid, "open"), is: false },
        "with a change at the bank": { beside: invoice(unpaid, "processing"), is: false },
        "with a change that was not paid in time": { beside: invoice(unpaid, "expired") },
        "with a change whose payment failed": { beside: invoice(unpaid, "failed") },
        "with a void change that can still be paid": {
          beside: invoice({ ...unpaid, status: "void" }, "open"),
        },
        "with a paid change that can still be paid": {
          beside: invoice({ ...unpaid, status: "paid" }, "open"),
        },
      };
      const made = await make(kind, { row: { paid_until: at(7) } }, cases);
      for (let round = 0; round < 2; round++) await issueRenewals(listening().ctx);
      expect(
        await named(
          made,
          "SELECT resource_id AS id FROM invoices WHERE kind = 'renewal' AND status = 'unpaid' AND created_at = ?",
          now.getTime(),
        ),
      ).toEqual(yes(cases));
      expect(
        await rows(
          "SELECT i.id FROM mails m JOIN invoices i ON m.id = 'issued:' || i.id AND m.account_id = i.account_id",
        ),
      ).toHaveLength(yes(cases).length);
      expect(
        await named(made, "SELECT resource_id AS id FROM invoices WHERE kind = 'change' AND status = 'void'"),
      ).toEqual([
        "with a change that nobody pays",
        "with a change that was not paid in time",
        "with a change whose payment failed",
        "with a void change that can still be paid",
      ]);
    });

    it("is of the pack and the months that were chosen, with its mail", async () => {
      const row = {
        name: "mine",
        paid_until: at(3, 5),
        next_pack_id: packIds.large,
        next_billing_term: 3,
        host_id: hostId,
      };
      const made = await make(
        kind,
        { row },
        { chosen: {}, kept: { row: { next_pack_id: null, next_billing_term: null } } },
      );
      const { ctx, hints } = listening();
      await issueRenewals(ctx);
      for (const [name, packId, months, cents, line] of [
        ["chosen", packIds.large, 3, 13_500, "mine: Large, 3 months more"],
        ["kept", packIds.small, 1, 1000, "mine: Small, 1 month more"],
      ] as const) {
        const { id, accountId } = only(made, name);
        const invoice = await one<{ id: string; token: string; lines: string }>(
          "SELECT * FROM invoices WHERE resource_id = ?",
          id,
        );
        expect(invoice).toMatchObject({
          account_id: accountId,
          kind: "renewal",
          status: "unpaid",
          amount_cents: cents,
          currency: "eur",
          term_months: months,
          pack_id: packId,
          period_end: at(3, 5),
          created_at: now.getTime(),
          due_at: at(3, 5),
          token: expect.stringMatching(/^inv_.{40}/),
        });
        expect(JSON.parse(invoice?.lines ?? "")).toEqual([
          { description: `${kind === "sites" ? "Site" : "Database"} ${line}`, amountCents: cents },
        ]);
        const mail = await one<{ text: string }>("SELECT * FROM mails WHERE id = ?", `issued:${invoice?.id}`);
        expect(mail).toMatchObject({ account_id: accountId, subject: "Renew mine by 2026-03-13" });
        expect(mail?.text).toContain(`Your ${word} mine`);
        expect(mail?.text).toContain(`${(cents / 100).toFixed(2)} EUR`);
        expect(mail?.text).toContain(`${siteUrl}/invoice/${invoice?.token}`);
      }
      // What runs is not disturbed.
      expect([hints, await rows("SELECT * FROM jobs")]).toEqual([[], []]);
    });

    it("replaces a change that nobody paid for, with what was reserved for it", async () => {
      const row = { paid_until: at(7), next_pack_id: packIds.large };
      const made = await make(
        kind,
        { row },
        {
          unpaid: { beside: (one) => [renewal(one, { kind: "change", pack_id: packIds.large })] },
          chosen: {},
          void: { beside: (one) => [renewal(one, { kind: "change", status: "void" })] },
          "not due": {
            row: { paid_until: at(30) },
            beside: (one) => [renewal(one, { kind: "change", pack_id: packIds.large })],
          },
        },
      );
      await issueRenewals(listening().ctx);
      const found = await rows(
        `SELECT r.next_pack_id, i.pack_id, i.amount_cents FROM ${kind} r JOIN invoices i ON i.resource_id = r.id AND i.kind = 'renewal'
          WHERE r.id IN (?, ?, ?) ORDER BY i.amount_cents`,
        made.unpaid.id,
        made.chosen.id,
        made.void.id,
      );
      expect(found).toEqual([
        { next_pack_id: null, pack_id: packIds.small, amount_cents: 1000 },
        { next_pack_id: packIds.large, pack_id: packIds.large, amount_cents: 5000 },
        { next_pack_id: packIds.large, pack_id: packIds.large, amount_cents: 5000 },
      ]);
    });

    it("is not issued, nor anything void, where the resource has changed since", async () => {
      const cases = {
        "another end": { paid_until: at(6) },
        "paid for": { paid_until: at(40) },
        "another pack": { next_pack_id: null, pack_id: packIds.large },
        "other months": { next_billing_term: 12 },
        deleting: { status: "DELETING" },
      };
      for (const [name, change] of Object.entries(cases)) {
        const row = { paid_until: at(7), status: "STOPPED" };
        const made = await make(kind, { row }, { [name]: {} });
        const id = made[name]?.id ?? "";
        await issueRenewals(interrupted(listening().ctx, update(kind, id, change)));
        expect([name, await rows("SELECT id FROM invoices"), await rows("SELECT id FROM mails")]).toEqual([
          name,
          [],
          [],
        ]);
        await write(update(kind, id, { status: "DELETING" }));
      }
      // A request that was about an earlier end changes nothing, whatever else is due.
      for (const status of ["RUNNING", "SUSPENDED"]) {
        const made = await make(
          kind,
          { row: { paid_until: at(20), next_pack_id: packIds.large, host_id: hostId, status } },
          {
            asked: { beside: (one) => [renewal(one, { kind: "change", pack_id: packIds.large })] },
            due: { row: { paid_until: at(7), status: "RUNNING" } },
          },
        );
        const { id, accountId, name } = made.asked;
        const before = await everything(kind, id);
        const stale = { id, accountId, name, status, hostId: null, paidUntil: at(7), suspendedAt: null };
        await issueRenewal(listening().ctx, kind, stale);
        expect(await everything(kind, id)).toEqual(before);
      }
    });

    it("of one resource that fails holds up no other", async () => {
      const made = await make(
        kind,
        { row: { paid_until: at(5) } },
        { first: { row: { paid_until: at(1), pack_id: "pack_gone" } }, second: {} },
      );
      await issueRenewals(listening().ctx);
      expect(await named(made, "SELECT resource_id AS id FROM invoices")).toEqual(["second"]);
    });
  });

  describe("suspension", () => {
    const overdue: Case = {
      row: { paid_until: at(-7) },
      beside: (made) => [renewal(made, { created_at: at(-7) })],
    };
    const billed = (more: object, status?: string) => ({
      beside: (made: Made) =>
        status === undefined
          ? [renewal(made, { created_at: at(-7), ...more })]
          : paying(made, status, { created_at: at(-7), ...more }),
    });

    it("comes seven days after the end, and after the invoice, unless a payment is at the bank", async () => {
      const cases: Cases = {
        "seven days after both": {},
        "a millisecond before seven days": { row: { paid_until: at(-7, 1) }, is: false },
        "billed a millisecond later": { ...billed({ created_at: at(-7, 1) }), is: false },
        "not billed": { beside: () => [], is: false },
        paid: { ...billed({ status: "paid" }), is: false },
        "billed and void": { ...billed({ status: "void" }), is: false },
        "billed for a change": { ...billed({ kind: "change" }), is: false },
        deploying: { row: { status: "DEPLOYING" }, is: kind === "sites" },
        stopped: { row: { status: "STOPPED" } },
        failed: { row: { status: "FAILED" } },
        provisioning: { row: { status: "PROVISIONING" }, is: false },
        "never paid": { row: { status: "PENDING" }, is: false },
        "suspended before": { row: { status: "SUSPENDED", suspended_at: at(-1) }, is: false },
        "being deleted": { row: { status: "DELETING" }, is: false },
        "with a payment at the bank": { ...billed({}, "processing"), is: false },
        "with a payment page open": billed({}, "open"),
        "with a payment that failed": billed({}, "failed"),
        "with a payment of a change at the bank": {
          beside: (made) => [
            renewal(made, { created_at: at(-7) }),
            ...paying(made, "processing", { kind: "change", status: "void" }),
          ],
        },
      };
      const made = await make(kind, overdue, cases);
      for (let round = 0; round < 2; round++) await suspendOverdue(listening().ctx);
      expect(
        await named(
          made,
          `SELECT id FROM ${kind} WHERE status = 'SUSPENDED' AND suspended_at = ? AND updated_at = ?`,
          now.getTime(),
          now.getTime(),
        ),
      ).toEqual(yes(cases));
      expect(
        await named(
          made,
          "SELECT substr(id, 11, instr(substr(id, 11), ':') - 1) AS id FROM mails WHERE id LIKE 'suspended:%'",
        ),
      ).toEqual(yes(cases));
      expect(await named(made, "SELECT resource_id AS id FROM activity")).toEqual(yes(cases));
      expect(await rows("SELECT id FROM activity")).toHaveLength(yes(cases).length);
    });

    it("stops what runs, tells its owner with the invoice, and is on record", async () => {
      const made = await make(
        kind,
        { ...overdue, row: { ...overdue.row, host_id: hostId, name: "mine" } },
        { due: {}, fine: { row: { paid_until: at(9) } }, homeless: { row: { host_id: null } } },
      );
      const { ctx, woken } = listening();
      await suspendOverdue(ctx);
      const { id, accountId } = made.due;
      const stop = kind === "sites" ? "site.stop" : "database.stop";
      expect(await jobsOf(id)).toEqual([
        { kind: stop, status: "QUEUED", host_id: hostId, account_id: accountId },
      ]);
      expect(await rows("SELECT kind FROM jobs")).toHaveLength(1);
      expect(new Set(woken())).toEqual(new Set([hostId, null]));
      const invoice = await one<{ token: string }>("SELECT token FROM invoices WHERE resource_id = ?", id);
      const mail = await one<{ text: string }>(
        "SELECT * FROM mails WHERE id = ?",
        `suspended:${id}:${at(-7)}`,
      );
      expect(mail).toMatchObject({
        account_id: accountId,
        subject: "mine is suspended",
        created_at: now.getTime(),
      });
      expect(mail?.text).toContain(`Your ${word} mine was paid for until 2026-03-03`);
      expect(mail?.text).toContain(`${siteUrl}/invoice/${invoice?.token}`);
      expect(await one("SELECT * FROM activity WHERE resource_id = ?", id)).toMatchObject({
        account_id: accountId,
        actor: "system",
        operation: kind === "sites" ? "suspendSite" : "suspendDatabase",
        outcome: "done",
      });
      expect(await one(`SELECT status, wanted FROM ${kind} WHERE id = ?`, id)).toEqual({
        status: "SUSPENDED",
        wanted: "RUNNING",
      });
    });

    it("changes nothing where the payment arrives in the same moment", async () => {
      const made = await make(
        kind,
        { ...overdue, row: { ...overdue.row, host_id: hostId } },
        { due: { beside: (one) => [...(overdue.beside?.(one) ?? []), ...workOf(one.id)] } },
      );
      const { id } = made.due;
      const pay = update(kind, id, { paid_until: at(23) });
      await write(pay);
      const before = await everything(kind, id);
      await write(update(kind, id, { paid_until: at(-7) }));
      await suspendOverdue(interrupted(listening().ctx, pay));
      expect(await everything(kind, id)).toEqual(before);
    });

    it("of an account is of all that is its own, of no other's, and by no mail", async () => {
      const account = { suspended_at: at(-1) };
      const cases: Cases = {
        running: { account },
        stopped: { account, row: { status: "STOPPED" } },
        failed: { account, row: { status: "FAILED" } },
        "never paid": { account, row: { status: "PENDING" }, is: false },
        "being deleted": { account, row: { status: "DELETING" }, is: false },
        released: { account: { released_at: at(-1) }, is: false },
        another: { is: false },
      };
      const made = await make(kind, { row: { host_id: hostId } }, cases);
      await suspendOfAccounts(listening().ctx, only(made, "stopped").accountId);
      const suspended = () => named(made, `SELECT id FROM ${kind} WHERE status = 'SUSPENDED'`);
      expect(await suspended()).toEqual(["stopped"]);
      const { ctx, woken } = listening();
      await suspendOfAccounts(ctx);
      expect(woken()).toEqual([hostId, hostId]);
      expect(await suspended()).toEqual(yes(cases));
      expect(await named(made, "SELECT lane AS id FROM jobs")).toEqual(yes(cases));
      expect(await rows("SELECT id FROM mails")).toEqual([]);
    });
  });

  it("what was suspended with its account starts again with it, if its term or its grace still runs", async () => {
    const cases: Cases = {
      released: {},
      "released in the moment of its suspension": { row: { suspended_at: at(-1) } },
      "released before its suspension": { row: { suspended_at: at(-1, 1) }, is: false },
      "suspended again": { account: { suspended_at: at(0) }, is: false },
      "never released": { account: { released_at: null }, is: false },
      "in its last moment of grace": { row: { paid_until: at(-7, 1) } },
      "over its grace": { row: { paid_until: at(-7) }, is: false },
      running: { row: { status: "RUNNING" }, is: false },
      "being deleted": { row: { status: "DELETING" }, is: false },
    };
    const common = {
      row: { status: "SUSPENDED", suspended_at: at(-3), host_id: hostId },
      account: { released_at: at(-1) },
    };
    const made = await make(kind, common, cases);
    const resumed = () =>
      named(made, `SELECT id FROM ${kind} WHERE suspended_at IS NULL AND updated_at = ?`, now.getTime());
    const first = only(made, "in its last moment of grace");
    const { ctx, woken } = listening();
    await resumeReleased(ctx, first.accountId);
    expect([await resumed(), woken()]).toEqual([["in its last moment of grace"], [hostId]]);
    for (const count of [yes(cases).length - 1, 0]) {
      const again = listening();
      await resumeReleased(again.ctx);
      expect(again.woken()).toEqual(Array.from({ length: count }, () => hostId));
    }
    expect(await resumed()).toEqual(yes(cases));
    const status = kind === "sites" ? "DEPLOYING" : "STOPPED";
    expect(await named(made, `SELECT id FROM ${kind} WHERE status = ?`, status)).toEqual(yes(cases));
    expect(await named(made, "SELECT lane AS id FROM jobs WHERE kind = ?", `${word}.start`)).toEqual(
      yes(cases),
    );
    expect(await rows("SELECT id FROM jobs")).toHaveLength(yes(cases).length);
  });

  it("what is suspended again in the moment of its release stays as it is", async () => {
    const made = await make(
      kind,
      {
        row: { status: "SUSPENDED", suspended_at: at(-3), host_id: hostId },
        account: { released_at: at(-1) },
      },
      { due: {} },
    );
    const { id, accountId } = made.due;
    const before = await everything(kind, id);
    await resumeReleased(
      interrupted(listening().ctx, update("accounts", accountId, { suspended_at: at(0) })),
    );
    expect(await everything(kind, id)).toEqual(before);
  });

  describe("a reminder", () => {
    it("comes once at the end of each term, while it is in service", async () => {
      const cases: Cases = {
        "at its end": {},
        "a millisecond before": { row: { paid_until: at(0, 1) }, is: false },
        failed: { row: { status: "FAILED" } },
        suspended: { row: { status: "SUSPENDED" }, is: false },
        "never paid": { row: { status: "PENDING" }, is: false },
        "being deleted": { row: { status: "DELETING" }, is: false },
        "told of an earlier end": { beside: ({ id }) => [mail(`ended:${id}:${at(-30)}`)] },
        "told before": { beside: ({ id }) => [mail(`ended:${id}:${at(0)}`)], is: false },
      };
      const made = await make(kind, { row: { paid_until: at(0) } }, cases);
      for (let round = 0; round < 2; round++) await remindOwners(listening().ctx);
      expect(
        await named(
          made,
          `SELECT r.id FROM ${kind} r JOIN mails m ON m.id = 'ended:' || r.id || ':${at(0)}' WHERE m.created_at = ?`,
          now.getTime(),
        ),
      ).toEqual(yes(cases));
      expect(await rows("SELECT id FROM mails WHERE created_at = ?", now.getTime())).toHaveLength(
        yes(cases).length,
      );
    });

    it("warns once a week before a deletion, of what an account has not been suspended with", async () => {
      const cases: Cases = {
        "after 23 days": {},
        "a millisecond before": { row: { suspended_at: at(-23, 1) }, is: false },
        "with its account": { account: { suspended_at: at(-30) }, is: false },
        "running again": { row: { status: "RUNNING" }, is: false },
        "warned in an earlier suspension": { beside: ({ id }) => [mail(`deletion:${id}:${at(-200)}`)] },
        "warned before": { beside: ({ id }) => [mail(`deletion:${id}:${at(-23)}`)], is: false },
      };
      const made = await make(kind, { row: { status: "SUSPENDED", suspended_at: at(-23) } }, cases);
      for (let round = 0; round < 2; round++) await remindOwners(listening().ctx);
      expect(
        await named(
          made,
          `SELECT r.id FROM ${kind} r JOIN mails m ON m.id = 'deletion:' || r.id || ':${at(-23)}' WHERE m.created_at = ?`,
          now.getTime(),
        ),
      ).toEqual(yes(cases));
      expect(
        await rows("SELECT id FROM mails WHERE id LIKE 'deletion:%' AND created_at = ?", now.getTime()),
      ).toHaveLength(yes(cases).length);
    });

    it("says what of and where to pay, with the invoice that can be paid", async () => {
      const row = { name: "mine", paid_until: at(-2) };
      const beside = (one: Made) => [
        renewal(one, { status: "void", token: `void-${one.id}`, period_end: at(-3) }),
        renewal(one, { status: "paid", token: `paid-${one.id}`, period_end: at(-5) }),
        renewal(one, { token: `open-${one.id}` }),
        renewal({ ...one, id: newId("site") as never }, { token: `other-${one.id}` }),
      ];
      const made = await make(
        kind,
        { row },
        {
          ended: { beside },
          suspended: { row: { status: "SUSPENDED", suspended_at: at(-23) }, beside },
          unbilled: { beside: (one) => [renewal(one, { kind: "change" })] },
        },
      );
      await remindOwners(listening().ctx);
      const told = (name: keyof typeof made, occasion: string) =>
        one<{ subject: string; text: string; account_id: string }>(
          "SELECT * FROM mails WHERE id LIKE ?",
          `${occasion}:${made[name].id}:%`,
        );
      const ended = await told("ended", "ended");
      expect(ended?.account_id).toBe(made.ended.accountId);
      expect(ended?.subject).toBe("The term of mine has ended");
      expect(ended?.text).toContain(`Your ${word} mine was paid for until 2026-03-08`);
      expect(ended?.text).toContain(`\n${siteUrl}/invoice/open-${made.ended.id}`);
      const warned = await told("suspended", "deletion");
      expect(warned?.subject).toBe("mine will be deleted in 7 days");
      expect(warned?.text).toContain(`\n${siteUrl}/invoice/open-${made.suspended.id}`);
      expect((await told("unbilled", "ended"))?.text).not.toContain("http");
    });

    it("says until when it runs: seven days from its end, or from its invoice if that came later", async () => {
      const issued = (days: number) => (made: Made) => [renewal(made, { created_at: at(days) })];
      const cases = {
        "reminded in time": { row: { paid_until: at(0) }, beside: issued(-7), until: "2026-03-17" },
        "reminded after an outage": { row: { paid_until: at(-6) }, beside: issued(-13), until: "2026-03-11" },
        "billed after an outage": { row: { paid_until: at(-6) }, beside: issued(-1), until: "2026-03-16" },
        "not billed yet": { row: { paid_until: at(-6) }, beside: () => [], until: "2026-03-17" },
      };
      const made = await make(kind, {}, cases);
      await remindOwners(listening().ctx);
      for (const [name, { until }] of Object.entries(cases)) {
        const id = made[name as keyof typeof cases].id;
        const [told] = await rows<{ text: string }>(
          "SELECT text FROM mails WHERE id LIKE ?",
          `ended:${id}:%`,
        );
        expect([name, told?.text]).toEqual([
          name,
          expect.stringContaining(`It keeps running until ${until}.`),
        ]);
      }
    });

    it("does not come where the payment arrives in the same moment", async () => {
      const made = await make(
        kind,
        {},
        { ended: { row: { paid_until: at(-1) } }, other: { row: { paid_until: at(-1) } } },
      );
      const pay = update(kind, made.ended.id, { paid_until: at(30) });
      await remindOwners(interrupted(listening().ctx, pay));
      expect((await rows<{ id: string }>("SELECT id FROM mails")).map(({ id }) => id)).toEqual([
        `ended:${made.other.id}:${at(-1)}`,
      ]);
    });
  });

  describe("the deletion", () => {
    const suspended = { status: "SUSPENDED", suspended_at: at(-30), host_id: null };
    const warned = ({ id }: Made, sent: number | null = at(-7), created = at(-7), since = at(-30)) =>
      mail(`deletion:${id}:${since}`, { sent_at: sent, created_at: created });
    const common: Case = { row: suspended, beside: (one) => [warned(one)] };
    const withCheckout = (status: string, more: object = {}): Case => ({
      beside: (one) => [warned(one), ...paying(one, status, more)],
    });

    it("comes thirty days after the suspension and seven after the warning has left, unless a payment is at the bank", async () => {
      const cases: Cases = {
        "after both": {},
        "a millisecond before thirty days": {
          row: { suspended_at: at(-30, 1) },
          beside: (one) => [warned(one, at(-7), at(-7), at(-30, 1))],
          is: false,
        },
        "warned a millisecond later": { beside: (one) => [warned(one, at(-7, 1))], is: false },
        "not warned": { beside: () => [], is: false },
        "with a warning that has not left": { beside: (one) => [warned(one, null)], is: false },
        "warned in an earlier suspension": {
          beside: (one) => [warned(one, at(-90), at(-90), at(-120))],
          is: false,
        },
        "with its account": { account: { suspended_at: at(-1) }, is: false },
        "running again": { row: { status: "RUNNING" }, is: false },
        "with a payment at the bank": { ...withCheckout("processing"), is: false },
        "with a payment page open": withCheckout("open"),
        "with a payment that failed": withCheckout("failed"),
        "with a payment of a change at the bank": withCheckout("processing", {
          kind: "change",
          status: "void",
        }),
      };
      const made = await make(kind, common, cases);
      const before = await rows(`SELECT id FROM ${kind}`);
      await deleteExpired(listening().ctx);
      // No host has any of it, so the record goes at once.
      const kept = new Set((await rows<{ id: string }>(`SELECT id FROM ${kind}`)).map(({ id }) => id));
      expect(before).toHaveLength(Object.keys(cases).length);
      expect(
        Object.keys(cases)
          .filter((name) => !kept.has(made[name]?.id as never))
          .toSorted(),
      ).toEqual(yes(cases));
    });

    it("is done as by DELETE, on the host, with the invoice void", async () => {
      const made = await make(
        kind,
        { row: { ...suspended, host_id: hostId }, beside: (one) => [warned(one), renewal(one)] },
        { due: {}, later: { row: { suspended_at: at(-29) } } },
      );
      const { ctx, woken } = listening();
      await deleteExpired(ctx);
      expect(await rows(`SELECT id FROM ${kind} WHERE status = 'DELETING'`)).toEqual([{ id: made.due.id }]);
      expect((await jobsOf(made.due.id)).at(-1)).toMatchObject({ kind: `${word}.delete`, host_id: hostId });
      expect(await named(made, "SELECT resource_id AS id FROM invoices WHERE status = 'void'")).toEqual([
        "due",
      ]);
      expect(await jobsOf(made.later.id)).toEqual([]);
      expect(woken()).toEqual([hostId]);
    });

    it("does not begin where a payment arrives in the same moment", async () => {
      const made = await make(kind, common, { due: {}, other: {} });
      await deleteExpired(
        interrupted(listening().ctx, update(kind, made.due.id, { status: "RUNNING", suspended_at: null })),
      );
      expect(await rows(`SELECT id, status FROM ${kind}`)).toEqual([{ id: made.due.id, status: "RUNNING" }]);
    });

    it("that waits for a mail service is shown to operators, once per suspension", async () => {
      const reference = (id: string, since = at(-30)) => `${id}:${since}`;
      const flag = (id: string, reason: string, since?: number) =>
        insert("payment_flags", {
          id: newId("flag"),
          reason,
          reference: reference(id, since),
          created_at: 0,
        });
      const cases: Cases = {
        "not sent for a week": {},
        "written a millisecond later": { beside: (one) => [warned(one, null, at(-7, 1))], is: false },
        sent: { beside: (one) => [warned(one, at(-6))], is: false },
        "no mail": { beside: () => [], is: false },
        "a millisecond before thirty days": {
          row: { suspended_at: at(-30, 1) },
          beside: (one) => [warned(one, null, at(-7), at(-30, 1))],
          is: false,
        },
        "running again": { row: { status: "RUNNING" }, is: false },
        "shown before": { beside: (one) => [warned(one, null), flag(one.id, "owner_not_warned")], is: false },
        "shown in an earlier suspension": {
          beside: (one) => [warned(one, null), flag(one.id, "owner_not_warned", at(-99))],
        },
        "shown for something else": { beside: (one) => [warned(one, null), flag(one.id, "paid_twice")] },
      };
      const made = await make(kind, { row: suspended, beside: (one) => [warned(one, null)] }, cases);
      for (let round = 0; round < 2; round++) await deleteExpired(listening().ctx);
      const flags = await rows(
        "SELECT reason, reference, invoice_id, amount_cents, currency FROM payment_flags WHERE created_at = ? ORDER BY reference",
        now.getTime(),
      );
      expect(flags).toEqual(
        yes(cases)
          .map((name) => ({
            reason: "owner_not_warned",
            reference: reference(made[name]?.id ?? ""),
            invoice_id: null,
            amount_cents: null,
            currency: null,
          }))
          .toSorted((a, b) => (a.reference < b.reference ? -1 : 1)),
      );
      expect(await rows(`SELECT id FROM ${kind}`)).toHaveLength(Object.keys(cases).length);
    });
  });

  describe("another pack", () => {
    const chosen = { next_pack_id: packIds.large, next_pack_at: at(0) };

    it("that is paid for comes when its term begins, with a restart of what runs", async () => {
      const cases: Cases = {
        "when its term begins": {},
        "a millisecond before": { row: { next_pack_at: at(0, 1) }, is: false },
        "not before it is paid for": { row: { next_pack_at: null }, is: false },
        "being deleted": { row: { status: "DELETING" }, is: false },
        stopped: { row: { status: "STOPPED" } },
        suspended: { row: { status: "SUSPENDED" } },
        "to be stopped": { row: { wanted: "STOPPED" } },
        busy: { beside: ({ id }) => [jobRow(kind, id, { kind: `${word}.restart`, status: "LEASED" })] },
      };
      const made = await make(kind, { row: { ...chosen, host_id: hostId } }, cases);
      const { ctx, woken } = listening();
      await changeDue(ctx);
      const applied = `SELECT id FROM ${kind} WHERE pack_id = ? AND pack_changed_at = ? AND next_pack_id IS NULL
        AND next_pack_at IS NULL AND updated_at = ?`;
      expect(await named(made, applied, packIds.large, now.getTime(), now.getTime())).toEqual(yes(cases));
      expect(await named(made, "SELECT lane AS id FROM jobs WHERE status = 'QUEUED'")).toEqual([
        "when its term begins",
      ]);
      expect(await jobsOf(only(made, "when its term begins").id)).toMatchObject([
        { kind: `${word}.restart`, host_id: hostId },
      ]);
      expect(woken()).toEqual(yes(cases).map(() => null));
    });

    it("is not applied where it was given up in the same moment", async () => {
      const made = await make(kind, { row: { ...chosen, host_id: hostId } }, { due: {} });
      const change = { next_pack_id: null, next_pack_at: null };
      await changeDue(interrupted(listening().ctx, update(kind, made.due.id, change)));
      expect(await one(`SELECT pack_id, pack_changed_at FROM ${kind} WHERE id = ?`, made.due.id)).toEqual({
        pack_id: packIds.small,
        pack_changed_at: null,
      });
      expect(await jobsOf(made.due.id)).toEqual([]);
    });

    it("is asked for again, on its host, until the containers have it", async () => {
      const failed = (finished: number) => ({
        beside: ({ id }: Made) => [
          jobRow(kind, id, {
            kind: `${word}.restart`,
            status: "FAILED",
            created_at: at(0),
            finished_at: finished,
          }),
        ],
      });
      const cases: Cases = {
        behind: {},
        "failed a moment ago": { ...failed(minutes(-9)), is: false },
        "failed some time ago": failed(minutes(-10)),
        "up to date": { row: { pack_changed_at: null }, is: false },
        stopped: { row: { status: "STOPPED" }, is: false },
      };
      const made = await make(kind, { row: { pack_changed_at: at(-1), host_id: hostId } }, cases);
      const { ctx, woken } = listening();
      await changeDue(ctx);
      expect(
        await named(
          made,
          "SELECT lane AS id FROM jobs WHERE status = 'QUEUED' AND kind = ?",
          `${word}.restart`,
        ),
      ).toEqual(yes(cases));
      expect(woken()).toEqual([hostId, hostId]);
    });
  });

  it("a suspended one is stopped until it is, and no sooner again than ten minutes after a failure", async () => {
    const stop = `${word}.stop`;
    const stopped = (more: object, job = stop): Case => ({
      beside: ({ id }) => [jobRow(kind, id, { kind: job, created_at: at(-2), finished_at: at(-2), ...more })],
    });
    const cases: Cases = {
      "never stopped": {},
      "stopped since": { ...stopped({}), is: false },
      "stopped in that moment": { ...stopped({ created_at: at(-3) }), is: false },
      "stopped before": stopped({ created_at: at(-3, -1) }),
      "something else done since": stopped({}, `${word}.start`),
      "failed nine minutes ago": { ...stopped({ status: "FAILED", finished_at: minutes(-9) }), is: false },
      "failed ten minutes ago": stopped({ status: "FAILED", finished_at: minutes(-10) }),
      "cancelled a minute ago": stopped({ status: "CANCELLED", finished_at: minutes(-1) }),
      waiting: { ...stopped({ status: "QUEUED" }), is: false },
      "being worked on": { ...stopped({ status: "LEASED" }, `${word}.start`), is: false },
      "on no host": { row: { host_id: null }, is: false },
      running: { row: { status: "RUNNING" }, is: false },
      ...(kind === "sites" && {
        "serving though stopped": { ...stopped({}), row: { serving: 1 } },
        "serving and busy": { ...stopped({ status: "LEASED" }), row: { serving: 1 }, is: false },
      }),
    };
    const row = {
      status: "SUSPENDED",
      suspended_at: at(-3),
      host_id: hostId,
      ...(kind === "sites" && { serving: 0 }),
    };
    const made = await make(kind, { row }, cases);
    const { ctx, woken } = listening();
    await reconcileSuspended(ctx);
    expect(
      await named(
        made,
        "SELECT lane AS id FROM jobs WHERE status = 'QUEUED' AND kind = ? AND created_at = ?",
        stop,
        now.getTime(),
      ),
    ).toEqual(yes(cases));
    expect(woken()).toEqual(yes(cases).map(() => hostId));
    await reconcileSuspended(listening().ctx);
    expect(await rows("SELECT id FROM jobs WHERE created_at = ?", now.getTime())).toHaveLength(
      yes(cases).length,
    );
  });

  it("a suspended one that is paid in the moment in which it would be stopped is not", async () => {
    const row = { status: "SUSPENDED", suspended_at: at(-3), host_id: hostId };
    const made = await make(kind, { row }, { due: {} });
    await reconcileSuspended(interrupted(listening().ctx, update(kind, made.due.id, { status: "RUNNING" })));
    expect(await jobsOf(made.due.id)).toEqual([]);
  });

  it("each step is taken once by two timers at the same moment", async () => {
    const stopped = { wanted: "STOPPED" };
    const resumed = { account: { released_at: at(-1) } };
    const suspended = { status: "SUSPENDED", suspended_at: at(-3) };
    const next = { next_pack_id: packIds.large, next_pack_at: at(0) };
    const made = await make(
      kind,
      { row: { host_id: hostId } },
      {
        released: { ...resumed, row: suspended },
        "released and stopped": { ...resumed, row: { ...suspended, ...stopped } },
        "released and new": {
          ...resumed,
          row: { ...suspended, ...(kind === "sites" ? { current_deployment_id: null } : { version: null }) },
        },
        changed: { row: next },
        "changed and stopped": {
          row: {
            ...next,
            ...stopped,
            status: "STOPPED",
            ...(kind === "sites" && { move_host_id: "host_other" }),
          },
        },
        overdue: { row: { paid_until: at(-7) }, beside: (one) => [renewal(one, { created_at: at(-7) })] },
        "of a suspended account": { account: { suspended_at: at(-1) } },
      },
    );
    for (const step of [resumeReleased, changeDue, suspendOverdue, (ctx: Ctx) => suspendOfAccounts(ctx)])
      await step(interrupted(listening().ctx, () => step(listening().ctx)));
    const found: Record<string, unknown[]> = {};
    for (const [name, { id }] of Object.entries(made))
      found[name] = (await jobsOf(id)).map((job) => job["kind"]);
    expect(found).toEqual({
      released: [`${word}.start`],
      "released and stopped": kind === "sites" ? ["site.stop"] : [],
      "released and new": [kind === "sites" ? "site.deploy" : "database.provision"],
      changed: [`${word}.restart`],
      "changed and stopped": kind === "sites" ? ["site.deploy", "site.stop"] : [],
      overdue: [`${word}.stop`],
      "of a suspended account": [`${word}.stop`],
    });
    expect(await rows("SELECT id FROM activity")).toHaveLength(2);
  });

  it("what is of the other kind is left alone", async () => {
    // One of each step's, which a step of this kind would act on by its id.
    const made = await make(others[kind], { row: { paid_until: at(30) } }, { other: {} });
    const before = await everything(others[kind], made.other.id);
    const { ctx } = listening();
    for (const step of [issueRenewals, suspendOverdue, suspendOfAccounts, resumeReleased, remindOwners])
      await step(ctx);
    for (const step of [deleteExpired, changeDue, reconcileSuspended]) await step(ctx);
    expect(await everything(others[kind], made.other.id)).toEqual(before);
  });
});

const mail = (id: string, more: object = {}) =>
  insert("mails", {
    id,
    account_id: "acc",
    subject: "",
    text: "",
    created_at: 0,
    try_at: 0,
    sent_at: 0,
    ...more,
  });

/** Of a site: what waits and what runs. */
const workOf = (id: string) => {
  const deployment = (status: string, number: number) => {
    const deploymentId = `dep_${status}_${id}`;
    return [
      insert("deployments", {
        id: deploymentId,
        site_id: id,
        account_id: "acc",
        number,
        status,
        trigger: "api",
        created_at: 0,
      }),
      jobRow("sites", id, {
        id: `job_${status}_${id}`,
        kind: "site.deploy",
        deployment_id: deploymentId,
        status: status === "QUEUED" ? "QUEUED" : "LEASED",
        host_id: "host_of_work",
        attempt: 3,
      }),
    ];
  };
  const command = (status: string) => [
    insert("commands", {
      id: `cmd_${status}_${id}`,
      site_id: id,
      account_id: "acc",
      command: "true",
      timeout_seconds: 9,
      status,
      trigger: "api",
      created_at: 0,
    }),
    jobRow("sites", id, {
      lane: `cmd_${status}_${id}`,
      kind: "site.command",
      status: status === "QUEUED" ? "QUEUED" : "LEASED",
      host_id: "host_of_work",
      command_id: `cmd_${status}_${id}`,
    }),
  ];
  return [
    ...deployment("QUEUED", 2),
    ...deployment("BUILDING", 1),
    ...command("QUEUED"),
    ...command("RUNNING"),
    jobRow("sites", id, { kind: "site.evict", lane: `${id}:evict`, status: "QUEUED" }),
    jobRow("sites", id, { kind: "site.restart", status: "DONE", finished_at: 1 }),
  ];
};

it("suspension ends what a site waits for and cancels what runs of it, and nothing of another site", async () => {
  const made = await make(
    "sites",
    { row: { paid_until: at(-7), host_id: hostId } },
    {
      due: { beside: (one) => [renewal(one, { created_at: at(-7) }), ...workOf(one.id)] },
      fine: { row: { paid_until: at(9) }, beside: (one) => workOf(one.id) },
    },
  );
  const stateOf = async (id: string) => ({
    jobs: await rows(
      "SELECT kind, status, cancel_requested AS cancels, finished_at FROM jobs WHERE site_id = ? ORDER BY seq",
      id,
    ),
    deployments: await rows("SELECT status FROM deployments WHERE site_id = ? ORDER BY number DESC", id),
    commands: await rows("SELECT status FROM commands WHERE site_id = ? ORDER BY id", id),
  });
  const before = await stateOf(made.fine.id);
  const { ctx, hints } = listening();
  const finished: string[] = [];
  ctx.logs = { ...ctx.logs, finish: (id) => void finished.push(id) };
  await suspendOverdue(ctx);
  expect(await stateOf(made.fine.id)).toEqual(before);
  const job = (kind: string, status: string, cancels = 0) => ({
    kind,
    status,
    cancels,
    finished_at: status === "CANCELLED" ? now.getTime() : null,
  });
  const { id } = made.due;
  expect(await stateOf(id)).toEqual({
    jobs: [
      job("site.deploy", "CANCELLED"),
      job("site.deploy", "LEASED", 1),
      job("site.command", "CANCELLED"),
      job("site.command", "LEASED", 1),
      job("site.evict", "QUEUED"),
      { ...job("site.restart", "DONE"), finished_at: 1 },
      job("site.stop", "QUEUED"),
    ],
    deployments: [{ status: "CANCELLED" }, { status: "BUILDING" }],
    commands: [{ status: "CANCELLED" }, { status: "RUNNING" }],
  });
  // Whoever follows a log sees its end, and the host is told to give up.
  expect(finished).toEqual([`dep_QUEUED_${id}`, `cmd_QUEUED_${id}`]);
  expect(hints).toContainEqual([
    "revise",
    "host_of_work",
    { jobId: `job_BUILDING_${id}`, attempt: 3 },
    "cancel",
  ]);
});

it("a suspended site's page links to its new renewal: it is stopped again on its host", async () => {
  const made = await make(
    "sites",
    { row: { status: "SUSPENDED", suspended_at: at(-9), paid_until: at(-16), host_id: hostId } },
    { due: {}, homeless: { row: { host_id: null } }, billed: { beside: (one) => [renewal(one)] } },
  );
  const { ctx, woken } = listening();
  await issueRenewals(ctx);
  expect(await rows("SELECT lane, kind, host_id FROM jobs")).toEqual([
    { lane: made.due.id, kind: "site.stop", host_id: hostId },
  ]);
  expect(woken()).toEqual([hostId]);
});

describe("what starts again with its account", () => {
  const common = { row: { status: "SUSPENDED", suspended_at: at(-3) }, account: { released_at: at(-1) } };

  it("is a site as its owner wanted it: from its image, by a deployment where it has no host or never ran", async () => {
    const stop = { wanted: "STOPPED" };
    const deployments = ({ id }: Made) => [
      insert("deployments", {
        id: `dep_${id}`,
        site_id: id,
        account_id: "acc",
        number: 7,
        status: "LIVE",
        trigger: "api",
        commit_sha: "c0ffee",
        image_digest: "sha256:1",
        run: "{}",
        build: "{}",
        created_at: 0,
      }),
    ];
    const made = await make(
      "sites",
      { ...common, beside: deployments },
      {
        running: { row: { host_id: hostId } },
        "without a host": {},
        "never deployed": { row: { host_id: hostId, current_deployment_id: null } },
        "never deployed, without a host": { row: { current_deployment_id: null } },
        stopped: { row: { host_id: hostId, ...stop } },
        "stopped without a host": { row: stop },
        "stopped and never deployed": { row: { host_id: hostId, ...stop, current_deployment_id: null } },
      },
    );
    await resumeReleased(listening().ctx);
    const found: Record<string, unknown> = {};
    for (const [name, { id }] of Object.entries(made)) {
      const row = await one<{ status: string }>("SELECT status FROM sites WHERE id = ?", id);
      const begun = await rows<{ trigger: string; commit_sha: string | null }>(
        "SELECT trigger, commit_sha FROM deployments WHERE site_id = ? AND status = 'QUEUED'",
        id,
      );
      const jobs = await jobsOf(id);
      found[name] = [
        row?.status,
        jobs.map((job) => [job["kind"], job["host_id"]]),
        begun.map(({ trigger, commit_sha }) => [trigger, commit_sha]),
      ];
    }
    expect(found).toEqual({
      running: ["DEPLOYING", [["site.start", hostId]], []],
      "without a host": ["DEPLOYING", [["site.deploy", null]], [["move", "c0ffee"]]],
      "never deployed": ["DEPLOYING", [["site.deploy", hostId]], [["renewal", null]]],
      "never deployed, without a host": ["DEPLOYING", [["site.deploy", null]], [["renewal", null]]],
      stopped: ["STOPPED", [["site.stop", hostId]], []],
      "stopped without a host": ["STOPPED", [], []],
      "stopped and never deployed": ["DEPLOYING", [["site.deploy", hostId]], [["renewal", null]]],
    });
  });

  it("has memory on its host again, or leaves it where there is none", async () => {
    const full = newId("host");
    await write(hostRow(full, 600));
    const made = await make(
      "sites",
      { ...common, row: { ...common.row, reserved: 0 } },
      {
        fits: { row: { host_id: hostId } },
        "does not fit": { row: { host_id: full } },
        stopped: { row: { host_id: hostId, wanted: "STOPPED" } },
        "not released": { row: { host_id: hostId }, account: { released_at: null } },
      },
    );
    await resumeReleased(listening().ctx);
    const placed = (name: keyof typeof made) =>
      one("SELECT host_id, leaving_host_id, reserved FROM sites WHERE id = ?", made[name].id);
    expect(await placed("fits")).toEqual({ host_id: hostId, leaving_host_id: null, reserved: 1 });
    expect(await placed("does not fit")).toEqual({ host_id: null, leaving_host_id: full, reserved: 0 });
    expect(await placed("stopped")).toEqual({ host_id: hostId, leaving_host_id: null, reserved: 0 });
    expect(await placed("not released")).toEqual({ host_id: hostId, leaving_host_id: null, reserved: 0 });
  });

  it("is a database as its owner wanted it: provisioned where it never was", async () => {
    const made = await make(
      "databases",
      { ...common, row: { ...common.row, host_id: hostId } },
      {
        running: {},
        stopped: { row: { wanted: "STOPPED" } },
        "never provisioned": { row: { version: null } },
        "never provisioned, and stopped": { row: { version: null, wanted: "STOPPED" } },
      },
    );
    await resumeReleased(listening().ctx);
    const found: Record<string, unknown> = {};
    for (const [name, { id }] of Object.entries(made))
      found[name] = [
        (await one<{ status: string }>("SELECT status FROM databases WHERE id = ?", id))?.status,
        (await jobsOf(id)).map(({ kind }) => kind),
      ];
    expect(found).toEqual({
      running: ["STOPPED", ["database.start"]],
      stopped: ["STOPPED", []],
      "never provisioned": ["PROVISIONING", ["database.provision"]],
      "never provisioned, and stopped": ["STOPPED", []],
    });
  });
});

it("a database that is started in the moment in which it would be is not started again", async () => {
  const made = await make("databases", { row: { status: "STOPPED", host_id: hostId } }, { due: {} });
  const start = update("databases", made.due.id, { status: "RUNNING" });
  await reconcileSuspended(interruptedAlone(listening().ctx, start));
  expect(await jobsOf(made.due.id)).toEqual([]);
});

it("a database that should run and is stopped is started, once it has a version and a host", async () => {
  const cases: Cases = {
    "to be started": {},
    "to be stopped": { row: { wanted: "STOPPED" }, is: false },
    running: { row: { status: "RUNNING" }, is: false },
    failed: { row: { status: "FAILED" }, is: false },
    "never provisioned": { row: { version: null }, is: false },
    "on no host": { row: { host_id: null }, is: false },
    busy: {
      beside: ({ id }) => [jobRow("databases", id, { kind: "database.backup", status: "QUEUED" })],
      is: false,
    },
    "busy before": {
      beside: ({ id }) => [jobRow("databases", id, { kind: "database.start", status: "FAILED" })],
    },
  };
  const made = await make("databases", { row: { status: "STOPPED", host_id: hostId } }, cases);
  const { ctx, woken } = listening();
  await reconcileSuspended(ctx);
  const started = () =>
    named(
      made,
      "SELECT lane AS id FROM jobs WHERE kind = 'database.start' AND status = 'QUEUED' AND host_id = ?",
      hostId,
    );
  expect(await started()).toEqual(yes(cases));
  expect(woken()).toEqual([hostId, hostId]);
  await reconcileSuspended(listening().ctx);
  expect(await rows("SELECT id FROM jobs WHERE kind = 'database.start' AND status = 'QUEUED'")).toHaveLength(
    2,
  );
});

describe("memory on another host that was reserved for a move", () => {
  it("is released unless the move is paid for, being paid, or going on", async () => {
    const billed =
      (status: string, more: object = {}) =>
      (made: Made) =>
        paying(made, status, { kind: "change", ...more });
    const next = { next_pack_id: packIds.large };
    const busy = (status: string) => ({
      beside: ({ id }: Made) => [jobRow("sites", id, { kind: "site.deploy", status })],
    });
    const cases: Cases = {
      "with no other pack": { row: { next_pack_id: null } },
      "with another pack that nobody pays": { row: next },
      "with a change that is being paid": { row: next, beside: billed("open"), is: false },
      "with a change that was given up": { beside: billed("open") },
      "with a renewal that is at the bank": {
        row: next,
        beside: billed("processing", { kind: "renewal" }),
        is: false,
      },
      "with a payment that was given up": { row: next, beside: billed("expired") },
      "with a void change": { row: next, beside: billed("open", { status: "void" }) },
      "with a first invoice": { row: next, beside: billed("open", { kind: "site" }) },
      "with a pack that is paid for": { row: { ...next, next_pack_at: at(3) }, is: false },
      moving: { ...busy("LEASED"), is: false },
      "about to move": { ...busy("QUEUED"), is: false },
      moved: busy("DONE"),
    };
    const made = await make("sites", { row: { host_id: hostId, move_host_id: "host_other" } }, cases);
    await changeDue(listening().ctx);
    expect(await named(made, "SELECT id FROM sites WHERE move_host_id IS NULL")).toEqual(yes(cases));
  });

  it("is used when the pack changes, by what runs or is stopped and has nothing else to do", async () => {
    const live = ({ id }: Made) =>
      insert("deployments", {
        id: `dep_${id}`,
        site_id: id,
        account_id: "acc",
        number: 1,
        status: "LIVE",
        trigger: "api",
        commit_sha: "c0ffee",
        run: "{}",
        build: "{}",
        created_at: 0,
      });
    const made = await make(
      "sites",
      {
        row: {
          host_id: hostId,
          move_host_id: "host_other",
          next_pack_id: packIds.large,
          next_pack_at: at(0),
        },
        beside: (one) => [live(one)],
      },
      {
        running: {},
        stopped: {
          row: { status: "STOPPED", wanted: "STOPPED" },
          // It was there before.
          beside: (one) => [
            live(one),
            jobRow("sites", one.id, { kind: "site.deploy", host_id: "host_other" }),
          ],
        },
        failed: { row: { status: "FAILED" } },
        busy: {
          beside: (one) => [live(one), jobRow("sites", one.id, { kind: "site.route", status: "LEASED" })],
        },
        "not moving": { row: { move_host_id: null } },
      },
    );
    await changeDue(listening().ctx);
    const found: Record<string, unknown> = {};
    for (const [name, { id }] of Object.entries(made)) {
      const site = await one("SELECT status, move_host_id, pack_id FROM sites WHERE id = ?", id);
      found[name] = [
        site?.["status"],
        site?.["move_host_id"],
        site?.["pack_id"],
        (await jobsOf(id))
          .filter(({ status }) => status !== "DONE")
          .map(({ kind, host_id }) => `${String(kind)} ${String(host_id)}`),
        (await rows("SELECT id FROM deployments WHERE site_id = ? AND trigger = 'move'", id)).length,
      ];
    }
    const deploy = "site.deploy host_other";
    expect(found).toEqual({
      running: ["DEPLOYING", "host_other", packIds.large, [deploy], 1],
      // The job that stops it follows it to its new host.
      stopped: ["DEPLOYING", "host_other", packIds.large, [deploy, `site.stop ${hostId}`], 1],
      failed: ["FAILED", null, packIds.large, [], 0],
      busy: ["RUNNING", "host_other", packIds.large, ["site.route null"], 0],
      "not moving": ["RUNNING", null, packIds.large, [`site.restart ${hostId}`], 0],
    });
    const deadlines = await rows(
      "SELECT DISTINCT deadline_at FROM jobs WHERE lane = ? AND status = 'QUEUED'",
      made.stopped.id,
    );
    expect(deadlines).toHaveLength(1);
  });
});
