import { requestWindows, type RequestStats, type RequestWindow } from "../../protocol/api/requests.ts";

/** Of a site that no host has. */
export function noRequests(window: RequestWindow, now: Date): RequestStats {
  const { seconds, intervalSeconds } = requestWindows[window];
  return {
    window,
    from: new Date(now.getTime() - seconds * 1000).toISOString(),
    to: now.toISOString(),
    intervalSeconds,
    totals: {
      requests: 0,
      perSecond: 0,
      statuses: { "1xx": 0, "2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0, none: 0 },
      p50Ms: null,
      p95Ms: null,
      p99Ms: null,
      bytesIn: 0,
      bytesOut: 0,
    },
    series: [],
    top: { paths: [], referrers: [], userAgents: [] },
  };
}
