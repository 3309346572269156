import type { Ctx } from "../../context.ts";
import { voidExpiredHolds } from "../credits/void-hold.ts";
import { voidOverdue } from "../invoices/void.ts";
import { readEvents } from "./read-events.ts";
import { reconcilePayments } from "./reconcile.ts";

/** By cron. What was paid in time is heard of before anything is void. */
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
