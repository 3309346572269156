import * as z from "zod";
import { Timestamp } from "./common.ts";
import { LogLine } from "./deployments.ts";

export const SiteLogQuery = z.strictObject({
  follow: z.enum(["0", "1"]).default("0"),
  /** Lines from the end. */
  tail: z.coerce.number().int().min(0).max(1000).default(100),
});

export const SiteLogs = z.object({ data: z.array(LogLine) });

/** One minute each, a day of them. */
export const SiteMetrics = z.object({
  data: z.array(
    z.object({
      at: Timestamp,
      cpuMilli: z.number(),
      memoryMb: z.number(),
      networkInBytes: z.number(),
      networkOutBytes: z.number(),
      diskMb: z.number().nullable(),
    }),
  ),
});
