import { vi } from "vitest";
import { app } from "../../worker/app.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Ctx } from "../../worker/ctx.ts";
import type { Env } from "../../worker/env.ts";
import { StripeServer, type Event } from "../support/stripe/server.ts";
import { api, bindings, siteUrl } from "./service.ts";

const stripeHost = "https://stripe.test:12111";

/** This Worker with Stripe as its processor: the SDK itself, over fetch, against the local server. */
export function stripeService(key = "sk_test_local", overrides: Record<string, unknown> = {}) {
  const stripe = new StripeServer({ key, webhookSecret: "whsec_local" });
  vi.spyOn(globalThis, "fetch").mockImplementation((input, init) => {
    const request = new Request(input, init);
    if (!request.url.startsWith(stripeHost)) throw new Error(`Nobody expected ${request.url}`);
    return stripe.handle(request);
  });
  const env = {
    ...bindings,
    PAYMENTS: "stripe",
    STRIPE_SECRET_KEY: key,
    STRIPE_WEBHOOK_SECRET: "whsec_local",
    STRIPE_API_HOST: stripeHost,
    ...overrides,
  } as Env;
  const deferred: Promise<unknown>[] = [];
  const execution = {
    waitUntil: (work: Promise<unknown>) => void deferred.push(work),
    passThroughOnException: () => undefined,
    props: {},
  };
  const call = async (path: string, init?: RequestInit) =>
    app.fetch(new Request(siteUrl + path, init), env, execution);
  const json = { headers: { Accept: "application/json" } };
  return {
    stripe,
    env,
    call,
    /** The customer presses the button: the session that is open now. */
    async open(token: string): Promise<string> {
      const response = await call(`/invoice/${token}/pay`, { method: "POST", ...json });
      const body = await response.json<{ url?: string; reason?: string }>();
      if (!body.url) throw new Error(`pay answered ${response.status}: ${JSON.stringify(body)}`);
      return body.url.split("/").at(-1) ?? "";
    },
    pay: (token: string) => call(`/invoice/${token}/pay`, { method: "POST", ...json }),
    invoice: async (token: string, query = "") =>
      (await call(`/invoice/${token}${query}`, json)).json<{
        id: string;
        status: string;
        amountCents: number;
      }>(),
    async send(event: Event, how: Parameters<StripeServer["signed"]>[1] = {}): Promise<number> {
      const { body, headers } = stripe.signed(event, how);
      return (await call("/webhooks/stripe", { method: "POST", body, headers })).status;
    },
    ctx: (laterMs = 0): Ctx => ({
      ...contextOf(env, { type: "system" }, () => undefined),
      now: () => new Date(Date.now() + laterMs),
    }),
    async asOperator(operatorKey: string, method: string, path: string, body?: unknown) {
      const response = await call(`/api/v1${path}`, {
        method,
        headers: { Authorization: `Bearer ${operatorKey}`, "Content-Type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json<Record<string, unknown>>() };
    },
  };
}
export type StripeService = ReturnType<typeof stripeService>;

export const smallPackage = "cpk_001k0000000000000000000001";

export async function buyCredits(key: string, packageId = smallPackage) {
  const { status, body } = await api<{ invoiceToken: string; invoiceId: string }>(
    key,
    "POST",
    "/credits/purchase",
    { packageId },
  );
  if (status !== 201) throw new Error(`purchase answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

type CreditsAnswer = {
  balance: number;
  transactions: { id: string; type: string; amount: number; createdAt: string }[];
};
export const credits = async (key: string): Promise<CreditsAnswer> =>
  (await api<CreditsAnswer>(key, "GET", "/credits")).body;

export const rows = async <Row = Record<string, unknown>>(query: string, ...values: unknown[]) =>
  (
    await bindings.DB.prepare(query)
      .bind(...values)
      .all<Row>()
  ).results;

export const flagsOf = async (invoiceId: string): Promise<string[]> =>
  (
    await rows<{ reason: string }>(
      "SELECT reason FROM payment_flags WHERE invoice_id = ? ORDER BY reason",
      invoiceId,
    )
  ).map(({ reason }) => reason);
