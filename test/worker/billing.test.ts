import { describe, expect, it } from "vitest";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import { configOf } from "../../worker/config.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { holdCredits } from "../../worker/billing/credits/hold.ts";
import { spendHold } from "../../worker/billing/credits/post-hold.ts";
import { renewHold } from "../../worker/billing/credits/renew-hold.ts";
import { voidExpiredHolds, voidHold } from "../../worker/billing/credits/void-hold.ts";
import { invoiceById } from "../../worker/billing/invoices/by-id.ts";
import { openCheckout } from "../../worker/billing/payments/checkout.ts";
import { beginRefund } from "../../worker/billing/payments/refund.ts";
import { reconcileBilling } from "../../worker/cron.ts";
import { interruptedDatabase } from "./crashing-database.ts";
import { account, api, bindings, call, createSite, operator, pay, site, uniqueName } from "./service.ts";
import { buyCredits, credits, rows, smallPackage } from "./stripe-service.ts";

const dayMs = 86_400_000;
const later = (ms: number): Ctx => ({
  ...contextOf(bindings, { type: "system" }, () => undefined),
  now: () => new Date(Date.now() + ms),
});
const ctx = later(0);

/** An account with credits that were granted. */
async function rich(amount: number) {
  const key = await account();
  const [row] = await rows<{ id: `acc_${string}` }>("SELECT id FROM accounts ORDER BY id DESC LIMIT 1");
  const accountId = row?.id as `acc_${string}`;
  const granted = await api(await operator(), "POST", "/credits/grants", { accountId, amount });
  expect(granted.status).toBe(201);
  const hold = (id: string, held: number) =>
    holdCredits(ctx, { id, accountId, amount: held, expiresAt: new Date(Date.now() + 60_000) });
  return { key, accountId, hold };
}
const because = (reason: string) => ({ extra: { reason: expect.stringContaining(reason) } });
const spend = async (holdId: string, amount: number) => (await spendHold(ctx, holdId, amount)).isSpent;
const verified = async () => (await api(await operator(), "GET", "/ledger/verify")).body;

describe("credits", () => {
  it("are bought by the package and are there once the invoice is paid, once", async () => {
    const key = await account();
    expect(await credits(key)).toEqual({ balance: 0, transactions: [] });
    const { invoiceToken, invoiceId } = await buyCredits(key);
    expect((await credits(key)).balance).toBe(0);
    const paid = await Promise.all(Array.from({ length: 10 }, () => pay(invoiceToken)));
    for (const answer of paid)
      expect(await answer.json()).toMatchObject({ id: invoiceId, status: "paid", kind: "credits" });
    expect(await credits(key)).toEqual({
      balance: 500,
      transactions: [
        {
          id: expect.stringMatching(/^tx_/),
          type: "purchase",
          amount: 500,
          createdAt: expect.stringMatching(/Z$/),
        },
      ],
    });
  });

  it("are as many as the invoice promised, whatever the package has become meanwhile", async () => {
    const key = await account();
    const made = await api<{ id: string }>(await operator(), "POST", "/credits/packages", {
      name: "Trial",
      credits: 50,
      amountCents: 100,
    });
    const { invoiceToken } = await buyCredits(key, made.body.id);
    const path = `/credits/packages/${made.body.id}`;
    const change = { credits: 10, amountCents: 900, active: false };
    expect((await api(await operator(), "PATCH", path, change)).body).toMatchObject(change);
    expect(await (await pay(invoiceToken)).json()).toMatchObject({ amountCents: 100 });
    expect((await credits(key)).balance).toBe(50);
    expect((await api(key, "POST", "/credits/purchase", { packageId: made.body.id })).status).toBe(400);
    expect((await api(key, "POST", "/credits/purchase", { packageId: "cpk_none" })).status).toBe(400);
  });

  it("are bought no further while a hundred invoices for them are unpaid", async () => {
    const key = await account();
    const { invoiceId, invoiceToken } = await buyCredits(key);
    await bindings.DB.prepare(
      `WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
       INSERT INTO invoices (id, token, account_id, kind, status, amount_cents, currency, lines, created_at, due_at)
       SELECT id || i, token || i, account_id, kind, status, amount_cents, currency, lines, created_at, due_at
       FROM invoices, n WHERE id = ?`,
    )
      .bind(invoiceId)
      .run();
    const packageId = "cpk_001k0000000000000000000001";
    const refused = await api(key, "POST", "/credits/purchase", { packageId });
    expect([refused.status, refused.body["reason"]]).toEqual([409, expect.stringContaining("Pay one")]);
    await pay(invoiceToken);
    expect((await api(key, "POST", "/credits/purchase", { packageId })).status).toBe(201);
    // Other tests make the cron void all there are.
    await bindings.DB.prepare("DELETE FROM invoices WHERE id LIKE ? || '_%'").bind(invoiceId).run();
  });

  it("show the last 20 transactions, newest first", async () => {
    const { key, hold } = await rich(100);
    const many = uniqueName("many");
    for (let index = 1; index <= 25; index++) {
      await hold(`${many}-${index}`, 1);
      await spend(`${many}-${index}`, 1);
    }
    const { balance, transactions } = await credits(key);
    expect([balance, transactions.length]).toEqual([75, 20]);
    expect(transactions.every(({ type, amount }) => type === "chat" && amount === -1)).toBe(true);
    const ids = await rows<{ id: string }>("SELECT id FROM ledger_transfers ORDER BY seq DESC LIMIT 20");
    expect(transactions.map(({ id }) => id)).toEqual(ids.map(({ id }) => id));
  });

  it("are granted by operators only, to an account that exists", async () => {
    const { key, accountId } = await rich(5);
    expect((await api(key, "POST", "/credits/grants", { accountId, amount: 5 })).status).toBe(403);
    const key2 = await operator();
    for (const body of [
      { amount: 5 },
      { accountId, amount: 0 },
      { accountId, amount: 1.5 },
      { accountId, amount: -5 },
      { accountId, email: "a@example.com", amount: 5 },
      { accountId: "acc_none", amount: 5 },
    ])
      expect([body, (await api(key2, "POST", "/credits/grants", body)).status]).toEqual([body, 400]);
    expect((await credits(key)).balance).toBe(5);
  });
});

describe("the balance", () => {
  it("never goes below zero: of 50 at once that want all of it, one gets it", async () => {
    const { key, hold } = await rich(7);
    const race = uniqueName("race");
    const asked = await Promise.allSettled(
      Array.from({ length: 50 }, (_, index) => hold(`${race}-${index}`, 7)),
    );
    expect(asked.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const posted = await Promise.all(
      Array.from({ length: 150 }, (_, index) => spend(`${race}-${index % 50}`, 7)),
    );
    expect(posted.filter(Boolean)).toHaveLength(1);
    expect((await credits(key)).balance).toBe(0);
  });

  it("takes no more than is used of a hold, once; the rest is free again", async () => {
    const { key, hold } = await rich(10);
    const [used, more] = [uniqueName("used"), uniqueName("more")];
    await hold(used, 10);
    await hold(used, 10);
    await expect(hold(more, 1)).rejects.toMatchObject({ code: "payment_required", extra: { balance: 0 } });
    expect((await credits(key)).balance).toBe(10);
    await expect(spend(used, 11)).rejects.toThrow(/keeps 10/);
    expect([await spend(used, 3), await spend(used, 3), await voidHold(ctx, used)]).toEqual([
      true,
      false,
      false,
    ]);
    expect((await credits(key)).balance).toBe(7);
    await hold(more, 7);
    expect([await voidHold(ctx, more), await voidHold(ctx, more), await spend(more, 7)]).toEqual([
      true,
      false,
      false,
    ]);
    expect((await credits(key)).balance).toBe(7);
  });

  it("keeps for a hold what there is, where the least of it is free", async () => {
    const { accountId, hold } = await rich(10);
    await hold(uniqueName("first"), 6);
    const rest = (least: number) =>
      holdCredits(ctx, {
        id: uniqueName("rest"),
        accountId,
        amount: 9,
        least,
        expiresAt: later(60_000).now(),
      });
    await expect(rest(5)).rejects.toMatchObject({ extra: { balance: 4, needed: 5 } });
    expect(await rest(4)).toBe(4);
    await expect(rest(1)).rejects.toMatchObject({ extra: { balance: 0, needed: 1 } });
  });

  it("is held once under an id: for another account, for less, or where more was held, that is an error", async () => {
    const [{ accountId, hold }, other] = [await rich(10), await rich(10)];
    const id = uniqueName("once");
    await hold(id, 6);
    await expect(other.hold(id, 6)).rejects.toThrow(/another account or amount/);
    await expect(hold(id, 5)).rejects.toThrow(/another account or amount/);
    await expect(hold(id, 7)).rejects.toThrow(/another account or amount/);
    const atLeast = (least: number) =>
      holdCredits(ctx, { id, accountId, amount: 9, least, expiresAt: later(60_000).now() });
    expect(await atLeast(6)).toBe(6);
    await expect(atLeast(7)).rejects.toThrow(/another account or amount/);
    expect((await rows("SELECT id FROM ledger_holds WHERE id = ?", id)).length).toBe(1);
  });

  it("of the account are told after a hold is spent, what others hold included", async () => {
    const { hold } = await rich(10);
    const [spent, open] = [uniqueName("spent"), uniqueName("open")];
    await hold(spent, 4);
    await hold(open, 3);
    expect(await spendHold(ctx, spent, 2)).toEqual({ isSpent: true, balance: 8 });
    expect(await spendHold(ctx, spent, 2)).toEqual({ isSpent: false, balance: 8 });
  });

  it("gets back what a hold kept that nobody ended", async () => {
    const { hold } = await rich(4);
    const again = uniqueName("again");
    await hold(uniqueName("left"), 4);
    await voidExpiredHolds(ctx);
    await expect(hold(again, 4)).rejects.toThrow();
    await reconcileBilling(later(61_000));
    await hold(again, 4);
  });

  it("stays held for as long as the hold is renewed, which an ended one is not", async () => {
    const { hold } = await rich(4);
    const [kept, ended] = [uniqueName("kept"), uniqueName("ended")];
    await hold(kept, 3);
    await hold(ended, 1);
    const at = (ms: number) => later(ms).now();
    expect(await renewHold(ctx, kept, at(120_000))).toBe(true);
    await voidExpiredHolds(later(61_000));
    expect([await renewHold(ctx, ended, at(120_000)), await spend(ended, 1)]).toEqual([false, false]);
    expect([await spend(kept, 3), await renewHold(ctx, kept, at(120_000))]).toEqual([true, false]);
    await expect(hold(uniqueName("more"), 2)).rejects.toMatchObject({ extra: { balance: 1 } });
  });

  it("is guarded by the database itself", async () => {
    const { accountId } = await rich(3);
    const run = (query: string, ...values: unknown[]) =>
      bindings.DB.prepare(query)
        .bind(...values)
        .run();
    const insert =
      "INSERT INTO ledger_transfers (id, debit_id, credit_id, amount, type, reference, created_at) VALUES (?, ?, ?, ?, 'chat', ?, 0)";
    await expect(run(insert, "tx_a", accountId, "system:spent", 4, "a")).rejects.toThrow(/covered/);
    await expect(run(insert, "tx_b", accountId, "system:spent", 0, "b")).rejects.toThrow(/amount/);
    await expect(run(insert, "tx_c", accountId, "system:spent", 1.5, "c")).rejects.toThrow(/amount/);
    await expect(run(insert, "tx_d", accountId, accountId, 1, "d")).rejects.toThrow(/ends/);
    for (const query of [
      "UPDATE ledger_transfers SET amount = 1",
      "DELETE FROM ledger_transfers",
      "DELETE FROM ledger_accounts",
      "DELETE FROM ledger_holds",
    ])
      await expect(run(query)).rejects.toThrow(/append-only/);
    expect(await verified()).toMatchObject({ ok: true, problems: [] });
  });

  it("is held against its transfers: a verification finds what was tampered with", async () => {
    const { accountId } = await rich(3);
    await bindings.DB.prepare("UPDATE ledger_accounts SET balance = 4 WHERE id = ?").bind(accountId).run();
    expect(await verified()).toMatchObject({
      ok: false,
      problems: [`${accountId} has a balance of 4, but its transfers sum up to 3`],
    });
    await bindings.DB.prepare("UPDATE ledger_accounts SET balance = 3 WHERE id = ?").bind(accountId).run();
    const key = await account();
    const { invoiceId, invoiceToken } = await buyCredits(key);
    await pay(invoiceToken);
    await bindings.DB.prepare("UPDATE payments SET amount_cents = 499 WHERE invoice_id = ?")
      .bind(invoiceId)
      .run();
    expect(await verified()).toMatchObject({
      ok: false,
      problems: [expect.stringContaining(`not what invoice ${invoiceId} asks for`)],
    });
    await bindings.DB.prepare("UPDATE payments SET amount_cents = 500 WHERE invoice_id = ?")
      .bind(invoiceId)
      .run();
    expect(await verified()).toMatchObject({ ok: true });
  });
});

describe("a refund of credits", () => {
  it("takes back what is unspent, and is refused where something is spent, unless forced: then it is flagged", async () => {
    const { key, hold } = await rich(0 + 1);
    const { invoiceId, invoiceToken } = await buyCredits(key);
    await pay(invoiceToken);
    const spent = uniqueName("spent");
    await hold(spent, 101);
    await spend(spent, 101);
    const refund = async (body: object) =>
      api(await operator(), "POST", `/invoices/${invoiceId}/refund`, body);
    const refused = await refund({});
    expect([refused.status, refused.body["reason"]]).toEqual([
      409,
      expect.stringMatching(/^100 of the 500 credits are spent/),
    ]);
    expect((await credits(key)).balance).toBe(400);
    expect((await refund({ force: true })).body).toMatchObject({ status: "done", missingCredits: 100 });
    expect((await credits(key)).balance).toBe(0);
    expect(await rows("SELECT reason FROM payment_flags WHERE invoice_id = ?", invoiceId)).toEqual([
      { reason: "refund_of_spent_credits" },
    ]);
    expect(await verified()).toMatchObject({ ok: true });
  });

  /** The refund reads in two round trips, and begins in the third. */
  const interrupted = async (invoiceId: string, first: () => Promise<unknown>) => {
    const env = { ...bindings, DB: interruptedDatabase(bindings.DB, 2, first) };
    const row = await invoiceById(ctx, invoiceId);
    const actor = {
      type: "key",
      accountId: row.accountId,
      role: "operator",
      plan: "free",
      keyId: "key_1",
    } as const;
    await expect(
      beginRefund(
        contextOf(env, actor, () => undefined),
        row,
        false,
      ),
    ).rejects.toMatchObject(because("changed in the meantime"));
    expect(await rows("SELECT id FROM refunds WHERE invoice_id = ?", invoiceId)).toEqual([]);
  };

  it("does not begin if its credits are spent at the same moment", async () => {
    const { key, hold, accountId } = await rich(1);
    const { invoiceId, invoiceToken } = await buyCredits(key);
    await pay(invoiceToken);
    await interrupted(invoiceId, () => hold(uniqueName("spent"), 101));
    const open = await rows("SELECT amount FROM ledger_holds WHERE account_id = ?", accountId);
    expect(open).toEqual([{ amount: 101 }]);
  });

  it("does not begin if the invoice is refunded at the same moment", async () => {
    const { key, accountId } = await rich(500);
    const { invoiceId, invoiceToken } = await buyCredits(key);
    await pay(invoiceToken);
    await interrupted(invoiceId, () =>
      bindings.DB.prepare("UPDATE invoices SET status = 'refunded' WHERE id = ?").bind(invoiceId).run(),
    );
    expect(await rows("SELECT id FROM ledger_holds WHERE account_id = ?", accountId)).toEqual([]);
  });
});

it("no checkout begins of an invoice that is made void at the same moment", async () => {
  const { invoiceId } = await buyCredits(await account());
  const voided = async () =>
    expect((await api(await operator(), "POST", `/invoices/${invoiceId}/void`)).status).toBe(200);
  const env = { ...bindings, DB: interruptedDatabase(bindings.DB, 1, voided) };
  const paying = contextOf(env, { type: "system" }, () => undefined);
  await expect(openCheckout(paying, invoiceId as `invoice_${string}`)).rejects.toMatchObject(
    because("is void"),
  );
  expect(await rows("SELECT id FROM checkouts WHERE invoice_id = ?", invoiceId)).toEqual([]);
});

describe("packs", () => {
  it("are on offer cheapest first, of sites and databases alike", async () => {
    const { body } = await api<{ data: { kind: string; amountCents: number }[] }>(null, "GET", "/packs");
    const prices = body.data.map(({ amountCents }) => amountCents);
    expect(prices).toEqual(prices.toSorted((a, b) => a - b));
    expect(new Set(body.data.map(({ kind }) => kind))).toEqual(new Set(["site", "database"]));
  });

  it("are the operator's: prices by term are exact, inactive ones are not sold, and the cheapest is the default", async () => {
    const key = await operator();
    const made = await api<{ id: string }>(key, "POST", "/packs", {
      kind: "site",
      name: "Tiny",
      amountCents: 333,
      discounts: { "3": 10, "12": 33 },
      memoryMb: 128,
      cpuMilli: 250,
      diskGb: 1,
    });
    expect(made).toMatchObject({ status: 201, body: { active: true, pids: 512, currency: "usd" } });
    expect(made.body).toMatchObject({
      terms: [
        { months: 1, discountPercent: 0, amountCents: 333 },
        { months: 3, discountPercent: 10, amountCents: 899 },
        { months: 6, discountPercent: 0, amountCents: 1998 },
        { months: 12, discountPercent: 33, amountCents: 2677 },
        { months: 24, discountPercent: 0, amountCents: 7992 },
      ],
    });
    const owner = await account();
    const { siteId, invoiceId } = await createSite(owner, { billingTerm: 12 });
    expect((await site(owner, siteId)).packId).toBe(made.body.id);
    expect((await api(owner, "GET", `/invoices/${invoiceId}`)).body).toMatchObject({ amountCents: 2677 });
    const path = `/packs/${made.body.id}`;
    expect((await api(key, "PATCH", path, { active: false })).body).toMatchObject({ active: false });
    const listed = async (where: string, credential: string | null) =>
      (await api<{ data: { id: string }[] }>(credential, "GET", where)).body.data.map(({ id }) => id);
    expect(await listed("/packs", null)).not.toContain(made.body.id);
    expect(await listed("/packs/all", key)).toContain(made.body.id);
    const next = await createSite(owner);
    expect((await site(owner, next.siteId)).packId).toBe("pack_001k0000000000000000000001");
    const refused = await api(key, "PATCH", path, { amountCents: 50, discounts: { "3": 90 } });
    expect(refused).toMatchObject({ status: 400, body: { issues: [{ path: "discounts" }] } });
    expect((await api(key, "PATCH", path, {})).status).toBe(400);
    expect((await api(key, "PATCH", "/packs/pack_none", { active: true })).status).toBe(404);
  });

  it("and credit packages that come with the service are the operator's to change as well", async () => {
    const key = await operator();
    for (const path of ["/packs", "/credits/packages"]) {
      const { data } = (await api<{ data: { id: string; name: string }[] }>(key, "GET", `${path}/all`)).body;
      expect(data.length).toBeGreaterThan(2);
      for (const { id, name } of data) {
        const changed = await api(key, "PATCH", `${path}/${id}`, { name });
        expect([id, changed.status, changed.body["name"]]).toEqual([id, 200, name]);
      }
    }
  });

  it("and credit packages are listed without credentials", async () => {
    const { status, body } = await api<{ data: { id: string }[] }>(null, "GET", "/credits/packages");
    expect(status).toBe(200);
    expect(body.data[0]).toEqual({
      id: smallPackage,
      name: "Small",
      credits: 500,
      amountCents: 500,
      currency: "usd",
    });
  });
});

describe("an invoice", () => {
  const invoice = async (token: string) =>
    (await call(`/invoice/${token}`, { headers: { Accept: "application/json" } })).json<{
      status: string;
      number: number | null;
    }>();

  it("that nobody paid is void after 14 days, and the site that nobody ever paid goes with it", async () => {
    const key = await account();
    const [never, bought] = [await createSite(key), await createSite(key)];
    await pay(bought.invoiceToken);
    await reconcileBilling(later(14 * dayMs - 60_000));
    expect((await invoice(never.invoiceToken)).status).toBe("unpaid");
    await reconcileBilling(later(14 * dayMs + 60_000));
    expect((await invoice(never.invoiceToken)).status).toBe("void");
    expect((await api(key, "GET", `/sites/${never.siteId}`)).status).toBe(404);
    expect((await invoice(bought.invoiceToken)).status).toBe("paid");
    expect((await api(key, "GET", `/sites/${bought.siteId}`)).status).toBe(200);
    expect((await pay(never.invoiceToken)).status).toBe(409);
  });

  it("that nobody paid takes the database with it as well, and one that is paid stays", async () => {
    const key = await account();
    const make = async () =>
      (await api<DatabaseCreated>(key, "POST", "/databases", { name: uniqueName("data"), type: "redis" }))
        .body;
    const [never, bought] = [await make(), await make()];
    await pay(bought.invoiceToken);
    await reconcileBilling(later(14 * dayMs + 60_000));
    expect((await invoice(never.invoiceToken)).status).toBe("void");
    const { body } = await api<{ data: { id: string }[] }>(key, "GET", "/databases");
    expect(body.data.map(({ id }) => id)).toEqual([bought.databaseId]);
  });

  it("that is overdue is void, however many older ones are just being paid", async () => {
    const key = await account();
    const { invoiceToken, invoiceId } = await createSite(key);
    await rows(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
      INSERT INTO invoices (id, token, account_id, kind, status, amount_cents, currency, lines, created_at, due_at)
      SELECT 'invoice_held_' || i, 'held_' || i, account_id, 'credits', 'unpaid', 500, 'usd', '[]', 1, 1 FROM invoices, n WHERE id = ?`,
      invoiceId,
    );
    await rows(`INSERT INTO checkouts (id, invoice_id, number, processor, session_id, status, created_at, expires_at, check_at)
      SELECT 'chk_' || id, id, 1, 'test', id, 'processing', 1, 1, ${"9".repeat(15)} FROM invoices WHERE id LIKE 'invoice_held_%'`);
    await reconcileBilling(later(15 * dayMs));
    expect((await invoice(invoiceToken)).status).toBe("void");
    await rows("DELETE FROM checkouts WHERE invoice_id LIKE 'invoice_held_%'");
    await rows("DELETE FROM invoices WHERE id LIKE 'invoice_held_%'");
  });

  it("gets its number with its payment: one after the other, none twice and none left out", async () => {
    const key = await account();
    const made = [];
    for (let count = 0; count < 6; count++) made.push(await createSite(key));
    const [unpaid, ...others] = made;
    await Promise.all(others.flatMap(({ invoiceToken }) => [pay(invoiceToken), pay(invoiceToken)]));
    expect(await invoice(unpaid?.invoiceToken ?? "")).toMatchObject({ status: "unpaid", number: null });
    const numbered = await rows<{ number: number; paid_at: number | null }>(
      "SELECT number, paid_at FROM invoices WHERE number IS NOT NULL OR paid_at IS NOT NULL ORDER BY number",
    );
    expect(numbered.map(({ number }) => number)).toEqual(numbered.map((_, index) => index + 1));
    expect(numbered.length).toBeGreaterThanOrEqual(5);
    const [first] = others;
    const { number } = await invoice(first?.invoiceToken ?? "");
    await api(await operator(), "POST", `/invoices/${first?.invoiceId}/refund`, {});
    expect(await invoice(first?.invoiceToken ?? "")).toMatchObject({ status: "refunded", number });
  });

  it("is void by an operator's hand while it is unpaid, and refunded once it is paid", async () => {
    const key = await account();
    const { siteId, invoiceId, invoiceToken } = await createSite(key);
    expect((await api(key, "POST", `/invoices/${invoiceId}/void`)).status).toBe(403);
    const as = await operator();
    expect((await api(as, "POST", `/invoices/${invoiceId}/refund`, {})).status).toBe(409);
    for (const none of ["invoice_none", `invoice_001k${"0".repeat(23)}`])
      expect((await api(as, "POST", `/invoices/${none}/void`)).status).toBe(404);
    expect((await api(as, "POST", `/invoices/${invoiceId}/void`)).body).toMatchObject({ status: "void" });
    expect((await api(as, "POST", `/invoices/${invoiceId}/void`)).status).toBe(200);
    expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
    expect((await invoice(invoiceToken)).status).toBe("void");
    const other = await createSite(key);
    await pay(other.invoiceToken);
    expect((await api(as, "POST", `/invoices/${other.invoiceId}/void`)).status).toBe(409);
    expect((await api(as, "POST", `/invoices/${other.invoiceId}/refund`, {})).body).toMatchObject({
      status: "done",
      amountCents: 500,
    });
    expect((await invoice(other.invoiceToken)).status).toBe("refunded");
    expect(new Date((await site(key, other.siteId)).paidUntil ?? 0).getTime()).toBeLessThanOrEqual(
      Date.now(),
    );
  });

  it("is paid on the test processor's page, which says what it is; every page says so", async () => {
    const { invoiceToken } = await createSite(await account());
    const html = { headers: { Accept: "text/html" } };
    const page = await (await call(`/invoice/${invoiceToken}`, html)).text();
    expect(page).toContain("Pay $5.00");
    const pressed = await call(`/invoice/${invoiceToken}/pay`, {
      method: "POST",
      redirect: "manual",
      ...html,
    });
    expect(pressed.status).toBe(303);
    const path = new URL(pressed.headers.get("Location") ?? "").pathname;
    expect(path).toMatch(/^\/test-payments\/test_chk_/);
    const shown = await (await call(path, html)).text();
    expect(shown).toContain("Test payment: pay");
    const paid = await call(path, { method: "POST", redirect: "manual", ...html });
    const back = new URL(paid.headers.get("Location") ?? "");
    expect(back.pathname + back.search).toBe(`/invoice/${invoiceToken}?returned=1`);
    expect((await invoice(invoiceToken)).status).toBe("unpaid");
    const after = await (await call(back.pathname + back.search, html)).text();
    expect(after).toContain("Thank you");
    for (const text of [
      page,
      shown,
      after,
      await (await call("/sign-in", html)).text(),
      await (await call("/nowhere", html)).text(),
    ])
      expect(text).toMatch(/Test payments.*No money\s+moves/s);
  });

  it("is a PDF as well, for whoever has its address", async () => {
    const { invoiceToken, invoiceId } = await createSite(await account());
    const response = await call(`/invoice/${invoiceToken}/pdf`);
    expect([response.status, response.headers.get("Content-Type")]).toEqual([200, "application/pdf"]);
    const text = await response.text();
    expect(text.startsWith("%PDF-1.4\n")).toBe(true);
    expect(text).toContain(Buffer.from(invoiceId).toString("hex"));
    expect((await call("/invoice/inv_none/pdf")).status).toBe(404);
  });
});

describe("the configuration", () => {
  const parse = (settings: Record<string, string>) => () =>
    configOf({
      SITE_URL: "https://a.example",
      WEBHOOK_HOST: "https://a.example",
      SITES_ORIGIN: "https://b.example",
      SECRET_KEY: "A".repeat(43),
      ...settings,
    });

  it("serves webhooks at SITE_URL unless WEBHOOK_HOST names another origin", () => {
    expect(
      configOf({
        SITE_URL: "https://a.example/",
        SITES_ORIGIN: "https://b.example",
        SECRET_KEY: "A".repeat(43),
      }).WEBHOOK_HOST,
    ).toBe("https://a.example");
    expect(parse({ WEBHOOK_HOST: "https://hooks.example" })().WEBHOOK_HOST).toBe("https://hooks.example");
  });

  it("refuses test payments beside a live key, and Stripe without its keys", () => {
    expect(parse({})().PAYMENTS).toBe("test");
    for (const key of ["sk_live_abc", "rk_live_abc"])
      expect(parse({ STRIPE_SECRET_KEY: key })).toThrow(/is live, so nobody may pay with test payments/);
    expect(parse({ STRIPE_SECRET_KEY: "sk_test_abc" })().PAYMENTS).toBe("test");
    expect(parse({ PAYMENTS: "stripe" })).toThrow(/STRIPE_SECRET_KEY/);
    expect(parse({ PAYMENTS: "stripe", STRIPE_SECRET_KEY: "sk_test_abc" })).toThrow(/STRIPE_WEBHOOK_SECRET/);
    const keys = { STRIPE_SECRET_KEY: "sk_live_abc", STRIPE_WEBHOOK_SECRET: "whsec_abc" };
    expect(parse({ PAYMENTS: "stripe", ...keys })().PAYMENTS).toBe("stripe");
  });

  it("without Stripe takes no events of it", async () => {
    expect((await call("/webhooks/stripe", { method: "POST", body: "{}" })).status).toBe(400);
  });
});
