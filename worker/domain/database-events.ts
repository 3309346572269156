import type { DatabaseStatus } from "../../protocol/states.ts";

/** Like `siteEvents`: `from` guards the UPDATE, `to` is the new status, `wanted` the requested state. */
export type DatabaseEvent = {
  from: readonly DatabaseStatus[];
  to?: DatabaseStatus;
  wanted?: "RUNNING" | "STOPPED";
};

export const databaseEvents = {
  invoicePaid: { from: ["PENDING"], to: "PROVISIONING", wanted: "RUNNING" },
  /** A database that was never provisioned, or whose data was lost with its host, starts over. */
  provisionRequested: { from: ["STOPPED", "FAILED"], to: "PROVISIONING", wanted: "RUNNING" },
  startRequested: { from: ["STOPPED", "FAILED"], wanted: "RUNNING" },
  stopRequested: { from: ["RUNNING"], wanted: "STOPPED" },
  restartRequested: { from: ["RUNNING", "FAILED"], wanted: "RUNNING" },
  rotateRequested: { from: ["RUNNING"], wanted: "RUNNING" },
  /** Independent of whether it runs: only its next start is affected. */
  exposeRequested: { from: ["RUNNING", "STOPPED", "FAILED"] },
  restoreRequested: { from: ["RUNNING", "STOPPED", "FAILED"], wanted: "RUNNING" },
  /** `wanted` is kept for when it is paid again. */
  suspended: { from: ["RUNNING", "STOPPED", "FAILED"], to: "SUSPENDED" },
  resumed: { from: ["SUSPENDED"], to: "STOPPED" },
  deleteRequested: {
    from: ["PENDING", "PROVISIONING", "RUNNING", "STOPPED", "FAILED", "SUSPENDED"],
    to: "DELETING",
  },
  provisioned: { from: ["PROVISIONING"], to: "RUNNING" },
  started: { from: ["STOPPED", "FAILED", "RUNNING"], to: "RUNNING" },
  stopped: { from: ["RUNNING", "FAILED"], to: "STOPPED" },
  provisionFailed: { from: ["PROVISIONING"], to: "FAILED" },
  startFailed: { from: ["STOPPED", "FAILED", "RUNNING"], to: "FAILED" },
  crashed: { from: ["RUNNING"], to: "FAILED" },
  /** Its data is missing on its host. */
  dataLost: { from: ["RUNNING", "STOPPED"], to: "FAILED" },
} as const satisfies Record<string, DatabaseEvent>;
export type DatabaseEventName = keyof typeof databaseEvents;
