import * as z from "zod";
import { Timestamp } from "./common.ts";
import { LogLine } from "./deployments.ts";

/** `follow=1` answers server-sent events, one line each; their ids are times, to go on from with `Last-Event-ID`. */
export const SiteLogQuery = z.strictObject({
  follow: z.enum(["0", "1"]).default("0"),
  /** Lines from the end. */
  tail: z.coerce.number().int().min(0).max(1000).default(100),
  /** Only lines after this time, such as the `at` of the last line seen; with `follow=1` all of them, whatever `tail` says. */
  since: Timestamp.optional(),
});
export type SiteLogQuery = z.infer<typeof SiteLogQuery>;

/** `at` has nanoseconds and is a place to go on from; `seq` is the same in microseconds. */
export const SiteLogs = z.object({ data: z.array(LogLine) });
export type SiteLogs = z.infer<typeof SiteLogs>;

/**
 * The minute that ended `at`. Traffic is what came and went in it; `diskMb` is what the containers wrote and the volumes
 * hold, looked at every ten minutes; null where the host cannot tell.
 */
export const SiteSample = z.object({
  at: Timestamp,
  cpuMilli: z.number().nonnegative(),
  memoryMb: z.number().nonnegative(),
  networkInBytes: z.number().nonnegative(),
  networkOutBytes: z.number().nonnegative(),
  diskMb: z.number().nonnegative().nullable(),
});
export type SiteSample = z.infer<typeof SiteSample>;

/** One minute each, a day of them, newest last. */
export const SiteMetrics = z.object({ data: z.array(SiteSample) });
export type SiteMetrics = z.infer<typeof SiteMetrics>;

/** `restart` is Docker's own, after an exit; `disk_full`: what was written is more than the pack has. */
export const siteEventKinds = ["start", "restart", "stop", "exit", "oom", "crash_loop", "disk_full"] as const;

export const SiteEvent = z
  .object({ at: Timestamp, kind: z.enum(siteEventKinds), detail: z.string().max(2000) })
  .meta({ id: "SiteEvent" });
export type SiteEvent = z.infer<typeof SiteEvent>;

/** The last 200, newest last. */
export const SiteEvents = z.object({ data: z.array(SiteEvent) });
export type SiteEvents = z.infer<typeof SiteEvents>;
