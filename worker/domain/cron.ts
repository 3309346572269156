import { Cron } from "croner";

/** What crontab(5) calls by name; croner knows these and seconds and years besides, which we leave out. */
const names = { "@midnight": "@daily", "@annually": "@yearly" } as Record<string, string>;

/** The first minute after `after` that the expression names, in UTC; null where there is none. @throws where it is none */
export function nextRun(expression: string, after: Date): Date | null {
  const cron = expression.toLowerCase();
  return new Cron(names[cron] ?? cron, { mode: "5-part", timezone: "UTC", paused: true }).nextRun(after);
}

/** Why the expression cannot be taken, or null. */
export function cronProblem(expression: string, now: Date): string | null {
  try {
    return nextRun(expression, now) === null ? "no such day comes" : null;
  } catch {
    return "not a cron expression: minute, hour, day of month, month and day of week, such as 30 3 * * mon";
  }
}
