import { app } from "./app.ts";
import { contextOf } from "./compose.ts";
import { runTasks } from "./cron.ts";
import type { Env } from "./env.ts";

export { AccountEvents } from "./objects/account-events.ts";
export { Conversation } from "./objects/conversation.ts";
export { DeploymentLog } from "./objects/deployment-log.ts";
export { DeviceCode } from "./objects/device-code.ts";
export { HostLink } from "./objects/host-link.ts";
export { KeyGuard } from "./objects/key-guard.ts";
export { PendingCall } from "./objects/pending-call.ts";
export { RateLimit } from "./objects/rate-limit.ts";

export default {
  fetch: app.fetch,
  scheduled: (_event, env, execution): void => {
    const ctx = contextOf(env, { type: "system" }, (work) => execution.waitUntil(work));
    // One promise for each task: waiting for all in one would end the others with the first that fails.
    for (const task of runTasks(ctx)) execution.waitUntil(task);
  },
} satisfies ExportedHandler<Env>;
