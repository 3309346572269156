import { label } from "./labels.ts";

export const containerName = (databaseId: string): string => `berth-${databaseId}`;
/** Each restore creates another volume, named after its job. */
export const volumeName = (databaseId: string, volume?: string | null): string =>
  `berth-${databaseId}-data${typeof volume === "string" ? `-${volume}` : ""}`;

export const databaseLabels = (agentId: string, databaseId: string, accountId: string) => ({
  [label.managed]: "true",
  [label.agent]: agentId,
  [label.account]: accountId,
  [label.database]: databaseId,
});

/** The labels of all volumes of a database. */
export const volumeLabels = (agentId: string, databaseId: string) => ({
  [label.agent]: agentId,
  [label.database]: databaseId,
});

/** Seconds between the signal and SIGKILL: time to flush memory to disk. */
export const stopGraceSeconds = 60;
