import * as z from "zod";
import { text, Timestamp, wholeNumber } from "./common.ts";
import { LogLine } from "./deployments.ts";
import { Replicas } from "./volumes.ts";

export const SiteLogQuery = z.strictObject({
  follow: z
    .enum(["0", "1"])
    .default("0")
    .describe(
      "1: stream server-sent events of type `line` for as long as the log is available and your key or session is valid.",
    ),
  tail: wholeNumber(0, 1000).default(100).describe("Number of lines from the end of the log."),
  since: Timestamp.optional().describe(
    "Only lines after this time, such as the `at` of the last line received. With `follow=1`, all of them, regardless of `tail`.",
  ),
});
export type SiteLogQuery = z.infer<typeof SiteLogQuery>;

export const LogSearchQuery = z.strictObject({
  text: text.min(1).max(200).describe("The text to find, regardless of case."),
  from: Timestamp.optional().describe("Lines written at this time or later."),
  to: Timestamp.optional().describe("Lines written before this time."),
  limit: wholeNumber(1, 500).default(100).describe("The newest lines up to this number."),
});
export type LogSearchQuery = z.infer<typeof LogSearchQuery>;

/** Oldest first. */
export const LogFound = z.object({
  data: z.array(LogLine),
  complete: z
    .boolean()
    .describe(
      "Everything that the host keeps was searched and returned; false: there are older lines, or time ran out: narrow the search.",
    ),
});
export type LogFound = z.infer<typeof LogFound>;

/** `at` has nanosecond precision and can be used to resume; `seq` is the same time in microseconds. */
export const SiteLogs = z.object({ data: z.array(LogLine) });
export type SiteLogs = z.infer<typeof SiteLogs>;

/** At most this many containers are reported of a site. */
export const maxReportedContainers = 20;

export const SiteSample = z.object({
  at: Timestamp.describe("The end of the interval."),
  cpuMilli: z.number().nonnegative().describe("Average over the interval, in thousandths of a core."),
  memoryMb: z.number().nonnegative(),
  networkInBytes: z.number().nonnegative().describe("Received in this interval."),
  networkOutBytes: z.number().nonnegative().describe("Sent in this interval."),
  diskMb: z
    .number()
    .nonnegative()
    .nullable()
    .describe(
      "Data written by the containers and stored in the volumes, measured every ten minutes; null if the host cannot measure it.",
    ),
  replicas: z
    .array(
      z.object({
        replica: Replicas,
        cpuMilli: z.number().nonnegative(),
        memoryMb: z.number().nonnegative(),
      }),
    )
    .max(maxReportedContainers)
    .optional()
    .describe("The usage of each, if several run; in one-minute samples only."),
});
export type SiteSample = z.infer<typeof SiteSample>;

/** How far back metrics reach, and the interval of their samples. Hosts keep as much. */
export const metricsWindows = {
  "24h": { hours: 24, intervalSeconds: 60 },
  "7d": { hours: 7 * 24, intervalSeconds: 15 * 60 },
  "30d": { hours: 30 * 24, intervalSeconds: 60 * 60 },
} as const;
export type MetricsWindow = keyof typeof metricsWindows;
export const MetricsWindow = z.enum(Object.keys(metricsWindows) as [MetricsWindow, ...MetricsWindow[]]);

export const MetricsQuery = z.strictObject({
  window: MetricsWindow.default("24h").describe(
    "A sample per minute for 24 hours, per quarter of an hour for 7 days, or per hour for 30 days. Per interval: average CPU, peak memory and disk, and total network.",
  ),
  minutes: wholeNumber(1, 1440).optional().describe("How many of the latest minutes. Default: all."),
});
export type MetricsQuery = z.infer<typeof MetricsQuery>;

export const EventsQuery = z.strictObject({
  since: Timestamp.optional().describe("Only events at this time or later."),
});
export type EventsQuery = z.infer<typeof EventsQuery>;

/** Newest last. */
export const SiteMetrics = z.object({ data: z.array(SiteSample), intervalSeconds: z.number().int() });
export type SiteMetrics = z.infer<typeof SiteMetrics>;

/**
 * `restart`: Docker restarted the container after an exit; `disk_full`: more data than the pack allows; `unhealthy`:
 * healthCheckPath fails; `moved`: earlier logs, metrics and events are gone; `restored`, `restore_failed`: databases only; `slowed`: it
 * writes too much to its log.
 */
const siteEventKinds = [
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

const Listener = z.object({ port: z.number().int(), loopbackOnly: z.boolean() });
export const SiteContainer = z.object({
  deploymentId: z.string().nullable(),
  replica: z.number().int(),
  serves: z.boolean().describe("Visitors are sent to it."),
  running: z.boolean(),
  exitCode: z.number().int().nullable().describe("null: it is running, or has never exited."),
  outOfMemory: z.boolean().describe("It was killed for using more memory than its pack has."),
  restarts: z.number().int(),
  startedAt: Timestamp.nullable(),
  finishedAt: Timestamp.nullable(),
  listens: z.array(Listener).max(50).describe("Its listening TCP ports."),
  probe: z
    .object({
      port: z.number().int(),
      path: z.string().nullable(),
      isHealthy: z.boolean(),
      answer: z.string().max(500).describe("The probe's result, such as `answers 500`."),
      durationMs: z.number().nonnegative(),
    })
    .nullable()
    .describe("The health check, run now; null: the container is not running."),
});
export type SiteContainer = z.infer<typeof SiteContainer>;

/** A site's containers as its host sees them at this moment. */
export const SiteHealth = z
  .object({
    route: z
      .enum(["serving", "stopped", "none"])
      .describe("serving: to containers; stopped: visitors get the page of a stopped site."),
    hostnames: z.array(z.string()).describe("The names that the host routes to the site."),
    containers: z.array(SiteContainer).max(maxReportedContainers),
    diskFreeMb: z.number().nonnegative().nullable(),
  })
  .meta({ id: "SiteHealth" });
export type SiteHealth = z.infer<typeof SiteHealth>;
