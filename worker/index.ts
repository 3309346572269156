import { app } from "./app.ts";
import { contextOf } from "./context.ts";
import type { Env } from "./env.ts";
import { reapJobs } from "./services/jobs/reap.ts";

export { DeploymentLog } from "./objects/deployment-log.ts";
export { HostLink } from "./objects/host-link.ts";
export { KeyGuard } from "./objects/key-guard.ts";

export default {
  fetch: app.fetch,
  scheduled: (_event, env, execution): void =>
    execution.waitUntil(reapJobs(contextOf(env, { type: "system" }, (work) => execution.waitUntil(work)))),
} satisfies ExportedHandler<Env>;
