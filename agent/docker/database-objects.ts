import { label } from "./labels.ts";

export const containerName = (databaseId: string): string => `berth-${databaseId}`;
/** Each restore makes another volume, named after its job. */
export const volumeName = (databaseId: string, volume?: string | null): string =>
  `berth-${databaseId}-data${typeof volume === "string" ? `-${volume}` : ""}`;

export const databaseLabels = (agentId: string, databaseId: string, accountId: string) => ({
  [label.managed]: "true",
  [label.agent]: agentId,
  [label.account]: accountId,
  [label.database]: databaseId,
});

/** By which a database's volumes are found, of whatever restore. */
export const volumeLabels = (agentId: string, databaseId: string) => ({
  [label.agent]: agentId,
  [label.database]: databaseId,
});

/** Seconds between the signal and SIGKILL: time to write what is in memory. */
export const stopGraceSeconds = 60;
