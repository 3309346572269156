import { isLongJob, type JobKind } from "../../protocol/agent/jobs.ts";
import { maxFrameBytes } from "../../protocol/agent/messages.ts";

const minute = 60_000;

/** What an operator allows. */
export type JobLimits = { buildSeconds: number; releaseSeconds: number; startSeconds: number };

/** How long one attempt may take on the host beside the time that its build, release command, start or command has, in milliseconds. */
const jobTimeoutMs: Record<JobKind, number> = {
  "site.deploy": 10 * minute,
  "site.start": 5 * minute,
  "site.stop": 5 * minute,
  "site.restart": 5 * minute,
  "site.route": 1 * minute,
  "site.delete": 5 * minute,
  "site.evict": 5 * minute,
  "site.command": 3 * minute,
  "database.provision": 10 * minute,
  "database.start": 10 * minute,
  "database.restart": 10 * minute,
  "database.stop": 5 * minute,
  "database.rotate": 5 * minute,
  "database.expose": 5 * minute,
  "database.delete": 5 * minute,
  "database.backup": 120 * minute,
  "database.verify": 120 * minute,
  "database.restore": 180 * minute,
};

/** How long one attempt may take on the host, in milliseconds; of a command, beside its own time. */
export function timeoutMsOf(
  kind: JobKind,
  { buildSeconds, releaseSeconds, startSeconds }: JobLimits,
): number {
  const builds = kind === "site.deploy";
  const starts = builds || kind === "site.start" || kind === "site.restart";
  return (
    jobTimeoutMs[kind] + 1000 * ((builds ? buildSeconds + releaseSeconds : 0) + (starts ? startSeconds : 0))
  );
}

/** A job no host took within this time ends with an honest reason. */
export const queueTimeoutMs = 60 * minute;

/** What waits only because other accounts' work holds the slots waits for so long. */
export const waitsForOthersMs = 24 * 60 * minute;

/** Whether a restore has changed over only its host knows, which says so again and again once it is connected. */
export const restoreToldWithinMs = 2 * minute;

/** Between two runs of the timer, a minute apart: longer ago, and the control plane was away. */
export const absentAfterMs = 3 * minute;

/** Backups wait in line behind each other. */
export const backupQueueMs = 24 * 60 * minute;

/** After a move the old host serves for so long beside the new one: the name's DNS records may live no longer. */
export const leaveAfterMs = minute;

/** A host that is to take a site, and is silent for so long, is not waited for: an agent's restart takes a moment only. */
export const silentMoveMs = minute;

/** Cleaning up behind a move holds up the site's other jobs no longer than this; it is asked for again. */
export const evictQueueMs = 2 * minute;

/** Jobs that ended are remembered for so long after their deadline. */
export const keptDays = 30;

/** A job that took its host down this often is given up. */
export const maxAttempts = 5;

/** @param leasedMs how long it had on its host; null when no host took it */
export function expiredReason(kind: JobKind, leasedMs: number | null): string {
  if (leasedMs === null)
    return `No host took this within ${queueTimeoutMs / minute} minutes. Ask the operator whether the hosts are up, then try again.`;
  if (kind === "site.command")
    return "The host did not report in time how this ended. Ask the operator about the host, and see what it did before you run it again.";
  const advice = isLongJob(kind)
    ? "ask the operator about the host"
    : "make the build shorter or ask the operator about the host";
  return `The host did not finish this within ${Math.ceil(leasedMs / minute)} minutes. Try again; if it repeats, ${advice}.`;
}

export const attemptsReason = `The host was interrupted ${maxAttempts} times while working on this. Ask the operator about the host, then try again.`;

/** Why a job ends before any host sees it. */
export const unfitReason = {
  tooLarge: `What this would send to its host is larger than ${maxFrameBytes / 1024} KiB: make the environment or the Dockerfile smaller, then try again.`,
  unreadable:
    "This could not be prepared: a secret of it cannot be opened, or what it needs is gone. Set its secrets anew and try again; if it repeats, ask the operator.",
};

/** A command is no deployment: doing it twice may do harm, so what was interrupted is not run again. */
export const interruptedReason =
  "The host was interrupted while this ran, and it is not run again by itself: see what it did, then run it again.";

/** Commands of one site at once, and those that wait for them. */
export const maxCommandsRunning = 2;
export const maxCommandsWaiting = 10;

export const maxSchedulesPerSite = 20;
export const maxSchedulesPerAccount = 200;

/** Runs of one schedule that are kept; any command is kept no longer than its log. */
export const keptRunsPerSchedule = 50;
export const keepCommandsMs = 30 * 24 * 60 * minute;
