import type { DatabaseStatus, SiteStatus } from "../../protocol/states.ts";

type Refused = {
  what: "site" | "database";
  status: SiteStatus | DatabaseStatus;
  wanted: "RUNNING" | "STOPPED";
};

/** Why it cannot be started, stopped or restarted as it is, and what to do instead. */
export function refusedAction(
  action: "start" | "stop" | "restart",
  { what, status, wanted }: Refused,
): string {
  const isUp = status === "RUNNING" || status === "DEPLOYING" || status === "PROVISIONING";
  const it = `This ${what}`;
  if (status === "DELETING") return `${it} is being deleted.`;
  if (isUp && wanted === "STOPPED")
    return action === "stop" ? `${it} is being stopped already.` : `${it} is being stopped: start it again.`;
  if (status === "DEPLOYING")
    return `${it} is being deployed, which starts it anew: wait for the end of that.`;
  if (status === "PROVISIONING") return `${it} is being made: wait until it runs.`;
  if (status === "RUNNING") return `${it} runs already.`;
  if (action === "stop")
    return status === "STOPPED" ? `${it} is stopped already.` : `${it} is ${status}: nothing of it runs.`;
  if (action === "start") return `${it} is being started already.`;
  return `${it} is ${status}: start it instead.`;
}
