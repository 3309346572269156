import type { PaymentsChecked } from "../../../protocol/api/system.ts";
import type { Ctx } from "../../ctx.ts";

/** Asks the payment processor; it changes nothing there. */
export async function checkPayments({ payments, config, now }: Ctx): Promise<PaymentsChecked> {
  const problems = await payments.check(`${config.SITE_URL}/webhooks/stripe`, now());
  return { processor: payments.name, problems };
}
