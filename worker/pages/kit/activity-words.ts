import type { OwnAccount } from "../../../protocol/api/accounts.ts";
import type { Activity } from "../../../protocol/api/activity.ts";
import type { operations, OperationId } from "../../../protocol/api/operations.ts";
import type { automaticActions } from "../../../protocol/states.ts";
import type { SignInChange } from "../../services/accounts/note-sign-in-change.ts";
import { browserName } from "./browser-name.ts";

type Changing = {
  [Id in OperationId]: (typeof operations)[Id]["method"] extends "get" ? never : Id;
}[OperationId];

/** What was done, in the past tense. */
const done: Readonly<Record<Changing | (typeof automaticActions)[number] | SignInChange | "viewAs", string>> =
  {
    inspectSource: "Checked a repository",
    createSite: "Created a site",
    patchSite: "Changed a site",
    cloneSite: "Copied a site",
    probeSite: "Sent a request to a site",
    deleteSite: "Deleted a site",
    generateSecret: "Generated a secret variable",
    restoreEnvVersion: "Restored earlier variables",
    rollbackSite: "Asked to roll back to an earlier version",
    cancelDeployment: "Cancelled a deployment",
    createDomain: "Added a domain",
    deleteDomain: "Removed a domain",
    verifyDomain: "Checked a domain",
    renewDomain: "Renewed a domain's certificate",
    runCommand: "Ran a command",
    cancelCommand: "Cancelled a command",
    createSchedule: "Planned a command",
    patchSchedule: "Changed a planned command",
    deleteSchedule: "Removed a planned command",
    changeVolume: "Changed a volume",
    createVolumeBackup: "Asked for a backup of a volume",
    restoreVolume: "Asked for a restore of a volume",
    removeVolume: "Deleted a volume",
    rotateWebhook: "Replaced the deploy webhook",
    triggerWebhook: "A push asked for a deployment",
    createDatabase: "Created a database",
    patchDatabase: "Changed a database",
    deleteDatabase: "Deleted a database",
    linkDatabase: "Linked a site to a database",
    unlinkDatabase: "Unlinked a site from a database",
    rotateDatabase: "Changed a database's password",
    queryDatabase: "Ran a statement that writes",
    endDatabaseSession: "Ended a session of a database",
    createBackup: "Asked for a backup",
    restoreDatabase: "Asked for a restore",
    deleteBackup: "Deleted a backup",
    verifyBackup: "Tried a backup by restoring it",
    linkBackup: "Downloaded a backup",
    purchaseCredits: "Ordered credits",
    grantCredits: "Gave credits",
    createCreditPackage: "Added a credit package",
    patchCreditPackage: "Changed a credit package",
    chat: "Asked the assistant",
    chatStream: "Asked the assistant",
    patchConversation: "Renamed a conversation",
    deleteConversation: "Deleted a conversation",
    startDevice: "Began to sign a program in",
    createKey: "Created an API key",
    revokeKey: "Revoked an API key",
    revokeOwnKey: "Signed a program out",
    patchAccount: "Changed an account",
    patchTerm: "Changed the plan of a site or database",
    suspendAccount: "Suspended an account",
    releaseAccount: "Released an account",
    disableTwoFactor: "Turned off two-step sign-in",
    patchAccountProfile: "Changed the profile",
    deleteAccount: "Deleted the account",
    revokeSession: "Signed a browser out",
    revokeOtherSessions: "Signed the other browsers out",
    patchBillingDetails: "Changed the billing details",
    patchSettings: "Changed the installation's settings",
    createNotificationChannel: "Added a notification channel",
    patchNotificationChannel: "Changed a notification channel",
    deleteNotificationChannel: "Removed a notification channel",
    testNotificationChannel: "Tested a notification channel",
    cancelInvoice: "Cancelled an invoice",
    voidInvoice: "Voided an invoice",
    refundInvoice: "Refunded an invoice",
    resolvePaymentFlag: "Resolved a payment event",
    receiveStripeEvent: "An event of the payment processor arrived",
    createPack: "Added a plan",
    patchPack: "Changed a plan",
    createHost: "Added a host",
    patchHost: "Changed a host",
    deleteHost: "Removed a host",
    removeSetAside: "Deleted what a host had set aside",
    checkPayments: "Checked the set-up of payments",
    testMail: "Sent a test mail",
    cancelJob: "Cancelled a job",
    retryJob: "Asked again for a failed job",
    rotateSecrets: "Re-encrypted secrets under the current key",
    changePassword: "Changed the password",
    resetPassword: "The password was reset by a mailed link",
    turnOnTwoFactor: "Turned on two-step sign-in",
    turnOffTwoFactor: "Turned off two-step sign-in",
    renewRecoveryCodes: "Made new recovery codes",
    viewAs: "Looked at the dashboard as the customer",
    settleInvoice: "An invoice was paid",
    suspendSite: "A site was suspended: its term had ended, or the account was suspended",
    suspendDatabase: "A database was suspended: its term had ended, or the account was suspended",
    moveSite: "A site was moved to another host",
    reportSiteCrash: "A site kept crashing",
    reportSiteExit: "A site's app ended by itself",
    reportDatabaseCrash: "A database kept crashing",
  };

const actions: Readonly<Record<string, string>> = {
  deploy: "Asked for a deployment",
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
  if (Object.hasOwn(done, operation)) return done[operation as keyof typeof done];
  if (operation.includes("_")) return `Asked for “${operation.replaceAll("_", " ")}”`;
  // Recorded by an earlier version, under a name that is no longer in use.
  return operation
    .replaceAll(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`)
    .replace(/^./, (letter) => letter.toUpperCase());
}

/** What an entry is about, as its owner calls it: a name of the account's terms, or the kind of thing. */
export function resourceText(resourceId: string, terms: OwnAccount["terms"]): string | null {
  const name = terms.find(({ id }) => id === resourceId)?.name;
  return name ?? resourceKinds[resourceId.split("_")[0] ?? ""] ?? null;
}

const resourceKinds: Readonly<Record<string, string>> = {
  invoice: "an invoice",
  cpk: "credits",
  key: "an API key",
  dep: "a deployment",
  bak: "a backup",
  cmd: "a command",
  sch: "a planned command",
  host: "a host",
  pack: "a plan",
  site: "a deleted site",
  db: "a deleted database",
  acc: "the account",
};

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

/** Who did it, as precisely as the record knows: the key by its name and beginning, the browser by its kind. */
export function actorText({ actor, key, browser }: Activity): string {
  if (key) {
    const kind = key.origin === "device" ? "the command line" : "the key";
    return `${kind} “${key.name}” (${key.start}…)${actor === "assistant" ? ", through the assistant" : ""}`;
  }
  if (actor !== "session" || browser === null) return actorWords[actor];
  const name = browserName(browser);
  return name === undefined ? actorWords.session : `you, in ${name}`;
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
