import type { Ctx } from "../../context.ts";
import { voidExpiredHolds } from "../../billing/credits/void-hold.ts";
import { voidOverdue } from "../../billing/invoices/void.ts";
import { readEvents } from "../../billing/payments/read-events.ts";
import { reconcilePayments } from "../../billing/payments/reconcile.ts";

/** Run by cron. Payments are queried before invoices become void, so that timely payments count. */
export async function tendBilling(ctx: Ctx): Promise<void> {
  try {
    await hearOfPayments(ctx);
  } finally {
    await voidOverdue(ctx);
    await voidExpiredHolds(ctx);
  }
}

async function hearOfPayments(ctx: Ctx): Promise<void> {
  try {
    await readEvents(ctx);
  } finally {
    await reconcilePayments(ctx);
  }
}
