import type { Stripe } from "stripe";
import { isLiveKey } from "../../config.ts";
import {
  BadSignature,
  ProcessorRefused,
  UnknownCheckout,
  type News,
  type Payments,
  type Session,
} from "./payments.ts";

type Settings = { secretKey: string; webhookSecret: string; apiHost: string };

/** 100 kB that few requests need: loaded on first use. */
const load = () => import("stripe");
let cryptoProvider: ReturnType<typeof Stripe.createSubtleCryptoProvider> | undefined;

/** Older events are rejected, which limits replays. */
const toleranceSeconds = 300;

const idOf = (value: string | { id: string } | null | undefined): string | null =>
  typeof value === "string" ? value : (value?.id ?? null);

function statusOf(session: Stripe.Checkout.Session): Session["status"] {
  if (session.payment_status === "paid") return "paid";
  if (session.status === "expired") return "expired";
  if (session.status === "open") return "open";
  const intent = session.payment_intent;
  const isOver =
    intent !== null &&
    typeof intent === "object" &&
    ["requires_payment_method", "canceled"].includes(intent.status);
  return isOver ? "failed" : "processing";
}

function sessionOf(session: Stripe.Checkout.Session): Session {
  const named = session.metadata?.["invoice"];
  return {
    id: session.id,
    url: session.url,
    status: statusOf(session),
    isLive: session.livemode,
    invoiceId: named !== undefined && named === session.client_reference_id ? named : null,
    paymentReference: idOf(session.payment_intent),
    amountCents: session.amount_total,
    currency: session.currency,
  };
}

/** The event types that `newsOf` handles. */
const toldTypes = [
  "checkout.session.completed",
  "checkout.session.async_payment_succeeded",
  "checkout.session.async_payment_failed",
  "checkout.session.expired",
  "charge.refunded",
  "refund.failed",
  "refund.updated",
  "charge.refund.updated",
  "charge.dispute.created",
  "charge.dispute.updated",
  "charge.dispute.closed",
  "charge.dispute.funds_withdrawn",
  "charge.dispute.funds_reinstated",
];

const dayMs = 86_400_000;
/** An event that is younger may still be on its way. */
const slowMs = 10 * 60_000;

/** What is wrong with the endpoint of this address; null: nothing. */
function endpointProblem(endpoints: readonly Stripe.WebhookEndpoint[], webhookUrl: string): string | null {
  const mine = endpoints.filter(({ url }) => url === webhookUrl);
  if (mine.length === 0)
    return `Stripe has no webhook endpoint ${webhookUrl}: create one, and set STRIPE_WEBHOOK_SECRET to its signing secret.`;
  const enabled = mine.filter(({ status }) => status === "enabled");
  if (enabled.length === 0) return `The webhook endpoint ${webhookUrl} is disabled: enable it in Stripe.`;
  const told = new Set<string>(enabled.flatMap(({ enabled_events }) => enabled_events));
  const missing = toldTypes.filter((type) => !told.has(type) && !told.has("*"));
  return missing.length === 0
    ? null
    : `The webhook endpoint ${webhookUrl} is not told of ${missing.join(", ")}: add these events in Stripe.`;
}

const eventOf = (event: Stripe.Event, body: string) => ({
  id: event.id,
  type: event.type,
  isLive: event.livemode,
  createdAt: new Date(event.created * 1000),
  news: newsOf(event),
  body,
});

/** The content of an event. The services handle order and repetition. */
function newsOf(event: Stripe.Event): News {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- Stripe tells of hundreds of things that are not ours.
  switch (event.type) {
    case "checkout.session.completed":
    case "checkout.session.async_payment_succeeded":
    case "checkout.session.expired":
      return { kind: "session", session: sessionOf(event.data.object) };
    case "checkout.session.async_payment_failed":
      return { kind: "session", session: { ...sessionOf(event.data.object), status: "failed" } };
    case "charge.refunded": {
      const { payment_intent, id, amount_refunded, currency } = event.data.object;
      return {
        kind: "refunded",
        paymentReference: idOf(payment_intent) ?? id,
        amountCents: amount_refunded,
        currency,
      };
    }
    case "refund.failed":
    case "refund.updated":
    case "charge.refund.updated": {
      const { id, status, payment_intent, charge, amount, currency } = event.data.object;
      if (status !== "failed" && status !== "canceled") return { kind: "other" };
      const paymentReference = idOf(payment_intent) ?? idOf(charge) ?? id;
      return { kind: "refund_failed", reference: id, paymentReference, amountCents: amount, currency };
    }
    case "charge.dispute.created":
    case "charge.dispute.updated":
    case "charge.dispute.closed":
    case "charge.dispute.funds_withdrawn":
    case "charge.dispute.funds_reinstated": {
      const { id, payment_intent, charge, amount, currency, status, reason } = event.data.object;
      const paymentReference = idOf(payment_intent) ?? idOf(charge) ?? id;
      return { kind: "dispute", id, paymentReference, amountCents: amount, currency, status, reason };
    }
    default:
      return { kind: "other" };
  }
}

export function stripePayments({ secretKey, webhookSecret, apiHost }: Settings): Payments {
  const { hostname, port, protocol } = new URL(apiHost);
  const isLive = isLiveKey(secretKey);
  let client: Stripe | undefined;
  const stripe = async () => {
    const { Stripe } = await load();
    return (client ??= new Stripe(secretKey, {
      // Wrapped because workerd's fetch must be called on the global object.
      httpClient: Stripe.createFetchHttpClient((...args: Parameters<typeof fetch>) => fetch(...args)),
      host: hostname,
      port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
      protocol: protocol === "https:" ? "https" : "http",
      maxNetworkRetries: 2,
      timeout: 10_000,
      telemetry: false,
    }));
  };

  /** @throws ProcessorRefused if Stripe definitely refused; after any other error the outcome is unknown */
  async function refusing<T>(ask: (stripe: Stripe) => Promise<T>): Promise<T> {
    try {
      return await ask(await stripe());
    } catch (error) {
      const { Stripe } = await load();
      if (error instanceof Stripe.errors.StripeInvalidRequestError && error.code === "resource_missing")
        throw new UnknownCheckout(error.message, { cause: error });
      // 409: the first request with this key is still in progress. 429: rate limited. Neither is a definite refusal.
      if (
        error instanceof Stripe.errors.StripeError &&
        error.statusCode !== undefined &&
        ![409, 429].includes(error.statusCode)
      )
        throw new ProcessorRefused(error.message, { cause: error });
      throw error;
    }
  }
  const retrieve = (id: string) =>
    refusing(async (stripe) =>
      sessionOf(await stripe.checkout.sessions.retrieve(id, { expand: ["payment_intent"] })),
    );

  return {
    name: "stripe",
    isLive,
    createCheckout: ({ key, id, invoiceId, description, amountCents, currency, expiresAt, returnUrl }) =>
      refusing(async (stripe) =>
        sessionOf(
          await stripe.checkout.sessions.create(
            {
              mode: "payment",
              client_reference_id: invoiceId,
              metadata: { invoice: invoiceId, checkout: id },
              payment_intent_data: { metadata: { invoice: invoiceId, checkout: id } },
              line_items: [
                {
                  quantity: 1,
                  price_data: { currency, unit_amount: amountCents, product_data: { name: description } },
                },
              ],
              // Charges the invoice's amount in its currency.
              adaptive_pricing: { enabled: false },
              expires_at: Math.floor(expiresAt.getTime() / 1000),
              success_url: `${returnUrl}?returned=1`,
              cancel_url: returnUrl,
            },
            { idempotencyKey: key },
          ),
        ),
      ),
    retrieve,
    async expire(id) {
      try {
        return await refusing(async (stripe) => sessionOf(await stripe.checkout.sessions.expire(id)));
      } catch (error) {
        if (error instanceof ProcessorRefused) return retrieve(id);
        throw error;
      }
    },
    async refund({ id, invoiceId, paymentReference, amountCents, reference }) {
      try {
        const { refunds } = await stripe();
        // Creating it again would replay the first answer, so a known refund is retrieved instead.
        const refund =
          reference === null
            ? await refunds.create(
                {
                  payment_intent: paymentReference,
                  amount: amountCents,
                  metadata: { invoice: invoiceId, refund: id },
                },
                { idempotencyKey: id },
              )
            : await refunds.retrieve(reference);
        if (refund.status === "failed" || refund.status === "canceled")
          return {
            reference: refund.id,
            status: "failed",
            error: refund.failure_reason ?? "Stripe could not refund the payment",
          };
        return {
          reference: refund.id,
          status: refund.status === "succeeded" ? "done" : "pending",
          error: null,
        };
      } catch (error) {
        const { Stripe } = await load();
        if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) throw error;
        // The answer to our own first attempt may have been lost.
        if (error.code === "charge_already_refunded") return { reference: null, status: "done", error: null };
        return { reference: null, status: "failed", error: error.message };
      }
    },
    async readEvent(body, signature) {
      const { Stripe } = await load();
      cryptoProvider ??= Stripe.createSubtleCryptoProvider();
      let event: Stripe.Event;
      try {
        event = await (
          await stripe()
        ).webhooks.constructEventAsync(
          body,
          signature ?? "",
          webhookSecret,
          toleranceSeconds,
          cryptoProvider,
        );
      } catch (error) {
        throw new BadSignature("The signature is invalid, or the event is too old", { cause: error });
      }
      return eventOf(event, body);
    },
    async check(webhookUrl, now) {
      try {
        return await refusing(async (stripe) => {
          const { data: endpoints } = await stripe.webhookEndpoints.list({ limit: 100 });
          const wrong = endpointProblem(endpoints, webhookUrl);
          if (wrong !== null) return [wrong];
          const [gte, lte] = [now.getTime() - dayMs, now.getTime() - slowMs].map((at) =>
            Math.floor(at / 1000),
          );
          const { data } = await stripe.events.list({
            created: { gte: gte ?? 0, lte: lte ?? 0 },
            types: toldTypes,
            limit: 100,
          });
          const late = data.filter(({ pending_webhooks }) => pending_webhooks > 0).length;
          return late === 0
            ? []
            : [
                `Stripe could not deliver ${late} of the last day's events. STRIPE_WEBHOOK_SECRET may not be the signing secret of this endpoint: compare it with Stripe's page of the endpoint. Payments still count, because Berth reads the list of events.`,
              ];
        });
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        return [
          error instanceof ProcessorRefused
            ? `Stripe refuses the key STRIPE_SECRET_KEY: ${message}`
            : `Stripe does not answer: ${message}`,
        ];
      }
    },
    eventsBetween: (from, until) =>
      refusing(async (stripe) => {
        const [gte, lte] = [from, until].map((at) => Math.floor(at.getTime() / 1000)) as [number, number];
        const list = stripe.events.list({ created: { gte, lte }, types: toldTypes, limit: 100 });
        const events = [];
        for await (const event of list) events.push(eventOf(event, JSON.stringify(event)));
        return events;
      }),
  };
}
