import type { Job, JobKind } from "../../protocol/agent/jobs.ts";
import type { Handlers, Host, JobRun } from "../host.ts";
import { deleteSite } from "./delete-site.ts";
import { deploySite } from "./deploy-site.ts";
import { restartSite } from "./restart-site.ts";
import { routeSite } from "./route-site.ts";
import { runCommand } from "./run-command.ts";
import { startSite } from "./start-site.ts";
import { stopSite } from "./stop-site.ts";

/** A kind without a handler does not compile. */
export const handlers: Handlers = {
  "site.deploy": deploySite,
  "site.start": startSite,
  "site.stop": stopSite,
  "site.restart": restartSite,
  "site.route": routeSite,
  "site.delete": deleteSite,
  "site.evict": (host, args, run) => deleteSite(host, { ...args, hostnames: [] }, run),
  "site.command": runCommand,
};

export const handle = <K extends JobKind>(host: Host, job: Job<K>, run: JobRun): Promise<unknown> =>
  handlers[job.kind](host, job.args as never, run);
