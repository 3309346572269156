import { voidExpiredHolds } from "./billing/credits/void-hold.ts";
import { voidOverdue } from "./billing/invoices/void.ts";
import { mayLackPayments, readEvents } from "./billing/payments/read-events.ts";
import { reconcilePayments } from "./billing/payments/reconcile.ts";
import { changeDue } from "./billing/terms/change-due.ts";
import { deleteExpired } from "./billing/terms/delete-expired.ts";
import { reconcileSuspended } from "./billing/terms/reconcile-suspended.ts";
import { issueRenewals } from "./billing/terms/issue.ts";
import { remindOwners } from "./billing/terms/remind.ts";
import { resumeReleased } from "./billing/terms/resume.ts";
import { suspendOfAccounts, suspendOverdue } from "./billing/terms/suspend.ts";
import type { Ctx } from "./ctx.ts";
import { reconcileBackups } from "./jobs/backups/reconcile.ts";
import { endOrphans, tellOrphans } from "./jobs/commands/cancel-all.ts";
import { purgeOldCommands } from "./jobs/commands/purge-old.ts";
import { reconcileDatabases } from "./jobs/databases/reconcile.ts";
import { purgeEachHour } from "./jobs/purge-old.ts";
import { reconcileCertificates } from "./jobs/certificates/reconcile.ts";
import { reconcileDns } from "./jobs/dns/reconcile.ts";
import { giveBackTime } from "./jobs/give-back-time.ts";
import { disconnectRemoved } from "./jobs/hosts/disconnect-removed.ts";
import { evictLeft } from "./jobs/hosts/evict-left.ts";
import { giveUpSilentMoves } from "./jobs/hosts/give-up-moves.ts";
import { tellForwarding } from "./jobs/hosts/peers.ts";
import { moveSites } from "./jobs/hosts/move-sites.ts";
import { reapJobs } from "./jobs/reap.ts";
import { logError } from "./log-error.ts";
import { sendDueMails } from "./mails/send-due.ts";
import { forgetOldActivity } from "./services/activity/forget-old.ts";
import { forgetOldChanges } from "./services/events/forget-old.ts";
import { forgetOldConversations } from "./services/chat/conversations.ts";
import { forgetEndedSessions } from "./services/accounts/forget-ended-sessions.ts";
import { finishAccountChanges } from "./services/accounts/tell-guards.ts";
import { lookAtDueDomains } from "./services/domains/look-due.ts";
import { sendDueNotifications } from "./services/notifications/send-due.ts";
import { takeNotices } from "./services/notifications/take-notices.ts";
import { purgeOldRequests } from "./services/idempotency/purge-old.ts";
import { finishRevocations } from "./services/keys/finish-revocations.ts";
import { runDueSchedules } from "./services/schedules/run-due.ts";

/** Each minute, every task runs by itself. All of them may be interrupted anywhere and run again. */
const tasks: Record<string, (ctx: Ctx) => Promise<void>> = {
  hosts: async (ctx) => {
    await giveBackTime(ctx);
    try {
      // A site's record is deleted only after the host that it left has removed its copy.
      await reconcileHosts(ctx);
    } finally {
      await reapJobs(ctx);
    }
  },
  databases: reconcileDatabases,
  backups: reconcileBackups,
  commands: async (ctx) => {
    try {
      await runDueSchedules(ctx);
    } finally {
      tellOrphans(ctx, await endOrphans(ctx));
      await purgeOldCommands(ctx);
    }
  },
  domains: lookAtDueDomains,
  requests: purgeOldRequests,
  activity: forgetOldActivity,
  events: forgetOldChanges,
  notifications: async (ctx) => {
    try {
      await takeNotices(ctx);
    } finally {
      await sendDueNotifications(ctx);
    }
  },
  conversations: forgetOldConversations,
  money: async (ctx) => {
    try {
      // A payment that arrived in time counts before anything is suspended.
      await reconcileBilling(ctx);
    } finally {
      await reconcileTerms(ctx);
    }
  },
  dns: runDns,
  jobs: purgeEachHour,
  keys: finishRevocations,
  accounts: finishAccountChanges,
  sessions: forgetEndedSessions,
};

export const runTasks = (ctx: Ctx): Promise<void>[] =>
  Object.entries(tasks).map(([name, task]) => run(ctx, name, task));

/** workerd logs the rejection verbatim, so it is a short pointer to the line that we log ourselves. */
async function run(ctx: Ctx, name: string, task: (ctx: Ctx) => Promise<void>): Promise<void> {
  await task(ctx).catch((error: unknown) => {
    logError({ task: name }, error);
    throw new Error(`The timer's task "${name}" failed, as the line before says`);
  });
}

/** A new order's challenge is published at once. */
export async function runDns(ctx: Ctx): Promise<void> {
  try {
    await reconcileDns(ctx);
  } finally {
    if (await reconcileCertificates(ctx)) await reconcileDns(ctx);
  }
}

export async function reconcileHosts(ctx: Ctx): Promise<void> {
  await giveUpSilentMoves(ctx);
  await disconnectRemoved(ctx);
  await evictLeft(ctx);
  await tellForwarding(ctx);
  await moveSites(ctx);
}

/** Payments that arrived in time count before any invoice is void. */
export async function reconcileBilling(ctx: Ctx): Promise<void> {
  try {
    try {
      await readEvents(ctx);
    } finally {
      await reconcilePayments(ctx);
    }
  } finally {
    await oncePaymentsAreRead(voidOverdue)(ctx);
    await voidExpiredHolds(ctx);
  }
}

/** What was paid may be in the part of the processor's list that is not read yet. */
const oncePaymentsAreRead = (step: (ctx: Ctx) => Promise<void>) => async (ctx: Ctx) => {
  if (!(await mayLackPayments(ctx))) await step(ctx);
};

/** In the order of a term's life. Each step is repeatable, and none waits for another that fails. */
const termSteps = [
  // It voids an unpaid change.
  oncePaymentsAreRead(issueRenewals),
  oncePaymentsAreRead(suspendOverdue),
  (ctx: Ctx) => suspendOfAccounts(ctx),
  (ctx: Ctx) => resumeReleased(ctx),
  oncePaymentsAreRead(remindOwners),
  oncePaymentsAreRead(deleteExpired),
  changeDue,
  reconcileSuspended,
  sendDueMails,
];

export async function reconcileTerms(ctx: Ctx): Promise<void> {
  const failures: unknown[] = [];
  for (const step of termSteps) await step(ctx).catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw new AggregateError(failures, "Not every step of the terms succeeded");
}
