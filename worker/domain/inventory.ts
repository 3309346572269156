import type { HeldDatabase, HeldSite } from "../../protocol/agent/inventory.ts";
import type { DatabaseStatus, SiteStatus } from "../../protocol/states.ts";

/** The recorded location relative to this host. `elsewhere`: another host that recently sent an inventory. */
export type Place = "here" | "nowhere" | "elsewhere" | "unclear";

export type SiteRecord = {
  place: Place;
  status: SiteStatus;
  wanted: "RUNNING" | "STOPPED";
  currentDeploymentId: string | null;
  /** The current version has a recorded reason why it does not run or was not restarted. */
  hasFailed: boolean;
  /** Its newest deployment was requested within the last hour. */
  wasDeployedLately: boolean;
};
/** deploy: nothing that runs is in the record. restart: another version serves until the recorded one is up. */
type SiteVerdict = "same" | "start" | "restart" | "stop" | "deploy" | "setAside" | "retire";

/** Whether the processor has been queried since the last possible payment; if so, nothing unpaid may serve. */
export type Known = { arePaymentsRead: boolean };

/** For a site that is idle and unchanged since the host's inventory. @param site undefined: unknown to the record */
export function siteVerdict(
  site: SiteRecord | undefined,
  held: HeldSite | undefined,
  { arePaymentsRead }: Known,
): SiteVerdict {
  const { serving, unrouted } = held ?? { serving: [], unrouted: [] };
  const runs = serving.length > 0 || unrouted.length > 0;
  if (!site || site.place === "elsewhere") return runs ? "setAside" : "same";
  if (site.status === "PENDING") return runs && arePaymentsRead ? "setAside" : "same";
  if (site.place !== "here") return "same";
  const servesCurrent = serving.length === 1 && serving[0] === site.currentDeploymentId;
  switch (site.status) {
    case "RUNNING":
      if (site.wanted !== "RUNNING" || site.currentDeploymentId === null) return "same";
      if (serving.length === 0) return "start";
      if (!servesCurrent) return site.hasFailed ? "same" : "restart";
      return unrouted.length > 0 ? "retire" : "same";
    case "STOPPED":
    case "SUSPENDED":
      return runs ? "stop" : "same";
    case "FAILED":
      if (!runs) return "same";
      if (servesCurrent || runsUnrouted(unrouted, site.currentDeploymentId)) return "start";
      // Incomplete and abandoned.
      if (serving.length === 0) return "setAside";
      return site.wasDeployedLately ? "same" : "deploy";
    // Work in progress, or work that the cron queues, determines the outcome.
    case "DEPLOYING":
    case "DELETING":
      return "same";
  }
}

const runsUnrouted = (unrouted: HeldSite["unrouted"], deploymentId: string | null): boolean =>
  deploymentId !== null && unrouted.some((one) => one.deploymentId === deploymentId);

export type DatabaseRecord = {
  place: Place;
  status: DatabaseStatus;
  wanted: "RUNNING" | "STOPPED";
  /** The host has the token of the removed one that had its data. */
  wasHere: boolean;
  /** It has been provisioned. */
  hasRun: boolean;
  volume: string | null;
};
/** adopt: its data is in a different volume than recorded, or was lost with a removed host, and nowhere else. lost: it is nowhere. */
type DatabaseVerdict = "same" | "start" | "stop" | "adopt" | "lost" | "setAside";

export function databaseVerdict(
  database: DatabaseRecord | undefined,
  held: HeldDatabase | undefined,
  { arePaymentsRead }: Known,
): DatabaseVerdict {
  const runs = held?.running ?? false;
  if (!database || database.place === "elsewhere") return runs ? "setAside" : "same";
  if (database.status === "PENDING") return runs && arePaymentsRead ? "setAside" : "same";
  // Its host was removed, and is back. Another one that knows the id gets no passwords.
  const isBack = database.place === "nowhere" && database.wasHere && held?.volumes.length === 1;
  if (isBack && (database.status === "FAILED" || database.status === "SUSPENDED")) return "adopt";
  if (database.place !== "here") return "same";
  // Where provisioning fails, nothing runs: its success came after its deadline.
  if (!database.hasRun) return database.status === "FAILED" && runs ? "start" : "same";
  if (database.status === "PROVISIONING" || database.status === "DELETING") return "same";
  const volumes = held?.volumes ?? [];
  if (!volumes.includes(database.volume)) {
    if (volumes.length === 1) return "adopt";
    return database.status === "RUNNING" || database.status === "STOPPED" ? "lost" : "same";
  }
  switch (database.status) {
    case "RUNNING":
      return runs || held?.out || database.wanted !== "RUNNING" ? "same" : "start";
    case "STOPPED":
    case "SUSPENDED":
      return runs ? "stop" : "same";
    case "FAILED":
      return runs ? "start" : "same";
  }
}
