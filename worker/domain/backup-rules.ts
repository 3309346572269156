import { cronProblem, nextRun } from "./cron.ts";
import type { BackupStatus } from "../../protocol/states.ts";
import { dayOf } from "./times.ts";

const hour = 60 * 60_000;
const day = 24 * hour;

/** How long backups are kept after their database is deleted. */
export const keptAfterDeletionMs = 30 * day;
/** How long a failed backup is kept to show its error. */
export const failureShownMs = 7 * day;
/** A backup that no host could verify for this long is deleted once there are enough newer ones. */
const unprovenMs = 30 * day;
/** Pauses before a verification is retried when the host lacks the resources; the last one repeats. */
export const verifyAgainMs = [hour, 6 * hour, day] as const;
export const linkLifeMs = 10 * 60_000;

/** `schedule`: daily, weekly or a cron expression. */
type Schedule = { schedule: string | null; hourUtc: number };

/**
 * Minutes after the full hour, derived from the id, so that the databases of a host are not backed up at the same
 * moment.
 */
const minuteOf = (id: string): number =>
  Array.from(id.slice(-6)).reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 60, 0);

/** Runs of a cron expression that are looked at: those of one day all differ by less than an hour if any do. */
const runsLookedAt = 25;

/** As cron fields, in place of "daily" and "weekly". */
export const isCron = (schedule: string): boolean => schedule !== "daily" && schedule !== "weekly";

/** Why a schedule is refused, or null: backups take the host's time, so they are at least an hour apart. */
export function backupScheduleProblem(schedule: string | null, now: Date): string | null {
  if (schedule === null || !isCron(schedule)) return null;
  const problem = cronProblem(schedule, now);
  if (problem !== null) return problem;
  let last = nextRun(schedule, now);
  for (let run = 1; run < runsLookedAt && last !== null; run++) {
    const next = nextRun(schedule, last);
    if (next !== null && next.getTime() - last.getTime() < hour) return "backups are at least an hour apart";
    last = next;
  }
  return null;
}

/**
 * The next scheduled time after `now`: that hour of every day, or of the weekday derived from the id; or as the cron expression
 * says.
 */
export function nextBackupAt({ schedule, hourUtc }: Schedule, id: string, now: Date): Date | null {
  if (schedule === null) return null;
  if (isCron(schedule)) return nextRun(schedule, now);
  const next = new Date(now);
  next.setUTCHours(hourUtc, minuteOf(id), 0, 0);
  if (schedule === "weekly")
    next.setTime(next.getTime() + ((minuteOf(id.slice(0, -1)) - next.getUTCDay()) % 7) * day);
  const periodMs = schedule === "weekly" ? 7 * day : day;
  const behindMs = now.getTime() - next.getTime();
  return new Date(next.getTime() + (Math.floor(behindMs / periodMs) + 1) * periodMs);
}

type Sized = { tables: number | null; rows: number | null; sizeBytes: number | null };

/** Whether a backup holds so much less than the previous one that data may have been lost in between. */
export const isShrunken = (now: Sized, before: Sized): boolean =>
  (["tables", "rows", "sizeBytes"] as const).some((what) => {
    const [has, had] = [now[what], before[what]];
    return has !== null && has * 10 < (had ?? 0);
  });

type Proven = { id: string; shrunkFrom: string | null };

/**
 * The newest verified backup that has not shrunk, given all verified ones, newest first. Once it is deleted, the
 * smaller backups become the reference.
 */
export function newestWhole<Backup extends Proven>(verified: readonly Backup[]): Backup | undefined {
  const ids = new Set(verified.map(({ id }) => id));
  return verified.find(({ shrunkFrom }) => !ids.has(shrunkFrom ?? ""));
}

export const shrunkNotice = ({ from, at }: { from: string; at: number }): string =>
  `The newest backup holds less than a tenth of the data in ${from} of ${dayOf(new Date(at))}, which is kept in addition to the newest backups. If data was lost, restore ${from}; if the change is intended, confirm it with PATCH {"backups":{"acceptSmaller":true}}.`;

type Kept = Proven & { status: BackupStatus; createdAt: Date; finishedAt: Date | null };

/**
 * Selects which backups of one database may be deleted, given all of them, newest first. Kept are the `keep` newest
 * verified ones and the newest that has not shrunk; while there are fewer, every potentially good backup is kept,
 * except those that could not be verified for a month. One that failed, or is to be verified again, is kept for a week.
 */
export function surplusBackups(newestFirst: readonly Kept[], keep: number, now: Date): string[] {
  const verified = newestFirst.filter(({ status }) => status === "VERIFIED");
  const oldestKept = verified[Math.max(1, keep) - 1];
  const whole = newestWhole(verified);
  const complete = newestFirst.filter(({ status }) => status === "VERIFIED" || status === "STORED");
  const oldestComplete = complete[Math.max(1, keep) - 1];
  return newestFirst
    .filter(({ id, status, createdAt, finishedAt }) => {
      if (status === "RUNNING" || id === whole?.id) return false;
      const isShown = now.getTime() - (finishedAt ?? createdAt).getTime() <= failureShownMs;
      if (status === "FAILED" || (status === "STORED" && isShown)) return !isShown;
      if (oldestKept !== undefined && id < oldestKept.id) return true;
      const isOld = now.getTime() - createdAt.getTime() > unprovenMs;
      return status === "STORED" && isOld && oldestComplete !== undefined && id < oldestComplete.id;
    })
    .map(({ id }) => id);
}
