import type { Job } from "../../protocol/agent/jobs.ts";
import type { ToAgent } from "../../protocol/agent/messages.ts";

type Offer = Extract<ToAgent, { type: "job" }>;

/** A job as the control plane sends it, with the lane and the log of its row. */
export const offerOf = (job: Job, attempt = 1, timeoutMs = 60_000): Offer => ({
  type: "job",
  job,
  attempt,
  timeoutMs,
  lane: laneOf(job),
  logId: logIdOf(job),
});

function laneOf({ kind, args }: Job): string {
  if (kind === "site.command") return args.commandId;
  if (kind === "volume.backup") return `${args.siteId}/${args.volume}`;
  if (kind === "database.verify" || kind === "volume.verify") return args.backup.backupId;
  if ("database" in args) return args.database.databaseId;
  if ("databaseId" in args) return args.databaseId;
  return "run" in args ? args.run.siteId : args.siteId;
}

function logIdOf({ kind, args }: Job): Offer["logId"] {
  if (kind === "site.deploy") return args.deploymentId;
  return kind === "site.command" ? args.commandId : null;
}
