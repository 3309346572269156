import type { PaymentsChecked } from "../../../protocol/api/system.ts";
import type { Ctx } from "../../ctx.ts";

/** Asks the payment processor; it changes nothing there. */
export async function checkPayments(ctx: Ctx): Promise<PaymentsChecked> {
  const problems = await ctx.payments.check(`${ctx.config.SITE_URL}/webhooks/stripe`, ctx.now());
  return { processor: ctx.payments.name, problems };
}
