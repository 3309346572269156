import { queueTimeoutMs } from "./job-rules.ts";

const minutes = queueTimeoutMs / 60_000;

/** Why something is not begun, as its owner is told. */
export const waitReasons = {
  placement: `No host has taken it yet: it waits for one that is up, has room and is done with what others build there. Where none is up with room, it fails after ${minutes} minutes.`,
  host: `The site's host cannot be heard: it waits for that, for ${minutes} minutes at most.`,
  room: `The site's host has no room for it any more, and its volumes or databases are there: it waits for room, for ${minutes} minutes at most. Ask the operator, or cancel it.`,
  turn: "It waits for what is under way, of this site or on its host.",
};
export type WaitReason = keyof typeof waitReasons;

/** Of what is under way as well: whether its host still works on it, nobody knows. */
export const silentHost = (since: number): string =>
  `Its host has been silent since ${new Date(since).toISOString().replace(/\.\d+/, "")}: what it made of this is known once it is heard again.`;
