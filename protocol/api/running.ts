import * as z from "zod";
import { Timestamp, wholeNumber } from "./common.ts";
import { LogLine } from "./deployments.ts";

export const SiteLogQuery = z.strictObject({
  follow: z
    .enum(["0", "1"])
    .default("0")
    .describe(
      "1: server-sent events of type `line`, for as long as both ends are there and your key or session works.",
    ),
  tail: wholeNumber(0, 1000).default(100).describe("Lines from the end."),
  since: Timestamp.optional().describe(
    "Only lines after this time, such as the `at` of the last line seen; with `follow=1` all of them, whatever `tail` says.",
  ),
});
export type SiteLogQuery = z.infer<typeof SiteLogQuery>;

/** `at` has nanoseconds and is a place to go on from; `seq` is the same in microseconds. */
export const SiteLogs = z.object({ data: z.array(LogLine) });
export type SiteLogs = z.infer<typeof SiteLogs>;

export const SiteSample = z.object({
  at: Timestamp.describe("The end of the minute."),
  cpuMilli: z.number().nonnegative().describe("Thousandths of a core, on average over the minute."),
  memoryMb: z.number().nonnegative(),
  networkInBytes: z.number().nonnegative().describe("In this minute."),
  networkOutBytes: z.number().nonnegative().describe("In this minute."),
  diskMb: z
    .number()
    .nonnegative()
    .nullable()
    .describe(
      "What the containers wrote and the volumes hold, looked at every ten minutes; null: the host cannot tell.",
    ),
});
export type SiteSample = z.infer<typeof SiteSample>;

/** One minute each, a day of them, newest last. */
export const SiteMetrics = z.object({ data: z.array(SiteSample) });
export type SiteMetrics = z.infer<typeof SiteMetrics>;

/** `restart` is Docker's own, after an exit; `disk_full`: what was written is more than the pack has; `unhealthy`: healthCheckPath fails; `moved`: what was before is gone; `restored`, `restore_failed`: of databases; `slowed`: it writes too much to its log. */
export const siteEventKinds = [
  "start",
  "restart",
  "stop",
  "exit",
  "oom",
  "crash_loop",
  "disk_full",
  "unhealthy",
  "healthy",
  "moved",
  "restored",
  "restore_failed",
  "slowed",
] as const;

export const SiteEvent = z
  .object({ at: Timestamp, kind: z.enum(siteEventKinds), detail: z.string().max(2000) })
  .meta({ id: "SiteEvent" });
export type SiteEvent = z.infer<typeof SiteEvent>;

/** The last 200, newest last. */
export const SiteEvents = z.object({ data: z.array(SiteEvent) });
export type SiteEvents = z.infer<typeof SiteEvents>;
