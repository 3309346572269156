import { afterEach, describe, expect, it, vi } from "vitest";
import { openCheckout } from "../../worker/billing/payments/checkout.ts";
import { arePaymentsRead } from "../../worker/billing/payments/read-events.ts";
import { reconcilePayments } from "../../worker/billing/payments/reconcile.ts";
import { contextOf } from "../../worker/compose.ts";
import { reconcileBilling, reconcileTerms } from "../../worker/cron.ts";
import { checkPayments } from "../../worker/services/system/check-payments.ts";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import type { Event } from "../support/stripe/server.ts";
import { interruptedDatabase } from "./crashing-database.ts";
import { account, api, bindings, call, createSite, operator, pay, site, uniqueName } from "./service.ts";
import { buyCredits, credits, flagsOf, rows, stripeService, type StripeService } from "./stripe-service.ts";

afterEach(() => vi.restoreAllMocks());

const hourMs = 3_600_000;
const paymentsOf = (invoiceId: string) => rows("SELECT * FROM payments WHERE invoice_id = ?", invoiceId);
const checkoutsOf = (invoiceId: string) =>
  rows<{ status: string; number: number }>(
    "SELECT status, number FROM checkouts WHERE invoice_id = ? ORDER BY number",
    invoiceId,
  );
/** Each of the two events once or twice, in every order that differs. */
const orders = <T>(a: T, b: T): T[][] => [
  [a, b],
  [b, a],
  [a, b, a, b],
  [b, a, b, a],
  [a, a, b, b],
  [b, b, a, a],
];

async function bought() {
  const key = await account();
  return { key, ...(await buyCredits(key)) };
}

/** Paid once, by one payment, with the credits in the ledger once, and nothing flagged. */
async function expectPaidOnce(service: StripeService, of: Awaited<ReturnType<typeof bought>>) {
  expect((await service.invoice(of.invoiceToken)).status).toBe("paid");
  expect(await paymentsOf(of.invoiceId)).toHaveLength(1);
  expect(await flagsOf(of.invoiceId)).toEqual([]);
  expect(await credits(of.key)).toMatchObject({
    balance: 500,
    transactions: [{ type: "purchase", amount: 500 }],
  });
}

describe("a checkout", () => {
  it("asks for the amount of the invoice, names it, and pays nothing by itself", async () => {
    const service = stripeService();
    const { invoiceId, invoiceToken } = await bought();
    const form = await service.call(`/invoice/${invoiceToken}/pay`, {
      method: "POST",
      headers: { Accept: "text/html" },
    });
    expect(form.status).toBe(303);
    expect(form.headers.get("Location")).toMatch(/^https:\/\/checkout\.stripe\.com\/c\/pay\/cs_test_/);
    const [session] = service.stripe.sessions.values();
    expect(session).toMatchObject({
      amount_total: 500,
      currency: "usd",
      client_reference_id: invoiceId,
      metadata: { invoice: invoiceId },
    });
    expect((await service.invoice(invoiceToken)).status).toBe("unpaid");
  });

  it("is one, however often and by how many at once the button is pressed", async () => {
    const service = stripeService();
    const { invoiceId, invoiceToken } = await bought();
    const sessions = await Promise.all(Array.from({ length: 20 }, () => service.open(invoiceToken)));
    expect(new Set([...sessions, await service.open(invoiceToken)]).size).toBe(1);
    expect(service.stripe.sessions.size).toBe(1);
    expect(await checkoutsOf(invoiceId)).toEqual([{ status: "open", number: 1 }]);
  });

  it("whose answer was lost after Stripe had acted is the same one when asked for again", async () => {
    const service = stripeService();
    const { invoiceToken } = await bought();
    service.stripe.breakNext({ on: /POST .*sessions$/, acts: true, times: 3 });
    expect((await service.pay(invoiceToken)).status).toBe(409);
    expect(service.stripe.sessions.size).toBe(1);
    await service.open(invoiceToken);
    expect(service.stripe.sessions.size).toBe(1);
  });

  it("survives answers of 500 and 429: the SDK asks again, or the next press does", async () => {
    const service = stripeService();
    const first = await bought();
    service.stripe.breakNext({ on: /sessions$/, answer: 500, times: 2 });
    await service.open(first.invoiceToken);
    const second = await bought();
    service.stripe.breakNext({ on: /sessions$/, answer: 429, times: 1 });
    expect((await service.pay(second.invoiceToken)).status).toBe(409);
    await service.open(second.invoiceToken);
    expect(service.stripe.sessions.size).toBe(2);
  });

  it("that has expired makes room for another, as often as it takes, and is nobody else's end", async () => {
    const service = stripeService();
    const [{ invoiceId, invoiceToken }, other] = [await bought(), await bought()];
    await service.open(other.invoiceToken);
    const first = await service.open(invoiceToken);
    service.stripe.expire(first);
    const next = await service.open(invoiceToken);
    service.stripe.expire(next);
    const last = await service.open(invoiceToken);
    expect(new Set([first, next, last]).size).toBe(3);
    expect(await checkoutsOf(invoiceId)).toEqual([
      { status: "expired", number: 1 },
      { status: "expired", number: 2 },
      { status: "open", number: 3 },
    ]);
    expect(await checkoutsOf(other.invoiceId)).toEqual([{ status: "open", number: 1 }]);
  });

  it("of a Stripe account that is used no more, as when test keys become live ones, makes room for another", async () => {
    const of = await bought();
    await stripeService().open(of.invoiceToken);
    const service = stripeService("sk_live_local");
    expect((await service.pay(of.invoiceToken)).status).toBe(409);
    await rows("UPDATE checkouts SET expires_at = 1 WHERE invoice_id = ?", of.invoiceId);
    await service.send(service.stripe.pay(await service.open(of.invoiceToken)));
    await expectPaidOnce(service, of);
    expect((await checkoutsOf(of.invoiceId)).map(({ status }) => status)).toEqual(["expired", "paid"]);
  });

  it("that Stripe refuses for good is over, and the next press begins another", async () => {
    const service = stripeService();
    const [of, other] = [await bought(), await bought()];
    await service.open(other.invoiceToken);
    await rows("UPDATE invoices SET amount_cents = 10 WHERE id = ?", of.invoiceId);
    expect((await service.pay(of.invoiceToken)).status).toBe(409);
    expect(await checkoutsOf(of.invoiceId)).toEqual([{ status: "failed", number: 1 }]);
    await rows("UPDATE invoices SET amount_cents = 500 WHERE id = ?", of.invoiceId);
    await service.send(service.stripe.pay(await service.open(of.invoiceToken)));
    await expectPaidOnce(service, of);
    expect((await checkoutsOf(of.invoiceId)).map(({ status }) => status)).toEqual(["failed", "paid"]);
    expect(await checkoutsOf(other.invoiceId)).toEqual([{ status: "open", number: 1 }]);
  });

  it("that is paid while it is opened a second time stays paid", async () => {
    const service = stripeService();
    const of = await bought();
    const paid = async () => {
      const [session = ""] = service.stripe.sessions.keys();
      await rows(
        "UPDATE checkouts SET status = 'open', session_id = ? WHERE invoice_id = ?",
        session,
        of.invoiceId,
      );
      expect(await service.send(service.stripe.pay(session))).toBe(200);
    };
    // It reads, begins one, reads again, asks Stripe, and then keeps the answer.
    const env = { ...service.env, DB: interruptedDatabase(bindings.DB, 3, paid) };
    const paying = contextOf(env, { type: "system" }, () => undefined);
    await openCheckout(paying, of.invoiceId as `invoice_${string}`);
    expect(await checkoutsOf(of.invoiceId)).toEqual([{ status: "paid", number: 1 }]);
    await expectPaidOnce(service, of);
  });

  it("is asked about alone where its customer comes back, and not once it has ended", async () => {
    const service = stripeService();
    const [of, other] = [await bought(), await bought()];
    const session = await service.open(of.invoiceToken);
    await service.open(other.invoiceToken);
    const asked = async () => {
      const before = service.stripe.requests.length;
      await service.invoice(of.invoiceToken, "?returned=1");
      return service.stripe.requests.slice(before);
    };
    expect(await asked()).toEqual([`GET /v1/checkout/sessions/${session}`]);
    service.stripe.expire(session);
    await asked();
    expect(await asked()).toEqual([]);
  });

  it("that Stripe never answered about is asked for again for an hour, and then another one is", async () => {
    const service = stripeService();
    const of = await bought();
    const press = async () => {
      service.stripe.breakNext({ on: /sessions$/, times: 3 });
      expect((await service.pay(of.invoiceToken)).status).toBe(409);
      service.stripe.mend();
    };
    await press();
    await press();
    expect(await checkoutsOf(of.invoiceId)).toEqual([{ status: "opening", number: 1 }]);
    await rows("UPDATE checkouts SET expires_at = 1 WHERE invoice_id = ?", of.invoiceId);
    await service.open(of.invoiceToken);
    expect(await checkoutsOf(of.invoiceId)).toEqual([
      { status: "expired", number: 1 },
      { status: "open", number: 2 },
    ]);
  });

  it("of another processor makes room for one of Stripe, and what was paid through it is not refunded by Stripe", async () => {
    const [open, paid] = [await bought(), await bought()];
    await call(`/invoice/${open.invoiceToken}/pay`, {
      method: "POST",
      headers: { Accept: "text/html" },
      redirect: "manual",
    });
    await pay(paid.invoiceToken);
    const service = stripeService();
    await service.open(open.invoiceToken);
    expect(await checkoutsOf(open.invoiceId)).toEqual([
      { status: "expired", number: 1 },
      { status: "open", number: 2 },
    ]);
    const refused = await service.asOperator(
      await operator(),
      "POST",
      `/invoices/${paid.invoiceId}/refund`,
      {},
    );
    expect([refused.status, refused.body["reason"]]).toEqual([
      409,
      expect.stringContaining("the test processor"),
    ]);
    expect(service.stripe.refunds.size).toBe(0);
  });

  it("is asked about after half its age again: after two minutes at least and an hour at most, and not before", async () => {
    const service = stripeService();
    const of = await bought();
    const session = await service.open(of.invoiceToken);
    const minuteMs = 60_000;
    const times = () =>
      rows<{ created_at: number; check_at: number }>(
        "SELECT created_at, check_at FROM checkouts WHERE invoice_id = ?",
        of.invoiceId,
      );
    const createdAt = (await times())[0]?.created_at ?? 0;
    const checkedAt = async (ageMinutes: number) => {
      const asked = () => service.stripe.requests.filter((one) => one.endsWith(session)).length;
      const before = asked();
      await reconcilePayments({ ...service.ctx(), now: () => new Date(createdAt + ageMinutes * minuteMs) });
      const checkAt = (await times())[0]?.check_at ?? 0;
      return [asked() - before, (checkAt - createdAt) / minuteMs];
    };
    expect(await checkedAt(1.9)).toEqual([0, 2]);
    expect(await checkedAt(2)).toEqual([1, 4]);
    expect(await checkedAt(3.9)).toEqual([0, 4]);
    expect(await checkedAt(20)).toEqual([1, 30]);
    expect(await checkedAt(200)).toEqual([1, 260]);
  });

  it.each(["voided", "cancelled", "deleted with its site", "deleted with its database"])(
    "of an invoice that is %s is closed at Stripe at once, so that nobody pays it any more",
    async (how) => {
      const service = stripeService();
      const key = how === "voided" ? await operator() : await account();
      const ordered = { name: uniqueName("ordered"), type: "redis" };
      const of = how.endsWith("database")
        ? (await api<DatabaseCreated>(key, "POST", "/databases", ordered)).body
        : await createSite(key);
      const session = await service.open(of.invoiceToken);
      const [method, path] = {
        voided: ["POST", `/invoices/${of.invoiceId}/void`],
        cancelled: ["POST", `/invoices/${of.invoiceId}/cancel`],
        "deleted with its site": ["DELETE", `/sites/${"siteId" in of ? of.siteId : ""}`],
        "deleted with its database": ["DELETE", `/databases/${"databaseId" in of ? of.databaseId : ""}`],
      }[how] as [string, string];
      expect((await service.asOperator(key, method, path)).status).toBeLessThan(300);
      await expect.poll(() => service.stripe.sessions.get(session)?.status).toBe("expired");
      await reconcilePayments(service.ctx());
      expect(await checkoutsOf(of.invoiceId)).toEqual([{ status: "expired", number: 1 }]);
    },
  );

  it("of a void invoice that Stripe cannot be asked to close is closed by the next cron", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const service = stripeService();
    const of = await bought();
    const session = await service.open(of.invoiceToken);
    service.stripe.breakNext({ on: /expire$/, times: 100 });
    await service.asOperator(of.key, "POST", `/invoices/${of.invoiceId}/cancel`);
    await expect.poll(() => log.mock.calls.join()).toContain("close checkouts");
    service.stripe.mend();
    expect(service.stripe.sessions.get(session)?.status).toBe("open");
    await reconcilePayments(service.ctx());
    expect(service.stripe.sessions.get(session)?.status).toBe("expired");
    expect(await checkoutsOf(of.invoiceId)).toEqual([{ status: "expired", number: 1 }]);
  });

  it("of an invoice that is void or paid is refused, or not needed", async () => {
    const service = stripeService();
    const of = await bought();
    service.stripe.pay(await service.open(of.invoiceToken));
    // No event came: pressing the button asks Stripe, and does not charge again.
    expect(await (await service.pay(of.invoiceToken)).json()).toMatchObject({ status: "paid" });
    await expectPaidOnce(service, of);
    const other = await bought();
    await service.asOperator(await operator(), "POST", `/invoices/${other.invoiceId}/void`);
    expect((await service.pay(other.invoiceToken)).status).toBe(409);
  });
});

describe("a payment", () => {
  it("reported 20 times at once is one", async () => {
    const service = stripeService();
    const of = await bought();
    const event = service.stripe.pay(await service.open(of.invoiceToken));
    const answers = await Promise.all(Array.from({ length: 20 }, () => service.send(event)));
    expect(new Set(answers)).toEqual(new Set([200]));
    await expectPaidOnce(service, of);
    expect(await rows("SELECT outcome FROM processor_events WHERE id = ?", event.id)).toHaveLength(1);
  });

  it("starts the site it is for, once", async () => {
    const service = stripeService();
    const key = await account();
    const { siteId, invoiceToken } = await createSite(key);
    const event = service.stripe.pay(await service.open(invoiceToken));
    await Promise.all([
      service.send(event),
      service.send(event),
      service.invoice(invoiceToken, "?returned=1"),
    ]);
    expect((await site(key, siteId)).status).toBe("DEPLOYING");
    expect(await rows("SELECT id FROM deployments WHERE site_id = ?", siteId)).toHaveLength(1);
    expect(await rows("SELECT id FROM jobs WHERE site_id = ?", siteId)).toHaveLength(1);
  });

  it("is heard of when the customer comes back, and by the cron, though no event ever comes", async () => {
    const service = stripeService();
    const [back, never] = [await bought(), await bought()];
    service.stripe.pay(await service.open(back.invoiceToken));
    expect((await service.invoice(back.invoiceToken)).status).toBe("unpaid");
    await service.invoice(back.invoiceToken, "?returned=1");
    await expectPaidOnce(service, back);
    service.stripe.pay(await service.open(never.invoiceToken));
    await reconcilePayments(service.ctx(hourMs));
    await expectPaidOnce(service, never);
  });

  it("reported three days late, after it was found by asking, changes nothing", async () => {
    const service = stripeService();
    const of = await bought();
    const event = service.stripe.pay(await service.open(of.invoiceToken));
    await reconcilePayments(service.ctx(hourMs));
    event.created -= 3 * 86_400;
    expect(await service.send(event)).toBe(200);
    await expectPaidOnce(service, of);
    expect(await rows("SELECT outcome FROM processor_events WHERE id = ?", event.id)).toEqual([
      { outcome: "known" },
    ]);
  });

  it.each([
    ["another amount", { amount_total: 499 }, "wrong_amount"],
    ["another currency", { currency: "eur" }, "wrong_currency"],
    ["no amount", { amount_total: null }, "wrong_currency"],
  ])("of %s is flagged and credits nothing", async (name, change, reason) => {
    const service = stripeService();
    const of = await bought();
    const event = service.stripe.pay(await service.open(of.invoiceToken));
    Object.assign(event.data.object, change, name === "no amount" && { currency: null });
    for (let time = 0; time < 3; time++) expect(await service.send(event)).toBe(200);
    expect((await service.invoice(of.invoiceToken)).status).toBe("unpaid");
    expect(await flagsOf(of.invoiceId)).toEqual([reason]);
    expect((await credits(of.key)).balance).toBe(0);
    // Nor does anybody pay twice until an operator has looked.
    expect((await service.pay(of.invoiceToken)).status).toBe(409);
  });

  it("that names no invoice, another one, or two is flagged with its money", async () => {
    const service = stripeService();
    for (const change of [
      { client_reference_id: null, metadata: {} },
      {
        client_reference_id: "invoice_001m80000000000000000000000",
        metadata: { invoice: "invoice_001m80000000000000000000000" },
      },
      { metadata: { invoice: "invoice_001m80000000000000000000000" } },
    ]) {
      const of = await bought();
      const event = service.stripe.pay(await service.open(of.invoiceToken));
      Object.assign(event.data.object, change);
      await service.send(event);
      expect((await service.invoice(of.invoiceToken)).status).toBe("unpaid");
      expect(
        await rows(
          "SELECT reason, amount_cents, currency FROM payment_flags WHERE reference = ?",
          event.data.object["payment_intent"],
        ),
      ).toEqual([{ reason: "unknown_invoice", amount_cents: 500, currency: "usd" }]);
    }
  });

  it("is one invoice's only: told of another one as well, it pays nothing there and is no error", async () => {
    const service = stripeService();
    const [first, second] = [await bought(), await bought()];
    const event = service.stripe.pay(await service.open(first.invoiceToken));
    expect(await service.send(event)).toBe(200);
    const { object } = event.data;
    const other = {
      ...object,
      client_reference_id: second.invoiceId,
      metadata: { ...(object["metadata"] as object), invoice: second.invoiceId },
    };
    expect(await service.send(service.stripe.tell("checkout.session.completed", other))).toBe(200);
    expect((await service.invoice(second.invoiceToken)).status).toBe("unpaid");
    expect((await credits(second.key)).balance).toBe(0);
    expect(
      await rows("SELECT invoice_id FROM payments WHERE reference = ?", object["payment_intent"]),
    ).toEqual([{ invoice_id: first.invoiceId }]);
  });

  it("told while the record cannot be written is told again until it can be, and counts once", async () => {
    const service = stripeService();
    const of = await bought();
    const event = service.stripe.pay(await service.open(of.invoiceToken));
    let tries = 0;
    const send = async (told: Event) => {
      if (tries++ === 0) await rows("ALTER TABLE payments RENAME TO payments_away");
      else if (tries === 3) await rows("ALTER TABLE payments_away RENAME TO payments");
      return service.send(told);
    };
    expect(await service.stripe.deliver(event, send)).toEqual([500, 500, 200]);
    expect(await service.stripe.deliver(event, (told) => service.send(told))).toEqual([200]);
    expect((await service.invoice(of.invoiceToken)).status).toBe("paid");
    expect((await credits(of.key)).balance).toBe(500);
  });

  it("of a void invoice, and a second one of a paid invoice, is flagged and not lost", async () => {
    const service = stripeService();
    const late = await bought();
    const tooLate = service.stripe.pay(await service.open(late.invoiceToken));
    await service.asOperator(await operator(), "POST", `/invoices/${late.invoiceId}/void`);
    await service.send(tooLate);
    expect([(await service.invoice(late.invoiceToken)).status, await flagsOf(late.invoiceId)]).toEqual([
      "void",
      ["invoice_void"],
    ]);
    const twice = await bought();
    const event = service.stripe.pay(await service.open(twice.invoiceToken));
    await service.send(event);
    const again = {
      ...event,
      id: `evt_second_${twice.invoiceId}`,
      data: {
        object: {
          ...event.data.object,
          id: `cs_test_other_${twice.invoiceId}`,
          payment_intent: `pi_other_${twice.invoiceId}`,
        },
      },
    };
    await service.send(again);
    expect([await flagsOf(twice.invoiceId), (await credits(twice.key)).balance]).toEqual([
      ["paid_twice"],
      500,
    ]);
  });

  it("of a test while a live key is set, or live while a test key is, is flagged and credits nothing", async () => {
    for (const [key, livemode] of [
      ["sk_live_local", false],
      ["sk_test_local", true],
    ] as const) {
      const service = stripeService(key);
      const of = await bought();
      const event = service.stripe.pay(await service.open(of.invoiceToken));
      event.livemode = livemode;
      event.data.object["livemode"] = livemode;
      await service.send(event);
      expect((await service.invoice(of.invoiceToken)).status).toBe("unpaid");
      expect(await flagsOf(of.invoiceId)).toEqual(["wrong_mode"]);
    }
  });

  it("with a bad, old or missing signature, or an altered body, is refused and leaves no trace", async () => {
    const service = stripeService();
    const of = await bought();
    const event = service.stripe.pay(await service.open(of.invoiceToken));
    expect(await service.send(event, { secret: "whsec_other" })).toBe(400);
    expect(await service.send(event, { ageSeconds: 301 })).toBe(400);
    const { body, headers } = service.stripe.signed(event);
    const post = async (sent: string, sentHeaders: Record<string, string>) =>
      (await service.call("/webhooks/stripe", { method: "POST", body: sent, headers: sentHeaders })).status;
    expect(await post(body.replace('"amount_total":500', '"amount_total":501'), headers)).toBe(400);
    expect(await post(`${body} `, headers)).toBe(400);
    expect(await post(body, {})).toBe(400);
    expect(await rows("SELECT id FROM processor_events WHERE id = ?", event.id)).toEqual([]);
    expect((await service.invoice(of.invoiceToken)).status).toBe("unpaid");
    expect(await service.send(event)).toBe(200);
    await expectPaidOnce(service, of);
  });
});

describe("a delayed payment", () => {
  it("waits for the bank, takes no second one meanwhile, and settles when the money is there", async () => {
    const service = stripeService();
    const of = await bought();
    const session = await service.open(of.invoiceToken);
    await service.send(service.stripe.pay(session, true));
    expect((await service.invoice(of.invoiceToken)).status).toBe("unpaid");
    expect((await service.pay(of.invoiceToken)).status).toBe(409);
    const page = await service.call(`/invoice/${of.invoiceToken}`, { headers: { Accept: "text/html" } });
    expect(await page.text()).toContain("being processed");
    // Nobody voids what is being paid.
    await reconcileBilling(service.ctx(30 * 24 * hourMs));
    const refused = await service.asOperator(await operator(), "POST", `/invoices/${of.invoiceId}/void`);
    expect(refused.status).toBe(409);
    await service.send(service.stripe.end(session, true));
    await expectPaidOnce(service, of);
  });

  it.each(["by event", "by asking"])("that fails lets the customer pay again (%s)", async (how) => {
    const service = stripeService();
    const of = await bought();
    const session = await service.open(of.invoiceToken);
    await service.send(service.stripe.pay(session, true));
    const failed = service.stripe.end(session, false);
    if (how === "by event") await service.send(failed);
    service.stripe.pay(await service.open(of.invoiceToken));
    await service.invoice(of.invoiceToken, "?returned=1");
    await expectPaidOnce(service, of);
  });

  it("stops no deletion: it is flagged when it arrives, and its payer is told", async () => {
    const service = stripeService();
    const key = await account();
    const of = await createSite(key);
    const session = await service.open(of.invoiceToken);
    await service.send(service.stripe.pay(session, true));
    expect((await service.asOperator(key, "DELETE", `/sites/${of.siteId}`)).status).toBe(202);
    const page = async (query = "") =>
      (
        await service.call(`/invoice/${of.invoiceToken}${query}`, { headers: { Accept: "text/html" } })
      ).text();
    expect(await page()).toContain("If it arrives, the operator is told and will return it.");
    service.stripe.end(session, true);
    // No event came: whoever returns from Stripe is told nevertheless.
    const returned = await page("?returned=1");
    expect(returned).toContain("A payment was received although this invoice was void.");
    expect(returned).not.toContain("nothing is owed");
    expect(await flagsOf(of.invoiceId)).toEqual(["invoice_void"]);
    const operatorKey = await operator();
    const [flag] = await rows<{ id: string }>(
      "SELECT id FROM payment_flags WHERE invoice_id = ?",
      of.invoiceId,
    );
    await service.asOperator(operatorKey, "POST", `/payments/flagged/${flag?.id}/resolve`, {
      resolution: "Returned.",
    });
    expect(await page()).toContain("nothing is owed");
  });

  it("that fails is said on the invoice's page, until there is another or it is paid", async () => {
    const service = stripeService();
    const of = await bought();
    const page = async () =>
      (await service.call(`/invoice/${of.invoiceToken}`, { headers: { Accept: "text/html" } })).text();
    const refused = "The last payment was refused";
    const session = await service.open(of.invoiceToken);
    await service.send(service.stripe.pay(session, true));
    expect(await page()).not.toContain(refused);
    await service.send(service.stripe.end(session, false));
    expect(await page()).toContain(refused);
    const other = await service.open(of.invoiceToken);
    await service.send(service.stripe.pay(other, true));
    expect(await page()).not.toContain(refused);
    await service.send(service.stripe.end(other, true));
    expect(await page()).not.toContain(refused);
    await expectPaidOnce(service, of);
  });

  it("ends alike in whatever order and number its events come", async () => {
    for (const isPaid of [true, false])
      for (let order = 0; order < 6; order++) {
        const service = stripeService();
        const of = await bought();
        const session = await service.open(of.invoiceToken);
        const [done, ended] = [service.stripe.pay(session, true), service.stripe.end(session, isPaid)];
        for (const event of orders(done, ended)[order] ?? []) await service.send(event);
        if (isPaid) await expectPaidOnce(service, of);
        else expect((await service.invoice(of.invoiceToken)).status).toBe("unpaid");
        expect((await checkoutsOf(of.invoiceId)).map(({ status }) => status)).toEqual([
          isPaid ? "paid" : "failed",
        ]);
      }
  });
});

describe("a refund", () => {
  async function paid(service: StripeService) {
    const of = await bought();
    await service.send(service.stripe.pay(await service.open(of.invoiceToken)));
    const [intent] = [...service.stripe.intents.values()].slice(-1);
    const refund = async (body: object = {}) =>
      service.asOperator(await operator(), "POST", `/invoices/${of.invoiceId}/refund`, body);
    return { ...of, refund, intent: intent?.id ?? "" };
  }

  it("gives the money back once and takes the credits back, and its own news is no surprise", async () => {
    const service = stripeService();
    const of = await paid(service);
    const before = service.stripe.events.length;
    expect((await of.refund()).body).toMatchObject({ status: "done", amountCents: 500, missingCredits: 0 });
    expect((await of.refund()).status).toBe(409);
    for (const event of service.stripe.events.slice(before)) await service.send(event);
    expect(service.stripe.refunds.size).toBe(1);
    expect((await service.invoice(of.invoiceToken)).status).toBe("refunded");
    expect(await credits(of.key)).toMatchObject({
      balance: 0,
      transactions: [
        { type: "refund", amount: -500 },
        { type: "purchase", amount: 500 },
      ],
    });
    expect(await flagsOf(of.invoiceId)).toEqual([]);
  });

  it("asked for 10 times at once is one", async () => {
    const service = stripeService();
    const of = await paid(service);
    await Promise.all(Array.from({ length: 10 }, () => of.refund()));
    expect(service.stripe.refunds.size).toBe(1);
    expect((await credits(of.key)).balance).toBe(0);
  });

  it("whose answer was lost holds the credits, and is finished by the cron without a second one", async () => {
    const service = stripeService();
    const of = await paid(service);
    service.stripe.breakNext({ on: /refunds/, acts: true, times: 3 });
    expect((await of.refund()).body).toMatchObject({ status: "pending" });
    expect((await service.invoice(of.invoiceToken)).status).toBe("paid");
    expect(await rows("SELECT balance - held AS free FROM ledger_accounts WHERE held > 0")).toContainEqual({
      free: 0,
    });
    await reconcilePayments(service.ctx());
    expect(service.stripe.refunds.size).toBe(1);
    expect([(await service.invoice(of.invoiceToken)).status, (await credits(of.key)).balance]).toEqual([
      "refunded",
      0,
    ]);
    // Each try was the same request to Stripe, whatever it had done before.
    const [refund] = await rows<{ id: string }>("SELECT id FROM refunds WHERE invoice_id = ?", of.invoiceId);
    const keys = service.stripe.keys.filter((key) => key.startsWith("POST /v1/refunds"));
    expect([keys.length > 0, new Set(keys)]).toEqual([true, new Set([`POST /v1/refunds ${refund?.id}`])]);
  });

  it.each([
    ["is paid out", true],
    ["is returned", false],
  ])("that is on its way to the bank is no refund before it %s", async (_, isPaid) => {
    const service = stripeService();
    const of = await paid(service);
    service.stripe.refundsArePending = true;
    expect((await of.refund()).body).toMatchObject({ status: "pending" });
    for (let count = 0; count < 2; count++) await reconcilePayments(service.ctx());
    expect((await service.invoice(of.invoiceToken)).status).toBe("paid");
    const [id = ""] = service.stripe.refunds.keys();
    await service.send(service.stripe.endRefund(id, isPaid));
    await reconcilePayments(service.ctx());
    expect([(await service.invoice(of.invoiceToken)).status, (await credits(of.key)).balance]).toEqual(
      isPaid ? ["refunded", 0] : ["paid", 500],
    );
    const held = await rows<{ id: string }>(
      "SELECT h.id FROM ledger_holds h JOIN refunds r ON r.hold_id = h.id WHERE r.invoice_id = ? AND h.status = 'open'",
      of.invoiceId,
    );
    expect(held).toEqual([]);
    expect(service.stripe.refunds.size).toBe(1);
    expect(await flagsOf(of.invoiceId)).toEqual(isPaid ? [] : ["refund_failed"]);
  });

  it("made by hand at Stripe is recorded and flagged, in part and in full, before or started by the payment is heard of", async () => {
    const service = stripeService();
    const [of, waiting] = [await paid(service), await paid(service)];
    // That another one is on its way to the bank delays nothing.
    service.stripe.refundsArePending = true;
    expect((await waiting.refund()).body).toMatchObject({ status: "pending" });
    service.stripe.refundsArePending = false;
    await service.send(service.stripe.refundByHand(of.intent, 100));
    expect((await service.invoice(of.invoiceToken)).status).toBe("paid");
    await service.send(service.stripe.refundByHand(of.intent, 400));
    expect((await service.invoice(of.invoiceToken)).status).toBe("refunded");
    expect(await flagsOf(of.invoiceId)).toEqual(["refunded_elsewhere", "refunded_elsewhere"]);
    const early = await bought();
    const event = service.stripe.pay(await service.open(early.invoiceToken));
    await service.send(service.stripe.refundByHand(String(event.data.object["payment_intent"]), 500));
    await service.send(event);
    expect((await service.invoice(early.invoiceToken)).status).toBe("refunded");
  });

  it("of a part, told before its payment, leaves what was bought, and every other invoice as it was", async () => {
    const service = stripeService();
    const [of, other, whole] = [await bought(), await paid(service), await bought()];
    for (const [one, amount] of [
      [of, 100],
      [whole, 500],
    ] as const) {
      const event = service.stripe.pay(await service.open(one.invoiceToken));
      await service.send(service.stripe.refundByHand(String(event.data.object["payment_intent"]), amount));
      await service.send(event);
    }
    const statuses = [of, other, whole].map(
      async ({ invoiceToken }) => (await service.invoice(invoiceToken)).status,
    );
    expect(await Promise.all(statuses)).toEqual(["paid", "paid", "refunded"]);
    expect((await credits(of.key)).balance).toBe(500);
  });

  it("ends alone, and may be asked for again where the bank returned it", async () => {
    const service = stripeService();
    const [done, returned, waiting, kept] = [
      await paid(service),
      await paid(service),
      await paid(service),
      await paid(service),
    ];
    service.stripe.refundsArePending = true;
    for (const one of [done, returned, waiting])
      expect((await one.refund()).body).toMatchObject({ status: "pending" });
    const [first = "", second = ""] = service.stripe.refunds.keys();
    service.stripe.endRefund(first, true);
    service.stripe.endRefund(second, false);
    await reconcilePayments(service.ctx());
    const refunds = async () =>
      Promise.all(
        [done, returned, waiting, kept].map(async ({ invoiceId, invoiceToken }) => [
          (await service.invoice(invoiceToken)).status,
          ...(
            await rows("SELECT status FROM refunds WHERE invoice_id = ? ORDER BY created_at", invoiceId)
          ).map(({ status }) => status),
        ]),
      );
    expect(await refunds()).toEqual([
      ["refunded", "done"],
      ["paid", "failed"],
      ["paid", "pending"],
      ["paid"],
    ]);
    expect((await returned.refund()).body).toMatchObject({ status: "pending" });
    expect((await refunds())[1]).toEqual(["paid", "failed", "pending"]);
    expect([(await credits(done.key)).balance, (await credits(kept.key)).balance]).toEqual([0, 500]);
  });

  it("finished by two at once is on record once", async () => {
    const service = stripeService();
    const of = await paid(service);
    service.stripe.refundsArePending = true;
    await of.refund();
    const [id = ""] = service.stripe.refunds.keys();
    service.stripe.endRefund(id, true);
    await Promise.all([reconcilePayments(service.ctx()), reconcilePayments(service.ctx())]);
    expect(
      await rows(
        "SELECT operation FROM activity WHERE resource_id = ? AND operation = 'refundInvoice' AND actor = 'system'",
        of.invoiceId,
      ),
    ).toHaveLength(1);
    expect(await credits(of.key)).toMatchObject({ balance: 0, transactions: [{ type: "refund" }, {}] });
  });

  it("that is told before its payment leaves nothing that was bought: no credits, no site", async () => {
    const service = stripeService();
    const of = await bought();
    const key = await account();
    const { siteId, invoiceToken, invoiceId } = await createSite(key);
    for (const token of [of.invoiceToken, invoiceToken]) {
      const event = service.stripe.pay(await service.open(token));
      const { amountCents } = await service.invoice(token);
      await service.send(
        service.stripe.refundByHand(String(event.data.object["payment_intent"]), amountCents),
      );
      expect(await service.send(event)).toBe(200);
      expect(await service.send(event)).toBe(200);
      expect((await service.invoice(token)).status).toBe("refunded");
    }
    expect(await credits(of.key)).toMatchObject({ balance: 0, transactions: [] });
    // As one whose invoice is void: it was never paid.
    expect((await api(key, "GET", `/sites/${siteId}`)).status).toBe(404);
    expect(await rows("SELECT id FROM jobs WHERE site_id = ?", siteId)).toEqual([]);
    expect(await paymentsOf(invoiceId)).toHaveLength(1);
    const { body } = await api<{ problems: string[] }>(await operator(), "GET", "/ledger/verify");
    expect(body.problems.filter((problem) => problem.includes(of.invoiceId))).toEqual([]);
  });

  it("that the bank returns is flagged", async () => {
    const service = stripeService();
    const of = await paid(service);
    await of.refund();
    const [refund] = service.stripe.refunds.values();
    await service.send(service.stripe.tell("refund.failed", { ...refund, status: "failed" }));
    expect(await flagsOf(of.invoiceId)).toEqual(["refund_failed"]);
    expect(await rows("SELECT error FROM refunds WHERE invoice_id = ?", of.invoiceId)).toEqual([
      { error: "The processor took it back" },
    ]);
  });

  it("of a dispute is the bank's: it is recorded and flagged once, and its end is not undone by older news", async () => {
    const service = stripeService();
    const of = await paid(service);
    const dispute = {
      id: `dp_${of.intent}`,
      payment_intent: of.intent,
      amount: 500,
      currency: "usd",
      reason: "fraudulent",
    };
    const created = service.stripe.tell("charge.dispute.created", { ...dispute, status: "needs_response" });
    const closed = service.stripe.tell("charge.dispute.closed", { ...dispute, status: "lost" });
    for (const event of [closed, created, closed, created]) await service.send(event);
    expect(await rows("SELECT status FROM disputes WHERE id = ?", dispute.id)).toEqual([{ status: "lost" }]);
    expect(await flagsOf(of.invoiceId)).toEqual(["disputed"]);
    const partial = { ...dispute, id: `dp_partial_${of.intent}` };
    const asked = service.stripe.tell("charge.dispute.created", { ...partial, status: "needs_response" });
    const less = service.stripe.tell(
      "charge.dispute.updated",
      { ...partial, amount: 300, status: "under_review" },
      { created: asked.created + 1 },
    );
    for (const event of [less, asked]) await service.send(event);
    expect(await rows("SELECT status, amount_cents FROM disputes WHERE id = ?", partial.id)).toEqual([
      { status: "under_review", amount_cents: 300 },
    ]);
    // Stripe's times are whole seconds.
    const quick = { ...dispute, id: `dp_quick_${of.intent}` };
    const opened = service.stripe.tell("charge.dispute.created", { ...quick, status: "needs_response" });
    const { created: at } = opened;
    const won = service.stripe.tell("charge.dispute.closed", { ...quick, status: "won" }, { created: at });
    for (const event of [opened, won]) await service.send(event);
    expect(await rows("SELECT status FROM disputes WHERE id = ?", quick.id)).toEqual([{ status: "won" }]);
  });
});

describe("a record that was put back to an earlier moment", () => {
  it("reads what was paid since from the processor's own list, once, whatever is delivered beside it", async () => {
    const service = stripeService();
    await rows("DELETE FROM processor_readings");
    await reconcileBilling(service.ctx());
    const [known, forgotten] = [await bought(), await bought()];
    expect(await service.send(service.stripe.pay(await service.open(known.invoiceToken)))).toBe(200);
    const session = await service.open(forgotten.invoiceToken);
    // More than a page, and than one turn takes.
    const other = service.stripe.tell("checkout.session.expired", { id: "cs_test_other", livemode: false });
    for (let more = 0; more < 210; more++) service.stripe.tell(other.type, other.data.object);
    const event = service.stripe.pay(session);
    // The copy was made before the customer went to pay.
    await rows("DELETE FROM checkouts WHERE invoice_id = ?", forgotten.invoiceId);

    await reconcileBilling(service.ctx(6 * 60_000));
    expect((await service.invoice(forgotten.invoiceToken)).status).toBe("unpaid");
    for (const minutes of [7, 8, 14]) await reconcileBilling(service.ctx(minutes * 60_000));
    await expectPaidOnce(service, forgotten);
    expect(await service.send(event)).toBe(200);
    for (const of of [known, forgotten]) await expectPaidOnce(service, of);
  });

  const minuteMs = 60_000;
  const reading = async () =>
    (
      await rows<{ events_until: number; read_at: number }>(
        "SELECT events_until, read_at FROM processor_readings WHERE processor = 'stripe'",
      )
    )[0];

  it("is read every five minutes, and a day at a time where it is behind, from what Stripe still lists", async () => {
    const service = stripeService();
    await rows("DELETE FROM processor_readings");
    const now = Date.now();
    const readAt = async (ms: number) => {
      const asked = service.stripe.requests.length;
      await reconcileBilling({ ...service.ctx(), now: () => new Date(ms) });
      return service.stripe.requests.slice(asked).filter((one) => one.endsWith("/events")).length;
    };
    expect(await readAt(now)).toBe(1);
    expect(await reading()).toEqual({ events_until: now, read_at: now });
    expect([await readAt(now + 5 * minuteMs - 1), await readAt(now + 5 * minuteMs)]).toEqual([0, 1]);
    const dayHours = 24;
    const behind = now - 2.5 * dayHours * hourMs;
    await rows("UPDATE processor_readings SET events_until = ?1, read_at = ?1", behind);
    for (const days of [1, 2]) {
      expect(await readAt(now)).toBe(1);
      expect(await reading()).toEqual({ events_until: behind + days * dayHours * hourMs, read_at: behind });
      expect(await arePaymentsRead({ ...service.ctx(), now: () => new Date(now) }, now)).toBe(false);
    }
    expect(await readAt(now)).toBe(1);
    expect(await reading()).toEqual({ events_until: now, read_at: now });
    await rows("UPDATE processor_readings SET events_until = 1, read_at = 1");
    expect(await readAt(now)).toBe(1);
    expect(await reading()).toEqual({ events_until: now - 28 * dayHours * hourMs, read_at: 1 });
  });

  it("voids, suspends and deletes nothing for want of a payment, and tells no owner that a term is over, before the list is read to its end", async () => {
    const service = stripeService("sk_test_local", { MAIL_ENDPOINT: undefined });
    await rows("DELETE FROM processor_readings");
    await reconcileBilling(service.ctx());
    const of = await bought();
    service.stripe.pay(await service.open(of.invoiceToken));
    // The copy was made days ago, before the customer went to pay; the invoice was due since.
    await rows("DELETE FROM checkouts WHERE invoice_id = ?", of.invoiceId);
    await rows("UPDATE invoices SET due_at = 1 WHERE id = ?", of.invoiceId);
    const behind = Date.now() - 2.5 * 24 * hourMs;
    await rows("UPDATE processor_readings SET events_until = ?1, read_at = ?1", behind);
    const [late, gone] = [await createSite(of.key), await createSite(of.key)];
    const longAgo = Date.now() - 60 * 24 * hourMs;
    await rows("UPDATE sites SET status = 'STOPPED', paid_until = ? WHERE id = ?", longAgo, late.siteId);
    await rows(
      `INSERT INTO invoices (id, token, account_id, kind, status, amount_cents, currency, lines, resource_id, created_at, due_at)
        SELECT 'invoice_late', 'inv_late', account_id, 'renewal', 'unpaid', 500, 'usd', '[]', id, ?1, ?1 FROM sites WHERE id = ?2`,
      longAgo,
      late.siteId,
    );
    await rows(
      "UPDATE sites SET status = 'SUSPENDED', paid_until = ?1, suspended_at = ?1 WHERE id = ?2",
      longAgo,
      gone.siteId,
    );
    await rows(
      `INSERT INTO mails (id, account_id, subject, text, created_at, try_at, sent_at)
        SELECT 'deletion:' || id || ':' || suspended_at, account_id, 's', 't', ?1, ?1, ?1 FROM sites WHERE id = ?2`,
      longAgo,
      gone.siteId,
    );
    const over = await createSite(of.key);
    await rows(
      "UPDATE sites SET status = 'STOPPED', next_pack_id = pack_id, paid_until = ? WHERE id = ?",
      Date.now() - hourMs,
      over.siteId,
    );
    await rows(
      `INSERT INTO invoices (id, token, account_id, kind, status, amount_cents, currency, lines, resource_id, created_at, due_at)
        SELECT 'invoice_change', 'inv_change', account_id, 'change', 'unpaid', 500, 'usd', '[]', id, ?1, ?1 FROM sites WHERE id = ?2`,
      Date.now() + hourMs,
      over.siteId,
    );
    const changeOf = async () => [
      await rows(
        "SELECT kind, status FROM invoices WHERE resource_id = ? AND kind <> 'site' ORDER BY kind",
        over.siteId,
      ),
      (await rows("SELECT next_pack_id FROM sites WHERE id = ?", over.siteId))[0]?.["next_pack_id"] !== null,
      (await rows("SELECT id FROM mails WHERE id LIKE 'ended:%'")).length,
    ];
    const afterTurn = async () => {
      await reconcileBilling(service.ctx());
      await reconcileTerms(service.ctx());
      const { status } = await service.invoice(of.invoiceToken);
      const sites = [late, gone].map(
        async ({ siteId }) => (await api(of.key, "GET", `/sites/${siteId}`)).body,
      );
      return [status, ...(await Promise.all(sites)).map((body) => body["status"])];
    };
    for (let turn = 0; turn < 2; turn++) {
      expect(await afterTurn()).toEqual(["unpaid", "STOPPED", "SUSPENDED"]);
      expect(await changeOf()).toEqual([[{ kind: "change", status: "unpaid" }], true, 0]);
    }
    // The record of what is deleted goes at once, since no host has any of it.
    expect(await afterTurn()).toEqual(["paid", "SUSPENDED", undefined]);
    expect(await changeOf()).toEqual([
      [
        { kind: "change", status: "void" },
        { kind: "renewal", status: "unpaid" },
      ],
      false,
      1,
    ]);
  });

  it("is complete up to a quarter of an hour after it was last read", async () => {
    const service = stripeService();
    const ctx = service.ctx();
    const now = ctx.now().getTime();
    await rows("DELETE FROM processor_readings");
    expect(await arePaymentsRead(ctx, now)).toBe(false);
    await rows(
      "INSERT INTO processor_readings (processor, events_until, read_at) VALUES ('stripe', ?1, ?1)",
      now,
    );
    expect(await arePaymentsRead(ctx, now + 15 * minuteMs - 1)).toBe(true);
    expect(await arePaymentsRead(ctx, now + 15 * minuteMs)).toBe(false);
    // The test processor keeps its state in the record itself.
    expect(
      await arePaymentsRead(
        contextOf(bindings, { type: "system" }, () => undefined),
        now * 2,
      ),
    ).toBe(true);
  });

  it("flags money for what it does not know any more", async () => {
    const service = stripeService();
    await rows("DELETE FROM processor_readings");
    await reconcileBilling(service.ctx());
    const of = await bought();
    service.stripe.pay(await service.open(of.invoiceToken));
    await rows("DELETE FROM checkouts WHERE invoice_id = ?", of.invoiceId);
    await rows("DELETE FROM invoices WHERE id = ?", of.invoiceId);
    await reconcileBilling(service.ctx(6 * 60_000));
    expect(await flagsOf(of.invoiceId)).toEqual(["unknown_invoice"]);
  });
});

it("an event id is kept for ever, and so are payments", async () => {
  const service = stripeService();
  const event = service.stripe.tell("customer.created", { id: "cus_1" });
  expect(await service.send(event)).toBe(200);
  expect(await rows("SELECT outcome FROM processor_events WHERE id = ?", event.id)).toEqual([
    { outcome: "ignored" },
  ]);
  await expect(bindings.DB.prepare("DELETE FROM processor_events").run()).rejects.toThrow(/for ever/);
});

it("an operator sees what is flagged and says how it was dealt with", async () => {
  const service = stripeService();
  const of = await bought();
  const event = service.stripe.pay(await service.open(of.invoiceToken));
  event.data.object["amount_total"] = 1;
  await service.send(event);
  const key = await operator();
  const open = async () =>
    (await api<{ data: { id: string; invoiceId: string }[] }>(key, "GET", "/payments/flagged?limit=100")).body
      .data;
  const flag = (await open()).find(({ invoiceId }) => invoiceId === of.invoiceId);
  expect(flag).toMatchObject({ reason: "wrong_amount", amountCents: 1, resolvedAt: null });
  const path = `/payments/flagged/${flag?.id}/resolve`;
  expect((await api(key, "POST", path, { resolution: "Refunded." })).body).toMatchObject({
    resolution: "Refunded.",
    resolvedAt: expect.any(String),
  });
  expect((await open()).map(({ id }) => id)).not.toContain(flag?.id);
});

it("what an operator has dealt with can be paid again", async () => {
  const service = stripeService();
  const of = await bought();
  const event = service.stripe.pay(await service.open(of.invoiceToken));
  event.data.object["amount_total"] = 1;
  await service.send(event);
  expect((await service.pay(of.invoiceToken)).status).toBe(409);
  await rows("UPDATE payment_flags SET resolved_at = 1 WHERE invoice_id = ?", of.invoiceId);
  await service.send(service.stripe.pay(await service.open(of.invoiceToken)));
  expect((await service.invoice(of.invoiceToken)).status).toBe("paid");
});

describe("the check of Stripe's set-up", () => {
  const url = "http://127.0.0.1:8787/webhooks/stripe";
  const endpoint = { url, status: "enabled" as const, enabled_events: ["*"] };
  const problemsOf = async (service: StripeService) => (await checkPayments(service.ctx())).problems;

  it("finds nothing wrong where the key works and the endpoint is told of everything", async () => {
    const service = stripeService();
    service.stripe.endpoints = [{ ...endpoint, url: "https://elsewhere.example/" }, endpoint];
    expect(await problemsOf(service)).toEqual([]);
  });

  it("says which part is wrong: the key, the endpoint, its state, its events, or its secret", async () => {
    const other = stripeService("sk_test_local", { STRIPE_SECRET_KEY: "sk_test_other" });
    expect(await problemsOf(other)).toEqual([
      "Stripe refuses the key STRIPE_SECRET_KEY: Invalid API Key provided",
    ]);
    vi.restoreAllMocks();
    const service = stripeService();
    expect(await problemsOf(service)).toEqual([expect.stringContaining(`no webhook endpoint ${url}`)]);
    service.stripe.endpoints = [{ ...endpoint, status: "disabled" }];
    expect(await problemsOf(service)).toEqual([expect.stringContaining("is disabled")]);
    service.stripe.endpoints = [{ ...endpoint, enabled_events: ["checkout.session.completed"] }];
    expect(await problemsOf(service)).toEqual([expect.stringContaining("charge.refunded")]);
    service.stripe.endpoints = [endpoint];
    service.stripe.events.push({
      id: "evt_undelivered",
      object: "event",
      type: "charge.refunded",
      created: Math.floor(Date.now() / 1000) - 1200,
      livemode: false,
      pending_webhooks: 1,
      data: {
        object: { id: "ch_1", payment_intent: "pi_1", amount_refunded: 1, currency: "usd" },
      },
    });
    expect(await problemsOf(service)).toEqual([expect.stringContaining("STRIPE_WEBHOOK_SECRET")]);
    service.stripe.breakNext({ on: /webhook_endpoints/, answer: "none", times: 9 });
    expect(await problemsOf(service)).toEqual([expect.stringContaining("Stripe does not answer")]);
  });
});
