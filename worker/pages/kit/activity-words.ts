import type { Activity } from "../../../protocol/api/activity.ts";
import { operations } from "../../../protocol/api/operations.ts";

/** What was done, in the past tense; an operation that is not listed is told by its summary. */
const done: Readonly<Record<string, string>> = {
  createSite: "Created a site",
  patchSite: "Changed a site",
  deleteSite: "Deleted a site",
  cloneSite: "Cloned a site",
  rollbackSite: "Rolled back to an earlier version",
  cancelDeployment: "Cancelled a deployment",
  restoreEnv: "Restored earlier variables",
  generateEnvValue: "Generated a variable",
  addDomain: "Added a domain",
  removeDomain: "Removed a domain",
  verifyDomain: "Checked a domain",
  renewDomainCertificate: "Renewed a certificate",
  createCommand: "Ran a command",
  runCommand: "Ran a command",
  cancelCommand: "Cancelled a command",
  createSchedule: "Planned a command",
  patchSchedule: "Changed a planned command",
  deleteSchedule: "Removed a planned command",
  deleteVolume: "Deleted a volume",
  rotateWebhook: "Made a new deploy webhook",
  receiveWebhook: "Deployed by a push",
  createDatabase: "Created a database",
  patchDatabase: "Changed a database",
  deleteDatabase: "Deleted a database",
  linkDatabase: "Linked a site to a database",
  unlinkDatabase: "Unlinked a site from a database",
  rotateDatabase: "Rotated a database's password",
  queryDatabase: "Ran a statement that writes",
  endDatabaseSession: "Ended a session of a database",
  createBackup: "Asked for a backup",
  restoreDatabase: "Restored a backup",
  createVolumeBackup: "Asked for a backup of a volume",
  restoreVolume: "Restored a volume's backup",
  changeVolume: "Changed when a volume is backed up",
  deleteBackup: "Deleted a backup",
  verifyBackup: "Tried a backup by restoring it",
  linkBackup: "Downloaded a backup",
  purchaseCredits: "Ordered credits",
  grantCredits: "Gave credits",
  disableTwoFactor: "Turned off two-step sign-in",
  cancelJob: "Cancelled a job",
  retryJob: "Asked again for a failed job",
  createKey: "Created an API key",
  revokeKey: "Revoked an API key",
  revokeOwnKey: "Signed a program out",
  cancelInvoice: "Cancelled an invoice",
  voidInvoice: "Voided an invoice",
  refundInvoice: "Refunded an invoice",
  settleInvoice: "An invoice was paid",
  suspendSite: "A site was suspended: its term had ended, or the account was suspended",
  suspendDatabase: "A database was suspended: its term had ended, or the account was suspended",
  moveSite: "A site was moved to another host",
  reportSiteCrash: "A site kept crashing",
  reportDatabaseCrash: "A database kept crashing",
};

const actions: Readonly<Record<string, string>> = {
  deploy: "Deployed",
  start: "Started",
  stop: "Stopped",
  restart: "Restarted",
};
const changes: Readonly<Record<string, string>> = {
  settings: "Changed the settings",
  envVariables: "Changed the variables",
  domain: "Changed the domains",
  packId: "Changed the plan",
  backups: "Changed the backups' schedule",
  publicAccess: "Changed who may connect from outside",
  webhook: "Changed the deploy webhook",
};

/** An entry of the activity in words. */
export function activityText({ operation, arguments: given }: Activity): string {
  if (operation === "patchSite" || operation === "patchDatabase") {
    const { action } = given;
    if (typeof action === "string" && actions[action] !== undefined) return actions[action];
    const changed = Object.keys(given).find((name) => Object.hasOwn(changes, name));
    if (changed !== undefined) return changes[changed] ?? "";
  }
  const text = Object.hasOwn(done, operation) ? done[operation] : undefined;
  if (text !== undefined) return text;
  if (Object.hasOwn(operations, operation)) return operations[operation as keyof typeof operations].summary;
  return operation
    .replaceAll(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`)
    .replace(/^./, (letter) => letter.toUpperCase());
}

export const actorWords: Record<Activity["actor"], string> = {
  session: "you, in the dashboard",
  key: "an API key",
  assistant: "the assistant",
  operator: "the operator",
  webhook: "a push",
  link: "somebody with the invoice's link",
  host: "the host",
  system: "Berth itself",
};

const browsers = ["Edg", "OPR", "Firefox", "Chrome", "Safari"] as const;
const browserNames: Partial<Record<string, string>> = { Edg: "Edge", OPR: "Opera" };

/** Who did it, as precisely as the record knows: the key by its name and beginning, the browser by its kind. */
export function actorText({ actor, key, browser }: Activity): string {
  if (key) {
    const kind = key.origin === "device" ? "the command line" : "the key";
    return `${kind} “${key.name}” (${key.start}…)${actor === "assistant" ? ", through the assistant" : ""}`;
  }
  if (actor !== "session" || browser === null) return actorWords[actor];
  const found = browsers.find((name) => browser.includes(name));
  return found === undefined ? actorWords.session : `you, in ${browserNames[found] ?? found}`;
}

/** The page of a resource; null: it has none. */
export function pathOfResource(id: string): string | null {
  const [kind] = id.split("_");
  if (kind === "site") return `/sites/${id}`;
  if (kind === "db") return `/databases/${id}`;
  if (kind === "dep") return `/deployments/${id}`;
  if (kind === "invoice" || kind === "cpk") return "/billing";
  if (kind === "key") return "/account/keys";
  return null;
}
