import type { Config } from "../../config.ts";
import type { Payments } from "./payments.ts";
import { stripePayments } from "./stripe.ts";
import { testPayments } from "./test.ts";

const known = new WeakMap<Config, Payments>();

/** The installation's payment processor, created once per isolate. */
export function paymentsOf(config: Config, db: D1Database, now: () => Date): Payments {
  let payments = known.get(config);
  if (!payments) {
    const { PAYMENTS, STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET, STRIPE_API_HOST, SITE_URL } = config;
    payments =
      PAYMENTS === "stripe" && STRIPE_SECRET_KEY && STRIPE_WEBHOOK_SECRET
        ? stripePayments({
            secretKey: STRIPE_SECRET_KEY,
            webhookSecret: STRIPE_WEBHOOK_SECRET,
            apiHost: STRIPE_API_HOST,
          })
        : testPayments(db, SITE_URL, now);
    known.set(config, payments);
  }
  return payments;
}
