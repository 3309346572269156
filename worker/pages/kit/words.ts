import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { Site } from "../../../protocol/api/sites.ts";
import type { Database } from "../../../protocol/api/databases.ts";
import type { Invoice } from "../../../protocol/api/invoices.ts";

/** What a colour means: in service, in progress, needs you, failed, at rest. */
export type Tone = "good" | "busy" | "warn" | "bad" | "soft";
export type Word = { tone: Tone; label: string };

export const counted = (count: number, one: string, many: string): string =>
  `${count} ${count === 1 ? one : many}`;

export const siteWords: Record<Site["status"], Word> = {
  PENDING: { tone: "warn", label: "Awaiting payment" },
  DEPLOYING: { tone: "busy", label: "Deploying" },
  RUNNING: { tone: "good", label: "In service" },
  STOPPED: { tone: "soft", label: "Stopped" },
  FAILED: { tone: "bad", label: "Failed" },
  SUSPENDED: { tone: "warn", label: "Suspended" },
  DELETING: { tone: "busy", label: "Deleting" },
};

export const deploymentWords: Record<Deployment["status"], Word> = {
  QUEUED: { tone: "busy", label: "Waiting" },
  BUILDING: { tone: "busy", label: "Building" },
  STARTING: { tone: "busy", label: "Starting" },
  LIVE: { tone: "good", label: "In service" },
  FAILED: { tone: "bad", label: "Failed" },
  CANCELLED: { tone: "soft", label: "Cancelled" },
  SUPERSEDED: { tone: "soft", label: "Replaced" },
};

export const databaseWords: Record<Database["status"], Word> = {
  PENDING: { tone: "warn", label: "Awaiting payment" },
  PROVISIONING: { tone: "busy", label: "Being set up" },
  RUNNING: { tone: "good", label: "In service" },
  FAILED: { tone: "bad", label: "Failed" },
  STOPPED: { tone: "soft", label: "Stopped" },
  SUSPENDED: { tone: "warn", label: "Suspended" },
  DELETING: { tone: "busy", label: "Deleting" },
};

export const invoiceWords: Record<Invoice["status"], Word> = {
  unpaid: { tone: "warn", label: "Unpaid" },
  paid: { tone: "good", label: "Paid" },
  void: { tone: "soft", label: "Void" },
  refunded: { tone: "soft", label: "Refunded" },
};
