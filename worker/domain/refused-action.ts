import type { DatabaseStatus, SiteStatus } from "../../protocol/states.ts";

type Refused = {
  what: "site" | "database";
  status: SiteStatus | DatabaseStatus;
  wanted: "RUNNING" | "STOPPED";
};

/** Why it cannot be started, stopped or restarted in its current state, and what to do instead. */
export function refusedAction(
  action: "start" | "stop" | "restart",
  { what, status, wanted }: Refused,
): string {
  const isUp = status === "RUNNING" || status === "DEPLOYING" || status === "PROVISIONING";
  const it = `This ${what}`;
  if (status === "DELETING") return `${it} is being deleted.`;
  if (isUp && wanted === "STOPPED")
    return action === "stop" ? `${it} is already being stopped.` : `${it} is being stopped: start it again.`;
  if (status === "DEPLOYING")
    return `${it} is being deployed, which starts it anyway: wait until the deployment has finished.`;
  if (status === "PROVISIONING") return `${it} is being provisioned: wait until it runs.`;
  if (status === "RUNNING") return `${it} is already running.`;
  if (action === "stop")
    return status === "STOPPED"
      ? `${it} is already stopped.`
      : `${it} is ${status}: there is nothing to stop.`;
  if (action === "start") return `${it} is already being started.`;
  return `${it} is ${status}: start it instead.`;
}
