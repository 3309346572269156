import * as z from "zod";
import { listOf, text, Timestamp, wholeNumber } from "./common.ts";

/** Requests kept per site. */
export const keepRequests = 10_000;
/** How much of each part of a request is kept. */
export const maxPathCharacters = 500;
export const maxHeaderCharacters = 200;

const RequestNumber = z.string().regex(/^\d{1,15}$/, "a nextCursor of this list");

/** What of a site's requests is wanted. Conditions are combined. */
const filters = {
  status: z
    .string()
    .regex(/^(?:[1-5]xx|[1-5]\d\d|0)$/, "a status such as 404, a class such as 5xx, or 0: the visitor left")
    .optional()
    .describe("A status, a class of them such as `5xx`, or `0`: the visitor left before the site responded."),
  path: text.min(1).max(maxPathCharacters).optional().describe("The beginning of the path, such as `/api/`."),
  method: z
    .string()
    .regex(/^[A-Za-z]{1,20}$/, "a method such as GET")
    .optional(),
  address: z.union([z.ipv4(), z.ipv6()]).optional().describe("The visitor's address."),
  from: Timestamp.optional().describe("Requests completed at this time or later."),
  to: Timestamp.optional().describe("Requests completed before this time."),
};
export const RequestFilters = z.strictObject(filters);
export type RequestFilters = z.infer<typeof RequestFilters>;

export const RequestQuery = z.strictObject({
  ...filters,
  follow: z
    .enum(["0", "1"])
    .default("0")
    .describe(
      "1: stream new requests as server-sent events of type `request`, for as long as your key or session is valid. After a cut, `Last-Event-ID` continues.",
    ),
  limit: wholeNumber(1, 100).default(50),
  cursor: RequestNumber.optional(),
});
export type RequestQuery = z.infer<typeof RequestQuery>;

export const SiteRequest = z
  .object({
    id: RequestNumber,
    at: Timestamp.describe("When the response was complete."),
    method: z.string().max(20),
    host: z.string().max(255),
    path: z.string().max(maxPathCharacters),
    query: z
      .string()
      .max(maxPathCharacters)
      .nullable()
      .describe("Values of parameters that look like secrets are masked."),
    status: z.number().int().min(0).max(999).describe("0: the visitor left before the site responded."),
    durationMs: z.number().nonnegative(),
    bytesIn: z.number().int().nonnegative().describe("The request body, as far as it was read."),
    bytesOut: z.number().int().nonnegative().describe("The response body."),
    address: z.string().max(45).describe("The visitor's."),
    referrer: z.string().max(maxHeaderCharacters).nullable().describe("Without its query."),
    userAgent: z.string().max(maxHeaderCharacters).nullable(),
    deploymentId: z.string().nullable().describe("The version that responded, if known."),
    replica: z.number().int().positive().nullable(),
    requestId: z
      .string()
      .max(64)
      .nullable()
      .describe("The `X-Request-Id` that the app received; null: redirected to https."),
    represents: z
      .number()
      .int()
      .positive()
      .describe("1, or, if only a sample is kept during a flood of requests, how many this one represents."),
  })
  .meta({ id: "SiteRequest" });
export type SiteRequest = z.infer<typeof SiteRequest>;

/** Newest first. */
export const SiteRequests = listOf(SiteRequest);
export type SiteRequests = z.infer<typeof SiteRequests>;

/** How long each window is, and its intervals, in seconds. */
export const requestWindows = {
  "1h": { seconds: 3600, intervalSeconds: 60 },
  "24h": { seconds: 86_400, intervalSeconds: 900 },
  "7d": { seconds: 7 * 86_400, intervalSeconds: 3600 },
  "30d": { seconds: 30 * 86_400, intervalSeconds: 3600 },
} as const;
export type RequestWindow = keyof typeof requestWindows;
const windowNames = Object.keys(requestWindows) as [RequestWindow, ...RequestWindow[]];
export const RequestWindow = z.enum(windowNames);

export const RequestStatsQuery = z.strictObject({
  window: RequestWindow.default("1h").describe(
    "Per minute for an hour, per quarter of an hour for a day, per hour for a week or thirty days.",
  ),
});
export type RequestStatsQuery = z.infer<typeof RequestStatsQuery>;

const Count = z.number().int().nonnegative();
const Milliseconds = z.number().nonnegative().nullable();

const RequestFigures = z.object({
  requests: Count,
  perSecond: z.number().nonnegative(),
  statuses: z
    .object({ "1xx": Count, "2xx": Count, "3xx": Count, "4xx": Count, "5xx": Count, none: Count })
    .describe("`none`: the visitor left before the site responded."),
  p50Ms: Milliseconds.describe(
    "Half of the responses took at most this long, within 2 %; null: no requests.",
  ),
  p95Ms: Milliseconds,
  p99Ms: Milliseconds,
  bytesIn: Count,
  bytesOut: Count,
});
export type RequestFigures = z.infer<typeof RequestFigures>;

/** At most so many of each. */
export const maxTops = 10;
const Tops = z.array(z.object({ value: z.string().max(maxPathCharacters), requests: Count })).max(maxTops);

/** Upgraded connections, such as WebSockets, count when they end, and not in the percentiles. */
export const RequestStats = z
  .object({
    window: RequestWindow,
    from: Timestamp,
    to: Timestamp,
    intervalSeconds: z.number().int().positive(),
    totals: RequestFigures,
    series: z
      .array(RequestFigures.extend({ at: Timestamp.describe("The beginning of the interval.") }))
      .max(800)
      .describe("Intervals in which there were requests, oldest first."),
    top: z
      .object({ paths: Tops, referrers: Tops, userAgents: Tops })
      .describe("The most frequent, from the beginning of the first whole or partial hour of the window."),
  })
  .meta({ id: "RequestStats" });
export type RequestStats = z.infer<typeof RequestStats>;
