import type { Ctx } from "../../context.ts";
import { sendDueMails } from "../../mails/send-due.ts";
import { changeDue } from "../../billing/terms/change-due.ts";
import { deleteExpired } from "../../billing/terms/delete-expired.ts";
import { healSuspended } from "../../billing/terms/heal-suspended.ts";
import { issueRenewals } from "../../billing/terms/issue.ts";
import { remindOwners } from "../../billing/terms/remind.ts";
import { suspendOverdue } from "../../billing/terms/suspend.ts";

/** In the order of a term's life. Every step is idempotent and independent of failures of the others. */
const steps = [
  issueRenewals,
  suspendOverdue,
  remindOwners,
  deleteExpired,
  changeDue,
  healSuspended,
  sendDueMails,
];

/** Run by cron. */
export async function tendTerms(ctx: Ctx): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) await step(ctx).catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw new AggregateError(failures, "Some term tasks failed");
}
