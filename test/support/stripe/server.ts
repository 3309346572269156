import { createHmac } from "node:crypto";
import { Stripe } from "stripe";
import { check, readForm, Refusal, type Rule, type Tree } from "./form.ts";

/** The API version of the SDK. */
const ApiVersion: string = Stripe.API_VERSION;

/** Parameters by the SDK's own names: a name the SDK does not have does not compile. */
type RulesOf<Params> = { [Name in keyof Params]?: Rule };

/** Stripe's minimum charges (docs.stripe.com/currencies), in the currency's smallest unit; 50 for others. */
const minimumAmounts: Record<string, number> = {
  aed: 200,
  czk: 1500,
  dkk: 250,
  gbp: 30,
  hkd: 400,
  huf: 17_500,
  mxn: 1000,
  myr: 200,
  nok: 300,
  pln: 200,
  ron: 200,
  sek: 300,
  thb: 1000,
};

const text = { kind: "string" } as const;
const metadata = { kind: "metadata" } as const;
const requiredObject = (fields: Record<string, Rule>): Rule => ({ kind: "object", required: true, fields });
const url: Rule = { kind: "string", pattern: /^https?:\/\/\S+$/ };

const sessionCreate: RulesOf<Stripe.Checkout.SessionCreateParams> = {
  mode: { kind: "string", required: true, oneOf: ["payment"] },
  client_reference_id: { kind: "string", pattern: /^.{1,200}$/ },
  metadata,
  payment_intent_data: {
    kind: "object",
    fields: { metadata } satisfies RulesOf<Stripe.Checkout.SessionCreateParams.PaymentIntentData>,
  },
  line_items: {
    kind: "list",
    required: true,
    of: requiredObject({
      quantity: { kind: "integer", required: true, min: 1 },
      price_data: requiredObject({
        currency: { kind: "string", required: true, pattern: /^[a-z]{3}$/ },
        unit_amount: { kind: "integer", required: true, min: 0, max: 99_999_999 },
        product_data: requiredObject({
          name: { kind: "string", required: true, pattern: /^[^]{1,250}$/ },
        } satisfies RulesOf<Stripe.Checkout.SessionCreateParams.LineItem.PriceData.ProductData>),
      } satisfies RulesOf<Stripe.Checkout.SessionCreateParams.LineItem.PriceData>),
    } satisfies RulesOf<Stripe.Checkout.SessionCreateParams.LineItem>),
  },
  adaptive_pricing: {
    kind: "object",
    fields: {
      enabled: { kind: "boolean" },
    } satisfies RulesOf<Stripe.Checkout.SessionCreateParams.AdaptivePricing>,
  },
  expires_at: { kind: "integer" },
  success_url: { ...url, required: true },
  cancel_url: url,
};
const expandOnly = { expand: { kind: "list", of: text } } as const;
const integer = { kind: "integer" } as const;
const eventList: RulesOf<Stripe.EventListParams> = {
  created: {
    kind: "object",
    fields: { gte: integer, lte: integer } satisfies RulesOf<Stripe.RangeQueryParam>,
  },
  types: { kind: "list", of: text },
  limit: { kind: "integer", min: 1, max: 100 },
  starting_after: text,
};
const refundCreate: RulesOf<Stripe.RefundCreateParams> = {
  payment_intent: { kind: "string", required: true, pattern: /^pi_\w+$/ },
  amount: { kind: "integer", min: 1 },
  metadata,
};

type Session = {
  id: string;
  object: "checkout.session";
  status: "open" | "complete" | "expired";
  payment_status: "paid" | "unpaid";
  amount_total: number;
  currency: string;
  client_reference_id: string | null;
  metadata: Record<string, string>;
  payment_intent: string | null;
  expires_at: number;
  livemode: boolean;
  mode: "payment";
  success_url: string;
  cancel_url: string | null;
  url: string | null;
};
type Intent = {
  id: string;
  object: "payment_intent";
  status: "succeeded" | "processing" | "requires_payment_method";
  amount: number;
  currency: string;
  metadata: Record<string, string>;
  refunded: number;
};
export type Event = {
  id: string;
  object: "event";
  type: Stripe.Event["type"];
  created: number;
  livemode: boolean;
  /** Endpoints that have not accepted it yet. */
  pending_webhooks?: number;
  data: { object: Record<string, unknown> };
};

/** A simulated failure. `acts`: Stripe has acted, but the answer is lost or wrong. */
type Fault = { on: RegExp; acts: boolean; answer: "none" | 429 | 500; times: number };

/** Ids are unique across all servers, like Stripe's. */
let made = 0;

type Options = { key: string; webhookSecret: string; now?: () => number };

const json = (body: unknown, status = 200, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(body), {
    status,
    headers: { "Content-Type": "application/json", "Request-Id": "req_local", ...headers },
  });
const refused = (refusal: Refusal, type = "invalid_request_error") =>
  json(
    { error: { type, code: refusal.code, param: refusal.param, message: refusal.message } },
    refusal.status,
  );

/**
 * The part of Stripe's API that Berth uses: refuses what Stripe refuses, keeps idempotency keys, and reports
 * everything in signed events. Pure: takes a Request and returns a Response; `serve.ts` puts it behind node:http.
 */
export class StripeServer {
  readonly sessions = new Map<string, Session>();
  readonly intents = new Map<string, Intent>();
  readonly refunds = new Map<string, Record<string, unknown>>();
  /** All events, in order. */
  readonly events: Event[] = [];
  readonly requests: string[] = [];
  endpoints: { url: string; status: "enabled" | "disabled"; enabled_events: string[] }[] = [];
  /** Idempotency keys as they arrived, `METHOD path key`. */
  readonly keys: string[] = [];
  /** Banks take their time: refunds are pending until `endRefund`. */
  refundsArePending = false;
  private readonly answers = new Map<string, { request: string; answer?: [string, number] }>();
  private readonly faults: Fault[] = [];

  readonly options: Options;
  constructor(options: Options) {
    this.options = options;
  }

  private get now(): number {
    return Math.floor((this.options.now?.() ?? Date.now()) / 1000);
  }
  private id = (prefix: string) => `${prefix}_${String(++made).padStart(8, "0")}`;
  private get livemode() {
    return this.options.key.startsWith("sk_live_");
  }

  breakNext(fault: Partial<Fault> & { on: RegExp }): void {
    this.faults.push({ acts: false, answer: "none", times: 1, ...fault });
  }

  /** Ends all faults. */
  mend(): void {
    this.faults.length = 0;
  }

  /** @throws where the connection breaks */
  async handle(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const body = new TextDecoder().decode(await request.arrayBuffer());
    this.requests.push(`${request.method} ${pathname}`);
    const fault = this.faults.find(({ on, times }) => times > 0 && on.test(`${request.method} ${pathname}`));
    if (fault) fault.times--;
    if (fault && !fault.acts) return this.broken(fault);
    const answer = await this.answer(request, pathname + search, body);
    return fault ? this.broken(fault) : answer;
  }

  private broken({ answer }: Fault): Response {
    if (answer === "none") throw new TypeError("The connection was lost");
    const type = answer === 429 ? "rate_limit_error" : "api_error";
    return json({ error: { type, message: "Injected" } }, answer);
  }

  private async answer(request: Request, path: string, body: string): Promise<Response> {
    if (request.headers.get("Authorization") !== `Bearer ${this.options.key}`)
      return refused(new Refusal("", "Invalid API Key provided", undefined, 401));
    if (request.method === "POST" && body !== "") {
      const type = request.headers.get("Content-Type");
      if (type !== "application/x-www-form-urlencoded")
        return refused(new Refusal("", `Invalid content type ${type}`));
    }
    if (request.headers.get("Stripe-Version") !== ApiVersion)
      return refused(new Refusal("", `Invalid Stripe API version: ${request.headers.get("Stripe-Version")}`));
    const key = request.headers.get("Idempotency-Key");
    this.keys.push(`${request.method} ${path} ${key}`);
    if (request.method !== "POST" || key === null) return this.act(request.method, path, body);
    const known = this.answers.get(key);
    const asked = `${request.method} ${path} ${body}`;
    if (known && known.request !== asked)
      return refused(
        new Refusal("", "Keys for idempotent requests can only be used with the same parameters."),
        "idempotency_error",
      );
    if (known && !known.answer)
      return refused(new Refusal("", "In use", "idempotency_key_in_use", 409), "idempotency_error");
    if (known?.answer) {
      const [text, status] = known.answer;
      return json(JSON.parse(text), status, { "Idempotent-Replayed": "true" });
    }
    const slot: { request: string; answer?: [string, number] } = { request: asked };
    this.answers.set(key, slot);
    // Others arrive while this one runs.
    await Promise.resolve();
    const answer = this.act(request.method, path, body);
    // A refusal of the parameters is not kept: nothing has started.
    if (answer.status === 400) this.answers.delete(key);
    else slot.answer = [await answer.clone().text(), answer.status];
    return answer;
  }

  private act(method: string, path: string, body: string): Response {
    const { pathname, search } = new URL(path, "http://stripe.local");
    try {
      const [, , , id, action] =
        pathname.match(/^\/(v1)\/(checkout\/sessions|refunds)(?:\/(\w+))?(?:\/(\w+))?$/) ?? [];
      if (method === "POST" && pathname === "/v1/checkout/sessions") return this.create(readForm(body));
      if (method === "POST" && pathname === "/v1/refunds") return this.refund(readForm(body));
      if (method === "GET" && pathname === `/v1/refunds/${id}`) {
        const refund = this.refunds.get(id ?? "");
        if (!refund) throw new Refusal("id", `No such refund: ${id}`, "resource_missing", 404);
        return json(refund);
      }
      if (method === "GET" && pathname === "/v1/webhook_endpoints") {
        check(
          readForm(search.slice(1)),
          { kind: "object", fields: { limit: { kind: "integer", min: 1, max: 100 } } },
          "",
        );
        return json({ object: "list", url: pathname, data: this.endpoints, has_more: false });
      }
      if (method === "GET" && pathname === "/v1/events") return this.list(readForm(search.slice(1)));
      const session = id === undefined ? undefined : this.sessions.get(id);
      if (pathname.startsWith("/v1/checkout/sessions/") && !session)
        throw new Refusal("session", `No such checkout.session: ${id}`, "resource_missing", 404);
      if (session && method === "GET" && action === undefined) {
        const query = readForm(search.slice(1));
        check(query, { kind: "object", fields: expandOnly }, "");
        return json(this.shown(session, Object.values((query["expand"] as Tree | undefined) ?? {})));
      }
      if (session && method === "POST" && action === "expire") {
        check(readForm(body), { kind: "object", fields: expandOnly }, "");
        if (session.status !== "open")
          throw new Refusal(
            "session",
            `Only Checkout Sessions with a status in ["open"] can be expired. This has a status of \`${session.status}\`.`,
          );
        this.expire(session.id);
        return json(this.shown(session));
      }
      throw new Refusal("", `Unrecognized request URL (${method}: ${pathname}).`, undefined, 404);
    } catch (error) {
      if (error instanceof Refusal) return refused(error);
      throw error;
    }
  }

  /** Newest first, page by page. */
  private list(query: Tree): Response {
    check(query, { kind: "object", fields: eventList }, "");
    const { gte = "0", lte = "Infinity" } = (query["created"] ?? {}) as { gte?: string; lte?: string };
    const types = Object.values((query["types"] as Tree | undefined) ?? {});
    const limit = Number(query["limit"] ?? 10);
    const all = this.events
      .filter(({ created, type }) => created >= Number(gte) && created <= Number(lte) && types.includes(type))
      .toReversed();
    const at = all.findIndex(({ id }) => id === query["starting_after"]) + 1;
    const data = all.slice(at, at + limit);
    return json({ object: "list", url: "/v1/events", data, has_more: at + limit < all.length });
  }

  private shown(session: Session, expand: unknown[] = []) {
    this.expireOld();
    for (const name of expand)
      if (name !== "payment_intent")
        throw new Refusal("expand", `This property cannot be expanded (${String(name)}).`);
    const intent = session.payment_intent === null ? null : this.intents.get(session.payment_intent);
    return { ...session, ...(expand.includes("payment_intent") && { payment_intent: intent ?? null }) };
  }

  private create(form: Tree): Response {
    check(form, { kind: "object", fields: sessionCreate }, "");
    const items = Object.values(form["line_items"] as Tree) as {
      quantity: string;
      price_data: { currency: string; unit_amount: string };
    }[];
    const currencies = new Set(items.map((item) => item.price_data.currency));
    const [currency = ""] = currencies;
    if (currencies.size !== 1) throw new Refusal("line_items", "All prices must have the same currency.");
    const total = items.reduce(
      (sum, { quantity, price_data }) => sum + Number(quantity) * Number(price_data.unit_amount),
      0,
    );
    const least = minimumAmounts[currency] ?? 50;
    if (total < least)
      throw new Refusal(
        "line_items",
        `The Checkout Session's total amount must be at least ${least} ${currency}.`,
        "amount_too_small",
      );
    const expiresAt = Number(form["expires_at"] ?? this.now + 86_400);
    if (expiresAt < this.now + 1800 || expiresAt > this.now + 86_400)
      throw new Refusal("expires_at", "The `expires_at` timestamp must be 30 minutes to 24 hours ahead.");
    const id = this.id(this.livemode ? "cs_live" : "cs_test");
    const session: Session = {
      id,
      object: "checkout.session",
      status: "open",
      payment_status: "unpaid",
      amount_total: total,
      currency,
      client_reference_id: (form["client_reference_id"] as string | undefined) ?? null,
      metadata: (form["metadata"] as Record<string, string> | undefined) ?? {},
      payment_intent: null,
      expires_at: expiresAt,
      livemode: this.livemode,
      mode: "payment",
      success_url: form["success_url"] as string,
      cancel_url: (form["cancel_url"] as string | undefined) ?? null,
      url: `https://checkout.stripe.com/c/pay/${id}`,
    };
    this.sessions.set(id, session);
    return json(session);
  }

  private refund(form: Tree): Response {
    check(form, { kind: "object", fields: refundCreate }, "");
    const intent = this.intents.get(form["payment_intent"] as string);
    if (!intent) throw new Refusal("payment_intent", "No such payment_intent", "resource_missing", 404);
    if (intent.status !== "succeeded")
      throw new Refusal("payment_intent", "This PaymentIntent does not have a successful charge to refund.");
    const left = intent.amount - intent.refunded;
    if (left === 0)
      throw new Refusal("charge", "Charge has already been refunded.", "charge_already_refunded");
    const amount = Number(form["amount"] ?? left);
    if (amount > left)
      throw new Refusal("amount", "Refund amount is greater than unrefunded amount on charge");
    return json(
      this.giveBack(intent, amount, (form["metadata"] as Record<string, string> | undefined) ?? {}),
    );
  }

  private giveBack(intent: Intent, amount: number, metadata: Record<string, string>) {
    const refund = {
      id: this.id("re"),
      object: "refund",
      amount,
      currency: intent.currency,
      payment_intent: intent.id,
      charge: `ch_${intent.id}`,
      status: this.refundsArePending ? "pending" : "succeeded",
      failure_reason: null as string | null,
      metadata,
    };
    intent.refunded += amount;
    this.refunds.set(refund.id, refund);
    this.tell("charge.refunded", {
      id: `ch_${intent.id}`,
      object: "charge",
      payment_intent: intent.id,
      amount: intent.amount,
      amount_refunded: intent.refunded,
      currency: intent.currency,
    });
    return refund;
  }

  tell(type: Event["type"], object: object, overrides: Partial<Event> = {}): Event {
    const { livemode, now: created } = this;
    const data = { object: structuredClone(object) as Record<string, unknown> };
    const event: Event = { id: this.id("evt"), object: "event", type, created, livemode, data, ...overrides };
    this.events.push(event);
    return event;
  }

  /** The customer pays on Stripe's page; `later`: by a method whose money arrives days later. */
  pay(sessionId: string, later = false): Event {
    this.expireOld();
    const session = this.sessions.get(sessionId);
    if (session?.status !== "open") throw new Error(`${sessionId} is ${session?.status ?? "unknown"}`);
    const intent: Intent = {
      id: this.id("pi"),
      object: "payment_intent",
      status: later ? "processing" : "succeeded",
      amount: session.amount_total,
      currency: session.currency,
      metadata: session.metadata,
      refunded: 0,
    };
    this.intents.set(intent.id, intent);
    Object.assign(session, {
      status: "complete",
      payment_status: later ? "unpaid" : "paid",
      payment_intent: intent.id,
      url: null,
    });
    return this.tell("checkout.session.completed", session);
  }

  /** The outcome of a payment by a delayed method. */
  end(sessionId: string, isPaid: boolean): Event {
    const session = this.sessions.get(sessionId);
    const intent = session?.payment_intent ? this.intents.get(session.payment_intent) : undefined;
    if (!session || intent?.status !== "processing") throw new Error(`${sessionId} waits for nothing`);
    intent.status = isPaid ? "succeeded" : "requires_payment_method";
    if (isPaid) session.payment_status = "paid";
    return this.tell(
      isPaid ? "checkout.session.async_payment_succeeded" : "checkout.session.async_payment_failed",
      session,
    );
  }

  expire(sessionId: string): Event | null {
    const session = this.sessions.get(sessionId);
    if (session?.status !== "open") return null;
    Object.assign(session, { status: "expired", url: null });
    return this.tell("checkout.session.expired", session);
  }

  private expireOld(): void {
    for (const session of this.sessions.values()) if (session.expires_at <= this.now) this.expire(session.id);
  }

  /** A manual refund on Stripe's own pages. */
  refundByHand(paymentIntent: string, amount: number): Event {
    const intent = this.intents.get(paymentIntent);
    if (!intent) throw new Error(`There is no ${paymentIntent}`);
    this.giveBack(intent, amount, {});
    return this.events.at(-1) as Event;
  }

  /** The outcome of a pending refund. */
  endRefund(id: string, isPaid: boolean): Event {
    const refund = this.refunds.get(id);
    const intent = this.intents.get(String(refund?.["payment_intent"]));
    if (refund?.["status"] !== "pending" || !intent) throw new Error(`${id} waits for nothing`);
    Object.assign(
      refund,
      isPaid ? { status: "succeeded" } : { status: "failed", failure_reason: "declined" },
    );
    if (!isPaid) intent.refunded -= Number(refund["amount"]);
    return this.tell(isPaid ? "refund.updated" : "refund.failed", refund);
  }

  /** Sends an event until it is acknowledged, as Stripe does for three days. @returns all responses */
  async deliver(event: Event, send: (event: Event) => Promise<number>): Promise<number[]> {
    const answers: number[] = [];
    while (answers.length < 5 && !answers.some((status) => status < 300)) answers.push(await send(event));
    return answers;
  }

  /** The event as it is sent to the webhook. */
  signed(
    event: Event,
    { secret = this.options.webhookSecret, ageSeconds = 0 } = {},
  ): { body: string; headers: Record<string, string> } {
    const body = JSON.stringify({ ...event, api_version: ApiVersion, pending_webhooks: 1 });
    const at = this.now - ageSeconds;
    const signature = createHmac("sha256", secret).update(`${at}.${body}`).digest("hex");
    return {
      body,
      headers: {
        "Content-Type": "application/json; charset=utf-8",
        "Stripe-Signature": `t=${at},v1=${signature}`,
      },
    };
  }
}
