import type { SiteStatus } from "../../protocol/states.ts";

/**
 * The effect of a command or an outcome on a site: `from` guards the UPDATE, `to` is the new status, `wanted` the
 * requested state. Without `to`, the job's outcome decides the status.
 */
export type SiteEvent = { from: readonly SiteStatus[]; to?: SiteStatus; wanted?: "RUNNING" | "STOPPED" };

export const siteEvents = {
  invoicePaid: { from: ["PENDING"], to: "DEPLOYING", wanted: "RUNNING" },
  deployRequested: {
    from: ["DEPLOYING", "RUNNING", "STOPPED", "FAILED"],
    to: "DEPLOYING",
    wanted: "RUNNING",
  },
  /** A move to another host; `wanted` is unchanged. */
  moveRequested: { from: ["RUNNING", "STOPPED"], to: "DEPLOYING" },
  startRequested: { from: ["STOPPED", "FAILED"], wanted: "RUNNING" },
  stopRequested: { from: ["RUNNING", "DEPLOYING"], wanted: "STOPPED" },
  restartRequested: { from: ["RUNNING"], wanted: "RUNNING" },
  /** `wanted` is kept for when it is paid again. */
  suspended: { from: ["DEPLOYING", "RUNNING", "STOPPED", "FAILED"], to: "SUSPENDED" },
  resumed: { from: ["SUSPENDED"], to: "DEPLOYING" },
  deleteRequested: {
    from: ["PENDING", "DEPLOYING", "RUNNING", "STOPPED", "FAILED", "SUSPENDED"],
    to: "DELETING",
  },
  started: { from: ["STOPPED", "FAILED", "RUNNING"], to: "RUNNING" },
  stopped: { from: ["RUNNING", "DEPLOYING", "FAILED"], to: "STOPPED" },
  startFailed: { from: ["STOPPED", "RUNNING"], to: "FAILED" },
  crashed: { from: ["RUNNING"], to: "FAILED" },
} as const satisfies Record<string, SiteEvent>;
export type SiteEventName = keyof typeof siteEvents;
