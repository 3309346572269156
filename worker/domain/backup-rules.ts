import type { BackupStatus } from "../../protocol/states.ts";

const hour = 60 * 60_000;
const day = 24 * hour;

/** Backups stay so long after their database. */
export const keptAfterDeletionMs = 30 * day;
/** One that failed says why for so long. */
export const failureShownMs = 7 * day;
/** What no host could verify for so long goes, behind enough newer ones. */
const unprovenMs = 30 * day;
/** A host that lacks what it needs to verify one is asked again after so long; the last pause repeats. */
export const verifyAgainMs = [hour, 6 * hour, day] as const;
export const linkLifeMs = 10 * 60_000;

export type Schedule = { schedule: "daily" | "weekly" | null; hourUtc: number };

/** Minutes after the full hour, by the id: not all databases of a host at one moment. */
const minuteOf = (id: string): number =>
  Array.from(id.slice(-6)).reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 60, 0);

/** The next planned moment after `now`: that hour of the day, or of the day of the week that the id gives. */
export function nextBackupAt({ schedule, hourUtc }: Schedule, id: string, now: Date): Date | null {
  if (schedule === null) return null;
  const next = new Date(now);
  next.setUTCHours(hourUtc, minuteOf(id), 0, 0);
  if (schedule === "weekly")
    next.setTime(next.getTime() + ((minuteOf(id.slice(0, -1)) - next.getUTCDay() + 70) % 7) * day);
  const periodMs = schedule === "weekly" ? 7 * day : day;
  const behindMs = now.getTime() - next.getTime();
  return behindMs < 0 ? next : new Date(next.getTime() + (Math.floor(behindMs / periodMs) + 1) * periodMs);
}

type Sized = { tables: number | null; rows: number | null; sizeBytes: number | null };

/** Whether a backup holds so much less than the one before that the data may have been lost in between. */
export const isShrunken = (now: Sized, before: Sized): boolean =>
  (["tables", "rows", "sizeBytes"] as const).some((what) => {
    const [has, had] = [now[what], before[what]];
    return has !== null && had !== null && has * 10 < had;
  });

type Proven = { id: string; shrunkFrom: string | null };

/** The newest verified backup that has not shrunk, given all verified ones, newest first; once it is gone, what shrank is what there is. */
export function newestWhole<Backup extends Proven>(verified: readonly Backup[]): Backup | undefined {
  const ids = new Set(verified.map(({ id }) => id));
  return verified.find(({ shrunkFrom }) => shrunkFrom === null || !ids.has(shrunkFrom));
}

export const shrunkNotice = ({ from, at }: { from: string; at: number }): string =>
  `Its newest backup holds less than a tenth of what ${from} of ${new Date(at).toISOString().slice(0, 10)} does, which is kept beside the newest ones. If data was lost, restore that one; if it is meant, say so: PATCH {"backups":{"acceptSmaller":true}}.`;

type Kept = Proven & { status: BackupStatus; createdAt: Date };

/**
 * Which backups of one database may go, given all of them, newest first. The newest verified ones stay, `keep` of them, and
 * beside them the newest that has not shrunk; until there are so many, nothing that may be good goes, but what could not be proven for a month.
 */
export function surplusBackups(newestFirst: readonly Kept[], keep: number, now: Date): string[] {
  const verified = newestFirst.filter(({ status }) => status === "VERIFIED");
  const oldestKept = verified[Math.max(1, keep) - 1];
  const whole = newestWhole(verified);
  const complete = newestFirst.filter(({ status }) => status === "VERIFIED" || status === "STORED");
  const oldestComplete = complete[Math.max(1, keep) - 1];
  return newestFirst
    .filter(({ id, status, createdAt }) => {
      if (status === "RUNNING" || id === whole?.id) return false;
      if (status === "FAILED") return now.getTime() - createdAt.getTime() > failureShownMs;
      if (oldestKept !== undefined && id < oldestKept.id) return true;
      const isOld = now.getTime() - createdAt.getTime() > unprovenMs;
      return status === "STORED" && isOld && oldestComplete !== undefined && id < oldestComplete.id;
    })
    .map(({ id }) => id);
}
