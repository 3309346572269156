import { eq, sql } from "drizzle-orm";
import type { BillingDetails, BillingDetailsPatch } from "../../../protocol/api/settings.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { billingDetails } from "../../db/schema.ts";

export const noDetails: BillingDetails = { name: null, address: null, country: null, vatId: null };

const detailsById = (ctx: Ctx) =>
  ctx.db
    .select({ details: billingDetails.details })
    .from(billingDetails)
    .where(eq(billingDetails.accountId, accountOf(ctx)));

/** The buyer on the account's future invoices. */
export async function getBillingDetails(ctx: Ctx): Promise<BillingDetails> {
  const [row] = await detailsById(ctx);
  return { ...noDetails, ...row?.details };
}

/** Changes the fields that are named. Invoices that exist stay as they are. */
export async function changeBillingDetails(ctx: Ctx, patch: BillingDetailsPatch): Promise<BillingDetails> {
  const text = JSON.stringify(patch);
  const now = ctx.now().getTime();
  const {
    changed: [changed],
  } = await batch(ctx, {
    write: ctx.statement(sql`
      INSERT INTO billing_details (account_id, details, updated_at)
      VALUES (${accountOf(ctx)}, json_patch('{}', ${text}), ${now})
      ON CONFLICT (account_id) DO UPDATE SET details = json_patch(details, ${text}), updated_at = ${now}`),
    changed: detailsById(ctx),
  });
  return { ...noDetails, ...changed?.details };
}
