import { databaseWaitMs, queueTimeoutMs } from "./job-rules.ts";

const minutes = queueTimeoutMs / 60_000;

/** Why something has not started, as shown to its owner. */
export const waitReasons = {
  placement: `No host has taken it yet. It waits for a connected host with enough free memory and a free build slot. If no connected host has enough memory, it fails after ${minutes} minutes.`,
  host: `The site's host is not connected. It waits for the host for at most ${minutes} minutes.`,
  closed: `The site's host takes no work for now: its Docker engine does not answer, or its agent is being replaced. It waits for the host for at most ${minutes} minutes.`,
  room: `The site's host no longer has enough free memory, and the site cannot move because its volumes or databases are on that host. It waits for at most ${minutes} minutes. Ask the operator for more room, or cancel it.`,
  database: `A database that the site uses is being created. It waits for the database for at most ${databaseWaitMs / 60_000} minutes.`,
  turn: "It waits for other work of this site or on its host to finish.",
};
export type WaitReason = keyof typeof waitReasons;

/** Also applies to work in progress: it is unknown whether the host still works on it. */
export const silentHost = (since: number): string =>
  `Its host has been silent since ${new Date(since).toISOString().replace(/\.\d+/, "")}. The result is unknown until the host reconnects.`;
