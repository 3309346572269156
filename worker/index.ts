import { app } from "./app.ts";
import { contextOf, type Ctx } from "./context.ts";
import type { Env } from "./env.ts";
import { logError } from "./log-error.ts";
import { endOrphans, tellOrphans } from "./jobs/commands/cancel-all.ts";
import { forgetOldCommands } from "./jobs/commands/forget-old.ts";
import { finishAccountChanges } from "./services/accounts/tell-guards.ts";
import { tendBackups } from "./jobs/backups/reconcile.ts";
import { tendDatabases } from "./jobs/databases/reconcile.ts";
import { tendHosts } from "./services/hosts/tend.ts";
import { forgetOldActivity } from "./services/activity/forget-old.ts";
import { forgetOldRequests } from "./services/idempotency/forget-old.ts";
import { forgetOldJobs } from "./jobs/forget-old.ts";
import { giveBackTime } from "./jobs/give-back-time.ts";
import { reapJobs } from "./jobs/reap.ts";
import { finishRevocations } from "./services/keys/finish-revocations.ts";
import { runDueSchedules } from "./services/schedules/run-due.ts";
import { tendTerms } from "./services/terms/tend.ts";
import { tendBilling } from "./services/payments/tend.ts";

export { DeploymentLog } from "./objects/deployment-log.ts";
export { DeviceCode } from "./objects/device-code.ts";
export { HostLink } from "./objects/host-link.ts";
export { KeyGuard } from "./objects/key-guard.ts";
export { RateLimit } from "./objects/rate-limit.ts";

/** What a move left behind is cleaned up before a site's record may go. */
async function tend(ctx: Ctx): Promise<void> {
  await giveBackTime(ctx);
  try {
    await tendHosts(ctx);
  } finally {
    await reapJobs(ctx);
  }
}

/** Also where nothing is due: what was interrupted half-way ends, and old records go. */
async function tendCommands(ctx: Ctx): Promise<void> {
  try {
    await runDueSchedules(ctx);
  } finally {
    tellOrphans(ctx, await endOrphans(ctx));
    await forgetOldCommands(ctx);
  }
}

/** What was paid in time is heard of before anything is suspended. */
async function tendMoney(ctx: Ctx): Promise<void> {
  try {
    await tendBilling(ctx);
  } finally {
    await tendTerms(ctx);
  }
}

const tasks = {
  hosts: tend,
  databases: tendDatabases,
  backups: tendBackups,
  commands: tendCommands,
  requests: forgetOldRequests,
  activity: forgetOldActivity,
  money: tendMoney,
  jobs: forgetOldJobs,
  keys: finishRevocations,
  accounts: finishAccountChanges,
};

/** The platform logs what a timer ends with as it is, so that says where to look, and our own line says what happened. */
async function run(ctx: Ctx, name: string, task: (ctx: Ctx) => Promise<void>): Promise<void> {
  await task(ctx).catch((error: unknown) => {
    logError({ task: name }, error);
    throw new Error(`The timer's task "${name}" failed, as the line before says`);
  });
}

export default {
  fetch: app.fetch,
  scheduled: (_event, env, execution): void => {
    const ctx = contextOf(env, { type: "system" }, (work) => execution.waitUntil(work));
    // One promise each: the first one that is refused would end what the others still do.
    for (const [name, task] of Object.entries(tasks)) execution.waitUntil(run(ctx, name, task));
  },
} satisfies ExportedHandler<Env>;
