import { Stripe } from "stripe";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serveRequests } from "../support/serve-requests.ts";
import { StripeServer } from "../support/stripe/server.ts";

/** The local Stripe over a real socket, asked by the official SDK: it must refuse what Stripe refuses. */
const server = new StripeServer({ key: "sk_test_local", webhookSecret: "whsec_local" });
let stripe: Stripe;
let close: () => Promise<void>;
let address: { host: string; port: number };
beforeAll(async () => {
  const served = await serveRequests((request) => server.handle(request));
  close = () => served.close();
  address = { host: served.host, port: served.port };
  stripe = new Stripe("sk_test_local", {
    ...address,
    protocol: "http",
    maxNetworkRetries: 1,
    telemetry: false,
  });
});
afterAll(() => close());

const good = (): Stripe.Checkout.SessionCreateParams => ({
  mode: "payment",
  client_reference_id: "invoice_1",
  metadata: { invoice: "invoice_1" },
  line_items: [
    { quantity: 2, price_data: { currency: "usd", unit_amount: 250, product_data: { name: "Ünï & co" } } },
  ],
  success_url: "http://127.0.0.1/back",
});
const create = (change: object, options?: Stripe.RequestOptions) =>
  stripe.checkout.sessions.create({ ...good(), ...change }, options);

describe("the local Stripe", () => {
  it("opens, shows and expires a checkout as the SDK understands it", async () => {
    const session = await create({});
    expect(session).toMatchObject({
      amount_total: 500,
      payment_status: "unpaid",
      status: "open",
      livemode: false,
    });
    server.pay(session.id);
    const shown = await stripe.checkout.sessions.retrieve(session.id, { expand: ["payment_intent"] });
    expect(shown).toMatchObject({
      payment_status: "paid",
      payment_intent: { status: "succeeded", amount: 500 },
    });
    await expect(stripe.checkout.sessions.expire(session.id)).rejects.toThrow(/status of `complete`/);
    const other = await create({});
    expect((await stripe.checkout.sessions.expire(other.id)).status).toBe("expired");
    await expect(stripe.checkout.sessions.retrieve("cs_none")).rejects.toMatchObject({
      code: "resource_missing",
    });
  });

  it.each([
    ["an unknown parameter", { colour: "red" }, "parameter_unknown"],
    [
      "an unknown parameter inside",
      {
        line_items: [
          {
            ...good().line_items?.[0],
            price_data: { currency: "usd", unit_amount: 1000, product_data: { name: "a", size: 1 } },
          },
        ],
      },
      "parameter_unknown",
    ],
    ["a missing parameter", { success_url: undefined }, "parameter_missing"],
    ["no items", { line_items: undefined }, "parameter_missing"],
    [
      "a fraction of a cent",
      {
        line_items: [
          { quantity: 1, price_data: { currency: "usd", unit_amount: 99.5, product_data: { name: "a" } } },
        ],
      },
      "parameter_invalid_integer",
    ],
    [
      "less than can be charged",
      {
        line_items: [
          { quantity: 1, price_data: { currency: "usd", unit_amount: 49, product_data: { name: "a" } } },
        ],
      },
      "amount_too_small",
    ],
    [
      "less than can be charged in another currency",
      {
        line_items: [
          { quantity: 1, price_data: { currency: "nok", unit_amount: 299, product_data: { name: "a" } } },
        ],
      },
      "amount_too_small",
    ],
    ["a wrong type", { metadata: "text" }, undefined],
    ["a mode it does not have", { mode: "gift" }, undefined],
    ["an end too soon", { expires_at: Math.floor(Date.now() / 1000) + 60 }, undefined],
    ["an end too late", { expires_at: Math.floor(Date.now() / 1000) + 90_000 }, undefined],
  ])("refuses %s", async (_, change, code) => {
    const before = server.sessions.size;
    const refusal = await create(change).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(Stripe.errors.StripeInvalidRequestError);
    expect(refusal).toMatchObject({ statusCode: 400, ...(code && { code }) });
    expect(server.sessions.size).toBe(before);
  });

  it("refuses another key, and answers an idempotency key once", async () => {
    const stranger = new Stripe("sk_test_other", { ...address, protocol: "http", maxNetworkRetries: 0 });
    await expect(stranger.checkout.sessions.create(good())).rejects.toThrow(/Invalid API Key/);
    const first = await create({}, { idempotencyKey: "once" });
    expect((await create({}, { idempotencyKey: "once" })).id).toBe(first.id);
    await expect(create({ client_reference_id: "other" }, { idempotencyKey: "once" })).rejects.toBeInstanceOf(
      Stripe.errors.StripeIdempotencyError,
    );
    server.breakNext({ on: /sessions$/, acts: true });
    const before = server.sessions.size;
    await create({}, { idempotencyKey: "lost" });
    expect(server.sessions.size).toBe(before + 1);
  });

  it("gives back what was paid, and no more", async () => {
    const session = await create({});
    await expect(stripe.refunds.create({ payment_intent: "pi_none" })).rejects.toMatchObject({
      code: "resource_missing",
    });
    const paid = server.pay(session.id);
    const payment_intent = String(paid.data.object["payment_intent"]);
    await expect(stripe.refunds.create({ payment_intent, amount: 501 })).rejects.toThrow(/greater than/);
    expect(await stripe.refunds.create({ payment_intent, amount: 200 })).toMatchObject({
      status: "succeeded",
    });
    expect(await stripe.refunds.create({ payment_intent })).toMatchObject({ amount: 300 });
    await expect(stripe.refunds.create({ payment_intent })).rejects.toMatchObject({
      code: "charge_already_refunded",
    });
  });

  it("signs events as the SDK checks them", async () => {
    const { body, headers } = server.signed(server.events.at(-1) ?? server.tell("customer.created", {}));
    const signature = headers["Stripe-Signature"] ?? "";
    expect(stripe.webhooks.constructEvent(body, signature, "whsec_local").object).toBe("event");
    expect(() => stripe.webhooks.constructEvent(`${body} `, signature, "whsec_local")).toThrow(/signature/);
  });
});
