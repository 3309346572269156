import { Cron } from "croner";

/**
 * The first minute after `after` that matches the expression (crontab(5), without seconds and years) in UTC; null if
 * there is none. @throws if the expression is invalid
 */
export function nextRun(expression: string, after: Date): Date | null {
  return new Cron(expression, { mode: "5-part", timezone: "UTC", paused: true }).nextRun(after);
}

/** Why the expression is rejected, or null. */
export function cronProblem(expression: string, now: Date): string | null {
  try {
    return nextRun(expression, now) === null ? "this date never occurs" : null;
  } catch {
    return "not a cron expression: minute, hour, day of month, month and day of week, such as 30 3 * * mon";
  }
}
