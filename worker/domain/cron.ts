import { Cron } from "croner";

/** The predefined names of crontab(5). croner also supports seconds and years, which are not accepted here. */
const names = { "@midnight": "@daily", "@annually": "@yearly" } as Record<string, string>;

/**
 * The first minute after `after` that matches the expression, in UTC; null if there is none. @throws if the expression
 * is invalid
 */
export function nextRun(expression: string, after: Date): Date | null {
  const cron = expression.toLowerCase();
  return new Cron(names[cron] ?? cron, { mode: "5-part", timezone: "UTC", paused: true }).nextRun(after);
}

/** Why the expression is rejected, or null. */
export function cronProblem(expression: string, now: Date): string | null {
  try {
    return nextRun(expression, now) === null ? "this date never occurs" : null;
  } catch {
    return "not a cron expression: minute, hour, day of month, month and day of week, such as 30 3 * * mon";
  }
}
