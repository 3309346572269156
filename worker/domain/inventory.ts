import type { HeldDatabase, HeldSite } from "../../protocol/agent/inventory.ts";
import type { DatabaseStatus, SiteStatus } from "../../protocol/states.ts";

/** Where the record puts it, as the host sees it. `elsewhere`: another host that has said lately what it has. */
export type Place = "here" | "nowhere" | "elsewhere" | "unclear";

export type SiteRecord = {
  place: Place;
  status: SiteStatus;
  wanted: "RUNNING" | "STOPPED";
  currentDeploymentId: string | null;
  /** The current version has a reason beside it why it does not run, or was not started again. */
  hasFailed: boolean;
  /** Its newest deployment was asked for in the last hour. */
  wasDeployedLately: boolean;
};
/** deploy: none of what runs is in the record. restart: another version serves until the record's is up. */
export type SiteVerdict = "same" | "start" | "restart" | "stop" | "deploy" | "setAside" | "retire";

/** Whether the processor has been read since what may have been paid before; then nothing unpaid serves. */
export type Known = { arePaymentsRead: boolean };

/** Of a site that is idle and has not changed since the host looked. @param site undefined: no record knows it */
export function siteVerdict(
  site: SiteRecord | undefined,
  held: HeldSite | undefined,
  { arePaymentsRead }: Known,
): SiteVerdict {
  const runs = held !== undefined && (held.serving.length > 0 || held.unrouted.length > 0);
  if (!site || site.place === "elsewhere") return runs ? "setAside" : "same";
  if (site.status === "PENDING") return runs && arePaymentsRead ? "setAside" : "same";
  if (site.place !== "here") return "same";
  const serving = held?.serving ?? [];
  const servesCurrent = serving.length === 1 && serving[0] === site.currentDeploymentId;
  switch (site.status) {
    case "RUNNING":
      if (site.wanted !== "RUNNING" || site.currentDeploymentId === null) return "same";
      if (serving.length === 0) return "start";
      if (!servesCurrent) return site.hasFailed ? "same" : "restart";
      return held?.unrouted.length ? "retire" : "same";
    case "STOPPED":
    case "SUSPENDED":
      return runs ? "stop" : "same";
    case "FAILED":
      if (serving.length === 0 && !runs) return "same";
      if (servesCurrent || runsUnrouted(held, site.currentDeploymentId)) return "start";
      // Half made, and left behind.
      if (serving.length === 0) return "setAside";
      return site.wasDeployedLately ? "same" : "deploy";
    // Work that is under way, or that the cron queues, says what is to be.
    case "DEPLOYING":
    case "DELETING":
      return "same";
  }
}

const runsUnrouted = (held: HeldSite | undefined, deploymentId: string | null): boolean =>
  deploymentId !== null && (held?.unrouted.some((one) => one.deploymentId === deploymentId) ?? false);

export type DatabaseRecord = {
  place: Place;
  status: DatabaseStatus;
  wanted: "RUNNING" | "STOPPED";
  /** It has been provisioned. */
  hasRun: boolean;
  volume: string | null;
};
/** adopt: its data is in another volume than the record names, and nowhere else. lost: it is nowhere. */
export type DatabaseVerdict = "same" | "start" | "stop" | "adopt" | "lost" | "setAside";

export function databaseVerdict(
  database: DatabaseRecord | undefined,
  held: HeldDatabase | undefined,
  { arePaymentsRead }: Known,
): DatabaseVerdict {
  const runs = held?.running ?? false;
  if (!database || database.place === "elsewhere") return runs ? "setAside" : "same";
  if (database.status === "PENDING") return runs && arePaymentsRead ? "setAside" : "same";
  if (database.place !== "here" || !database.hasRun) return "same";
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
