import { jobTraits, type JobKind } from "../../protocol/agent/jobs.ts";
import { maxFrameBytes } from "../../protocol/agent/messages.ts";

const minute = 60_000;

/** Limits set by the operator. */
export type JobLimits = { buildSeconds: number; releaseSeconds: number; startSeconds: number };

/** The time limit of one attempt on the host in milliseconds; for a command, in addition to its own limit. */
export function timeoutMsOf(
  kind: JobKind,
  { buildSeconds, releaseSeconds, startSeconds }: JobLimits,
): number {
  const { about, starts, timeoutMinutes } = jobTraits[kind];
  const builds = about === "deployment";
  return (
    timeoutMinutes * minute +
    1000 * ((builds ? buildSeconds + releaseSeconds : 0) + (starts ? startSeconds : 0))
  );
}

/** A job that no host takes within this time fails. */
export const queueTimeoutMs = 60 * minute;

/** Operators see a job that has been queued for this long as stuck. */
export const stuckAfterMs = 10 * minute;

/** The limit for jobs that wait only because other accounts' work occupies the slots. */
export const waitsForOthersMs = 24 * 60 * minute;

/** How long a backup, a verification or a restore holds up the backups of other accounts on its host. */
export const longForOthersMs = 15 * minute;

/** How long a deployment waits for a database of its site that is being created. */
export const databaseWaitMs = 10 * minute;

/** A job that waited for another of its lane has at least this long to be taken after that one's end. */
export const takenWithinMs = 5 * minute;

/** Only the host knows whether a restore has switched over, and it repeats its report once it is connected. */
export const restoreToldWithinMs = 2 * minute;

/** The timer runs every minute; a longer gap means that the control plane was down. */
export const absentAfterMs = 3 * minute;

/** Backups are queued behind each other. */
export const backupQueueMs = 24 * 60 * minute;

/** After a move, the old host keeps serving for this long, so the TTL of the site's DNS records must not be longer. */
export const leaveAfterMs = minute;

/** If Berth maintains the records: from when they lead to the new host until their TTL has passed, and a margin. */
export const leaveAfterDnsMs = 3 * minute;

/** The provider may never take the new record. */
export const leaveWithoutDnsMs = 24 * 60 * minute;

/**
 * The target host of a move is not waited for if it is silent for this long; an agent's restart takes only a moment.
 */
export const silentMoveMs = minute;

/** How long cleaning up after a move may block the site's other jobs; it is retried. */
export const evictQueueMs = 2 * minute;

/** How long ended jobs are kept after their deadline. */
export const keptDays = 30;

/** A job is abandoned after this many interrupted attempts. */
export const maxAttempts = 5;

/** @param leasedMs how long a host worked on it; null if none took it */
export function expiredReason(kind: JobKind, leasedMs: number | null): string {
  if (leasedMs === null)
    return `No host took this within ${queueTimeoutMs / minute} minutes. Ask the operator whether the hosts are up, then try again.`;
  if (kind === "site.command")
    return "The host did not report a result in time, so the outcome is unknown. Ask the operator about the host, and check what the command did before you run it again.";
  const advice =
    jobTraits[kind].slot === "long"
      ? "ask the operator about the host"
      : "shorten the build or ask the operator about the host";
  return `The host did not finish within ${Math.ceil(leasedMs / minute)} minutes. Try again; if this happens again, ${advice}.`;
}

export const attemptsReason = `The host was interrupted ${maxAttempts} times while working on this. Ask the operator about the host, then try again.`;

/** Why a job fails before it is sent to a host. */
export const unfitReason = {
  tooLarge: `The data for the host is larger than ${maxFrameBytes / 1024} KiB. Make the environment or the Dockerfile smaller, then try again.`,
  unreadable:
    "This could not be prepared because a secret cannot be decrypted or required data is missing. Set the secrets again and retry; if this happens again, ask the operator.",
};

/** For what a host reports as done, with a result that the control plane cannot read. */
export const unfitResultReason = (kind: JobKind): string =>
  `The host's report of the end was not of the expected form. Ask the operator, who finds the reason in a log, ${kind === "site.command" ? "and check what the command did before you run it again" : "then try again"}.`;

/** Unlike a deployment, a command may not be idempotent, so an interrupted one is not run again. */
export const interruptedReason =
  "The host was interrupted while the command ran. Commands are not repeated automatically: check what it did, then run it again.";

/** Commands of one site that run at once, and that may be queued. */
export const maxCommandsRunning = 2;
export const maxCommandsWaiting = 10;

export const maxSchedulesPerSite = 20;
export const maxSchedulesPerAccount = 200;

/** Runs kept per schedule; no command is kept longer than its log. */
export const keptRunsPerSchedule = 50;
export const keepCommandsMs = 30 * 24 * 60 * minute;
