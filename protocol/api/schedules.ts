import * as z from "zod";
import { defaultTimeoutSeconds, TimeoutSeconds } from "./commands.ts";
import { Timestamp } from "./common.ts";
import { command, LabelName } from "./sites.ts";

const field = "(?:[0-9*,/-]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)+";

/**
 * Five cron fields (crontab(5)) or a predefined schedule, in UTC. The field values are validated when the next run is
 * computed.
 */
export const CronExpression = z
  .string()
  .max(200)
  .regex(
    new RegExp(
      `^(?:@(?:hourly|daily|midnight|weekly|monthly|yearly|annually)|${field}(?: ${field}){4})$`,
      "i",
    ),
    "five cron fields such as `*/15 * * * *`, or @hourly, @daily, @weekly, @monthly, @yearly",
  );

const settings = {
  name: LabelName,
  cron: CronExpression.describe(
    "Five cron fields, or a predefined schedule such as `@hourly` or `@daily`, in UTC.",
  ),
  command,
  timeoutSeconds: TimeoutSeconds,
  enabled: z.boolean(),
};

export const ScheduleCreate = z.strictObject({
  ...settings,
  timeoutSeconds: settings.timeoutSeconds.default(defaultTimeoutSeconds),
  enabled: settings.enabled.default(true),
});
export type ScheduleCreate = z.infer<typeof ScheduleCreate>;

export const SchedulePatch = z
  .strictObject(settings)
  .partial()
  .refine(
    (change) => Object.values(change).some((value) => value !== undefined),
    "name at least one field to change",
  );
export type SchedulePatch = z.infer<typeof SchedulePatch>;

export const Schedule = z
  .object({
    id: z.string(),
    siteId: z.string(),
    ...settings,
    name: z.string(),
    cron: z.string(),
    command: z.string(),
    nextRunAt: Timestamp.nullable().describe(
      "null while the schedule is disabled, or its site is stopped, suspended or was never live.",
    ),
    skippedRuns: z
      .number()
      .int()
      .describe(
        "Runs skipped because the previous run was still active or too many commands of the site were queued.",
      ),
    lastSkippedAt: Timestamp.nullable(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  })
  .meta({ id: "Schedule" });
export type Schedule = z.infer<typeof Schedule>;
