import * as z from "zod";
import type { ErrorCode } from "../errors.ts";
import type { IdKind } from "../ids.ts";
import { Activity, ActivityQuery, AllActivityQuery } from "./activity.ts";
import { Account, AccountListQuery, AccountPatch } from "./accounts.ts";
import { ChatReply, ChatRequest } from "./chat.ts";
import { Command, CommandCreate, CommandListQuery } from "./commands.ts";
import { listOf, listQuery, type Resumed } from "./common.ts";
import {
  CreditGrant,
  CreditPackage,
  CreditPackageCreate,
  CreditPackageForOperator,
  CreditPackagePatch,
  CreditPurchase,
  CreditPurchased,
  Credits,
  Transaction,
} from "./credits.ts";
import { Backup, BackupDeleted, BackupLink, BackupListQuery, FailingBackups } from "./backups.ts";
import {
  Database,
  DatabaseActionAccepted,
  DatabaseCreate,
  DatabaseCreated,
  DatabaseCredentials,
  DatabaseLink,
  DatabaseLinkCreate,
  DatabasePatch,
  DatabaseRestore,
  DatabaseUnlinked,
  DatabaseUnlinkQuery,
} from "./databases.ts";
import { Deployment, DeploymentCancelled, LogLine, LogQuery } from "./deployments.ts";
import { DevicePolled, DevicePollQuery, DeviceStart, DeviceStarted } from "./device.ts";
import {
  Host,
  HostCreate,
  HostCreated,
  HostPatch,
  HostRemoved,
  HostRemoveQuery,
  SetAsideList,
  SetAsideRemoved,
} from "./hosts.ts";
import { Invoice, InvoiceRefund, InvoiceRefunded } from "./invoices.ts";
import { DatabaseInsight, DatabaseQuery, DatabaseQueryResult, DatabaseSchema } from "./insight.ts";
import { Key, KeyCreate, KeyCreated, KeyRevoked } from "./keys.ts";
import { Schedule, ScheduleCreate, SchedulePatch } from "./schedules.ts";
import { PackChanged, Pack, PackCreate, PackForOperator, PackPatch } from "./packs.ts";
import { FlagQuery, FlagResolve, LedgerVerified, PaymentFlag } from "./payments.ts";
import { SiteEvents, SiteLogQuery, SiteLogs, SiteMetrics } from "./running.ts";
import {
  DomainChanged,
  EnvChanged,
  Site,
  SiteActionAccepted,
  SiteCreate,
  SiteCreated,
  SitePatch,
  SiteRollback,
  WebhookAddress,
} from "./sites.ts";
import { SiteVolumes, VolumeRemoved } from "./volumes.ts";
import { SecretsRotate, SecretsRotated } from "./secrets.ts";

/** One endpoint. Request validation, the OpenAPI document and the clients are all derived from it. */
export type Operation = {
  method: "get" | "post" | "patch" | "delete";
  /** Below {base_url} unless `at` says otherwise; path parameters are written `{id}`. */
  path: string;
  at?: "site" | "webhook";
  tag: string;
  summary: string;
  /** key: a key or a session; session: a session only; operator: an operator's key or session; own: see `entryOperations`. */
  access: "none" | "key" | "session" | "operator" | "own";
  /** A credential specific to this operation, unless it is part of the URL or the body. */
  bearer?: "setupToken" | "session";
  query?: z.ZodObject;
  body?: z.ZodType;
  /** The body is optional. */
  optionalBody?: true;
  /** Accepts any body and trusts none of it. */
  anyBody?: true;
  /** The first entry whose `with` names a field of the body applies, otherwise the first without `with`. */
  answers: { status: 200 | 201 | 202 | 206; schema: z.ZodType; when?: string; with?: string }[];
  /** Answers a file of this media type instead of JSON. */
  file?: "application/octet-stream" | "application/pdf";
  /** The file supports range requests. */
  ranges?: true;
  /** Also answers server-sent events. */
  streams?: true;
  /** The kind of resource it creates; the id is the answer's `siteId`, `databaseId` or `id`. */
  creates?: IdKind;
  /** The Location header: where to find the new resource, with a field of the answer as `{field}`. */
  location?: string;
  /** Fields that are shown once: a replay under the same Idempotency-Key omits them. */
  shownOnce?: readonly string[];
  /** A POST that is read-only unless this field of the body is true. */
  readsUnless?: string;
  /** An additional rate limit per account, besides the credential's own. */
  limit?: "keyMade" | "chat";
  /** Errors beyond those implied by access, parameters and body. */
  refusals?: readonly ErrorCode[];
  /** Answers 501 after all checks, until the capability is implemented. */
  notBuilt?: true;
  examples?: { body?: unknown; answer?: unknown };
};

const exampleTime = "2026-11-21T12:00:00.000Z";
const exampleSiteId = "site_001m80000000000000000000000";
const exampleDatabaseId = "db_001m80000000000000000000000";

export const operations = {
  listSites: {
    method: "get",
    path: "/sites",
    tag: "Sites",
    summary: "The caller's sites, newest first",
    access: "key",
    query: listQuery("site"),
    answers: [{ status: 200, schema: listOf(Site) }],
  },
  createSite: {
    method: "post",
    path: "/sites",
    tag: "Sites",
    summary: "Create a site and its first invoice. The site is deployed once the invoice is paid",
    access: "key",
    body: SiteCreate,
    creates: "site",
    location: "/sites/{siteId}",
    answers: [{ status: 201, schema: SiteCreated }],
    refusals: ["conflict"],
    examples: {
      body: {
        name: "my-app",
        deployType: "github",
        githubUrl: "github.com/acme/my-app",
        branch: "main",
        port: 3000,
        buildCommand: "npm run build",
        startCommand: "npm start",
        billingTerm: 1,
      },
      answer: {
        invoiceToken: "inv_0Zx4",
        invoiceId: "invoice_001m80000000000000000000000",
        siteId: exampleSiteId,
      },
    },
  },
  getSite: {
    method: "get",
    path: "/sites/{id}",
    tag: "Sites",
    summary: "One site",
    access: "key",
    answers: [{ status: 200, schema: Site }],
  },
  patchSite: {
    method: "patch",
    path: "/sites/{id}",
    tag: "Sites",
    summary:
      "Run an action, or change a domain, environment variables, settings or the pack: exactly one of them per request",
    access: "key",
    body: SitePatch,
    answers: [
      { status: 200, schema: z.union([EnvChanged, DomainChanged, PackChanged, Site]), when: "A change" },
      { status: 202, schema: SiteActionAccepted, when: "An action", with: "action" },
    ],
    refusals: ["payment_required", "conflict"],
    examples: { body: { action: "deploy" }, answer: { id: exampleSiteId, status: "DEPLOYING" } },
  },
  deleteSite: {
    method: "delete",
    path: "/sites/{id}",
    tag: "Sites",
    summary: "Permanently delete the site with its containers, images, routes, secrets and logs",
    access: "key",
    answers: [{ status: 202, schema: SiteActionAccepted }],
    examples: { answer: { id: exampleSiteId, status: "DELETING" } },
  },
  listDeployments: {
    method: "get",
    path: "/sites/{id}/deployments",
    tag: "Deployments",
    summary: "A site's deployments, newest first",
    access: "key",
    query: listQuery("deployment"),
    answers: [{ status: 200, schema: listOf(Deployment) }],
  },
  rollbackSite: {
    method: "post",
    path: "/sites/{id}/rollback",
    tag: "Deployments",
    summary: "Roll back to an earlier deployment, with its image and its environment",
    access: "key",
    body: SiteRollback,
    optionalBody: true,
    answers: [{ status: 202, schema: SiteActionAccepted }],
    refusals: ["payment_required", "conflict"],
    examples: {
      answer: { id: exampleSiteId, status: "DEPLOYING", deploymentId: "dep_001m80000000000000000000000" },
    },
  },
  getDeployment: {
    method: "get",
    path: "/deployments/{id}",
    tag: "Deployments",
    summary: "One deployment",
    access: "key",
    answers: [{ status: 200, schema: Deployment }],
  },
  cancelDeployment: {
    method: "post",
    path: "/deployments/{id}/cancel",
    tag: "Deployments",
    summary: "Cancel a queued or running deployment. The version in service keeps running",
    access: "key",
    answers: [{ status: 202, schema: DeploymentCancelled }],
    refusals: ["conflict"],
  },
  getDeploymentLogs: {
    method: "get",
    path: "/deployments/{id}/logs",
    tag: "Deployments",
    summary: "A deployment's log, oldest line first",
    access: "key",
    query: LogQuery,
    answers: [{ status: 200, schema: listOf(LogLine) }],
    streams: true,
    refusals: ["conflict"],
  },
  getSiteLogs: {
    method: "get",
    path: "/sites/{id}/logs",
    tag: "Sites",
    summary: "The running site's log",
    access: "key",
    query: SiteLogQuery,
    answers: [{ status: 200, schema: SiteLogs }],
    streams: true,
    refusals: ["conflict"],
  },
  getSiteMetrics: {
    method: "get",
    path: "/sites/{id}/metrics",
    tag: "Sites",
    summary: "CPU, memory, network and disk usage of the running site, per minute",
    access: "key",
    answers: [{ status: 200, schema: SiteMetrics }],
    refusals: ["conflict"],
  },
  getSiteEvents: {
    method: "get",
    path: "/sites/{id}/events",
    tag: "Sites",
    summary: "Starts, stops, exits and out-of-memory kills of the running site",
    access: "key",
    answers: [{ status: 200, schema: SiteEvents }],
    refusals: ["conflict"],
  },
  listVolumes: {
    method: "get",
    path: "/sites/{id}/volumes",
    tag: "Sites",
    summary: "The site's volumes, mounted or detached, and their sizes",
    access: "key",
    answers: [{ status: 200, schema: SiteVolumes }],
    examples: { answer: { data: [{ name: "uploads", mountPath: "/data", mounted: true, sizeMb: 12.5 }] } },
  },
  removeVolume: {
    method: "delete",
    path: "/sites/{id}/volumes/{name}",
    tag: "Sites",
    summary: "Delete a detached volume with all its data",
    access: "key",
    answers: [{ status: 200, schema: VolumeRemoved }],
    refusals: ["conflict"],
    examples: { answer: { name: "uploads", removed: true } },
  },
  listCommands: {
    method: "get",
    path: "/sites/{id}/commands",
    tag: "Commands",
    summary: "A site's commands, newest first: those of the last 30 days, and at most 50 per schedule",
    access: "key",
    query: CommandListQuery,
    answers: [{ status: 200, schema: listOf(Command) }],
  },
  runCommand: {
    method: "post",
    path: "/sites/{id}/commands",
    tag: "Commands",
    summary:
      "Run a one-off command in a new container of the site's image, with the latest environment variables",
    access: "key",
    body: CommandCreate,
    creates: "command",
    location: "/commands/{id}",
    answers: [{ status: 202, schema: Command }],
    refusals: ["payment_required", "conflict"],
    examples: { body: { command: "npm run migrate", timeoutSeconds: 300 } },
  },
  getCommand: {
    method: "get",
    path: "/commands/{id}",
    tag: "Commands",
    summary: "One command and its result",
    access: "key",
    answers: [{ status: 200, schema: Command }],
  },
  cancelCommand: {
    method: "post",
    path: "/commands/{id}/cancel",
    tag: "Commands",
    summary: "Cancel a queued or running command: SIGTERM, then SIGKILL after ten seconds",
    access: "key",
    answers: [{ status: 202, schema: Command }],
    refusals: ["conflict"],
  },
  getCommandLogs: {
    method: "get",
    path: "/commands/{id}/logs",
    tag: "Commands",
    summary: "A command's output, oldest line first",
    access: "key",
    query: LogQuery,
    answers: [{ status: 200, schema: listOf(LogLine) }],
    streams: true,
    refusals: ["conflict"],
  },
  listSchedules: {
    method: "get",
    path: "/sites/{id}/schedules",
    tag: "Commands",
    summary: "A site's schedules, newest first",
    access: "key",
    query: listQuery("schedule"),
    answers: [{ status: 200, schema: listOf(Schedule) }],
  },
  createSchedule: {
    method: "post",
    path: "/sites/{id}/schedules",
    tag: "Commands",
    summary: "Run a command on a cron schedule, in UTC. Schedules pause while the site is stopped",
    access: "key",
    body: ScheduleCreate,
    creates: "schedule",
    answers: [{ status: 201, schema: Schedule }],
    refusals: ["conflict", "payment_required"],
    examples: { body: { name: "clean-up", cron: "30 3 * * *", command: "npm run clean-up" } },
  },
  patchSchedule: {
    method: "patch",
    path: "/schedules/{id}",
    tag: "Commands",
    summary: "Change a schedule, or enable or disable it",
    access: "key",
    body: SchedulePatch,
    answers: [{ status: 200, schema: Schedule }],
    refusals: ["conflict"],
    examples: { body: { enabled: false } },
  },
  deleteSchedule: {
    method: "delete",
    path: "/schedules/{id}",
    tag: "Commands",
    summary: "Delete a schedule. Its past runs stay in the site's commands",
    access: "key",
    answers: [{ status: 200, schema: z.object({ id: z.string(), removed: z.literal(true) }) }],
  },
  getWebhook: {
    method: "get",
    path: "/sites/{id}/webhook",
    tag: "Deploy webhook",
    summary: "The URL of the site's deploy webhook. Anyone who knows it can deploy",
    access: "key",
    answers: [{ status: 200, schema: WebhookAddress }],
    refusals: ["conflict"],
  },
  rotateWebhook: {
    method: "post",
    path: "/sites/{id}/webhook/rotate",
    tag: "Deploy webhook",
    summary: "Replace the deploy webhook's URL. The old URL stops working immediately",
    access: "key",
    answers: [{ status: 200, schema: WebhookAddress }],
  },
  triggerWebhook: {
    method: "post",
    path: "/webhooks/deploy/{id}",
    at: "webhook",
    tag: "Deploy webhook",
    summary:
      "Deploy the latest source. The URL is the credential. Git host events other than a push to the site's branch (other branches, branch deletions, pull requests, comments) are skipped",
    access: "none",
    anyBody: true,
    answers: [
      { status: 202, schema: z.object({ status: z.literal("DEPLOYING"), deploymentId: z.string() }) },
      {
        status: 200,
        schema: z.object({ status: Site.shape.status, skipped: z.literal(true) }),
        when: "A skipped event: a ping, a push to another branch, a branch deletion, or an event without a source change",
      },
    ],
    refusals: ["payment_required", "conflict"],
  },
  listDatabases: {
    method: "get",
    path: "/databases",
    tag: "Databases",
    summary: "The caller's databases, newest first",
    access: "key",
    query: listQuery("database"),
    answers: [{ status: 200, schema: listOf(Database) }],
  },
  createDatabase: {
    method: "post",
    path: "/databases",
    tag: "Databases",
    summary: "Create a database and its first invoice. The database is provisioned once the invoice is paid",
    access: "key",
    body: DatabaseCreate,
    creates: "database",
    location: "/databases/{databaseId}",
    answers: [{ status: 201, schema: DatabaseCreated }],
    refusals: ["conflict"],
    examples: {
      body: { name: "my-database", type: "postgresql", billingTerm: 1 },
      answer: {
        invoiceToken: "inv_0Zx4",
        invoiceId: "invoice_001m80000000000000000000000",
        databaseId: exampleDatabaseId,
      },
    },
  },
  getDatabase: {
    method: "get",
    path: "/databases/{id}",
    tag: "Databases",
    summary: "One database",
    access: "key",
    answers: [{ status: 200, schema: Database }],
  },
  patchDatabase: {
    method: "patch",
    path: "/databases/{id}",
    tag: "Databases",
    summary:
      "Start, stop or restart a database, or change its pack, its backup settings or its public access. `publicAccess` takes a list of addresses and networks that may connect with TLS to `publicAccess.host` and `publicAccess.port`",
    access: "key",
    body: DatabasePatch,
    answers: [
      { status: 200, schema: z.union([Database, PackChanged]), when: "A change of the pack" },
      { status: 202, schema: DatabaseActionAccepted, when: "An action", with: "action" },
    ],
    refusals: ["payment_required", "conflict"],
    examples: { body: { action: "restart" }, answer: { id: exampleDatabaseId, status: "RUNNING" } },
  },
  deleteDatabase: {
    method: "delete",
    path: "/databases/{id}",
    tag: "Databases",
    summary: "Take a final backup, then permanently delete the database. Its backups are kept for 30 days",
    access: "key",
    answers: [{ status: 202, schema: DatabaseActionAccepted }],
    examples: { answer: { id: exampleDatabaseId, status: "DELETING" } },
  },
  getDatabaseCredentials: {
    method: "get",
    path: "/databases/{id}/credentials",
    tag: "Databases",
    summary:
      "User, password and connection string. With public access enabled, also the public connection string and the CA certificate (PEM) that verifies the server",
    access: "key",
    answers: [{ status: 200, schema: DatabaseCredentials }],
    refusals: ["payment_required"],
  },
  linkDatabase: {
    method: "post",
    path: "/databases/{id}/links",
    tag: "Databases",
    summary:
      "Add the connection string to a site as a secret variable that is updated when the password is rotated",
    access: "key",
    body: DatabaseLinkCreate,
    answers: [{ status: 201, schema: DatabaseLink }],
    refusals: ["conflict"],
    examples: {
      body: { siteId: exampleSiteId },
      answer: {
        databaseId: exampleDatabaseId,
        siteId: exampleSiteId,
        variable: "DATABASE_URL",
        restartRequired: true,
      },
    },
  },
  unlinkDatabase: {
    method: "delete",
    path: "/databases/{id}/links",
    tag: "Databases",
    summary: "Remove the variable from one site or from all sites, effective from their next container",
    access: "key",
    query: DatabaseUnlinkQuery,
    answers: [{ status: 200, schema: DatabaseUnlinked }],
    examples: { answer: { id: exampleDatabaseId, unlinked: [exampleSiteId] } },
  },
  rotateDatabase: {
    method: "post",
    path: "/databases/{id}/rotate",
    tag: "Databases",
    summary:
      "Create a new user and password. The old ones stay valid until all linked sites run with the new ones",
    access: "key",
    answers: [{ status: 202, schema: DatabaseActionAccepted }],
    refusals: ["payment_required", "conflict"],
    examples: { answer: { id: exampleDatabaseId, status: "RUNNING" } },
  },
  getDatabaseInsight: {
    method: "get",
    path: "/databases/{id}/insight",
    tag: "Databases",
    summary: "Size, connections, cache hit ratio, active and slow queries, as reported by the server",
    access: "key",
    answers: [{ status: 200, schema: DatabaseInsight }],
    refusals: ["payment_required", "conflict"],
  },
  getDatabaseSchema: {
    method: "get",
    path: "/databases/{id}/schema",
    tag: "Databases",
    summary: "Tables with columns, keys, indexes and sizes. For Redis: the number of keys by type",
    access: "key",
    answers: [{ status: 200, schema: DatabaseSchema }],
    refusals: ["payment_required", "conflict"],
  },
  queryDatabase: {
    method: "post",
    path: "/databases/{id}/query",
    tag: "Databases",
    summary:
      "Run one statement as the database's owner, read-only by default. With `write`, the first request answers 409 with a `confirm` token; repeat the request with it to execute the statement",
    access: "key",
    body: DatabaseQuery,
    readsUnless: "write",
    answers: [{ status: 200, schema: DatabaseQueryResult }],
    refusals: ["payment_required", "conflict"],
    examples: {
      body: { statement: "SELECT id, email FROM users ORDER BY id", limit: 10 },
      answer: {
        columns: [
          { name: "id", type: "bigint" },
          { name: "email", type: "text" },
        ],
        rows: [[1, "ada@example.com"]],
        truncated: false,
        affectedRows: null,
        durationMs: 4,
      },
    },
  },
  getDatabaseLogs: {
    method: "get",
    path: "/databases/{id}/logs",
    tag: "Databases",
    summary: "The database server's log",
    access: "key",
    query: SiteLogQuery,
    answers: [{ status: 200, schema: SiteLogs }],
    streams: true,
    refusals: ["conflict"],
  },
  getDatabaseMetrics: {
    method: "get",
    path: "/databases/{id}/metrics",
    tag: "Databases",
    summary: "CPU, memory, network and disk usage of the running database, per minute",
    access: "key",
    answers: [{ status: 200, schema: SiteMetrics }],
    refusals: ["conflict"],
  },
  getDatabaseEvents: {
    method: "get",
    path: "/databases/{id}/events",
    tag: "Databases",
    summary: "Starts, stops, exits and out-of-memory kills of the running database",
    access: "key",
    answers: [{ status: 200, schema: SiteEvents }],
    refusals: ["conflict"],
  },
  listBackups: {
    method: "get",
    path: "/databases/{id}/backups",
    tag: "Databases",
    summary: "A database's backups, newest first",
    access: "key",
    query: listQuery("backup"),
    answers: [{ status: 200, schema: listOf(Backup) }],
  },
  createBackup: {
    method: "post",
    path: "/databases/{id}/backups",
    tag: "Databases",
    summary: "Create a backup now",
    access: "key",
    creates: "backup",
    answers: [{ status: 202, schema: Backup }],
    refusals: ["payment_required", "conflict"],
  },
  restoreDatabase: {
    method: "post",
    path: "/databases/{id}/restore",
    tag: "Databases",
    summary: "Restore a backup. The current data is kept until the restored data is verified",
    access: "key",
    body: DatabaseRestore,
    answers: [{ status: 202, schema: DatabaseActionAccepted }],
    refusals: ["payment_required", "conflict"],
    examples: { body: { backupId: "bak_001m80000000000000000000000" } },
  },
  listAllBackups: {
    method: "get",
    path: "/backups",
    tag: "Databases",
    summary: "All backups of the account, newest first, including those of deleted databases",
    access: "key",
    query: BackupListQuery,
    answers: [{ status: 200, schema: listOf(Backup) }],
  },
  listFailingBackups: {
    method: "get",
    path: "/backups/failing",
    tag: "Databases",
    summary: "Databases whose scheduled backups fail, with the reason",
    access: "operator",
    query: listQuery("database"),
    answers: [{ status: 200, schema: listOf(FailingBackups) }],
  },
  getBackup: {
    method: "get",
    path: "/backups/{id}",
    tag: "Databases",
    summary: "One backup",
    access: "key",
    answers: [{ status: 200, schema: Backup }],
  },
  deleteBackup: {
    method: "delete",
    path: "/backups/{id}",
    tag: "Databases",
    summary: "Delete a backup, or cancel one in progress. Refused while the backup is being restored",
    access: "key",
    answers: [{ status: 202, schema: BackupDeleted }],
    refusals: ["conflict"],
  },
  verifyBackup: {
    method: "post",
    path: "/backups/{id}/verify",
    tag: "Databases",
    summary:
      "Verify a backup again by restoring it into a temporary server, even if it was found damaged before",
    access: "key",
    answers: [{ status: 202, schema: Backup }],
    refusals: ["conflict"],
  },
  linkBackup: {
    method: "post",
    path: "/backups/{id}/link",
    tag: "Databases",
    summary: "A download URL for the backup, valid for ten minutes",
    access: "key",
    answers: [{ status: 200, schema: BackupLink }],
    refusals: ["conflict"],
  },
  getCredits: {
    method: "get",
    path: "/credits",
    tag: "Credits",
    summary: "The balance and the last 20 transactions",
    access: "key",
    answers: [{ status: 200, schema: Credits }],
    examples: {
      answer: {
        balance: 500,
        transactions: [
          { id: "tx_001m80000000000000000000000", type: "purchase", amount: 500, createdAt: exampleTime },
        ],
      },
    },
  },
  listCreditPackages: {
    method: "get",
    path: "/credits/packages",
    tag: "Credits",
    summary: "Credit packages that can be bought",
    access: "none",
    query: listQuery("creditPackage"),
    answers: [{ status: 200, schema: listOf(CreditPackage) }],
  },
  purchaseCredits: {
    method: "post",
    path: "/credits/purchase",
    tag: "Credits",
    summary: "Create an invoice for a credit package",
    access: "key",
    body: CreditPurchase,
    creates: "invoice",
    answers: [{ status: 201, schema: CreditPurchased }],
    refusals: ["conflict"],
    examples: { body: { packageId: "cpk_001k0000000000000000000001" } },
  },
  grantCredits: {
    method: "post",
    path: "/credits/grants",
    tag: "Credits",
    summary: "Give credits to an account",
    access: "operator",
    body: CreditGrant,
    answers: [{ status: 201, schema: Transaction }],
    examples: { body: { email: "ada@example.com", amount: 100 } },
  },
  listAllCreditPackages: {
    method: "get",
    path: "/credits/packages/all",
    tag: "Credits",
    summary: "All credit packages, including inactive ones",
    access: "operator",
    query: listQuery("creditPackage"),
    answers: [{ status: 200, schema: listOf(CreditPackageForOperator) }],
  },
  createCreditPackage: {
    method: "post",
    path: "/credits/packages",
    tag: "Credits",
    summary: "Create a credit package",
    access: "operator",
    body: CreditPackageCreate,
    creates: "creditPackage",
    answers: [{ status: 201, schema: CreditPackageForOperator }],
    examples: { body: { name: "Huge", credits: 20000, amountCents: 15000 } },
  },
  patchCreditPackage: {
    method: "patch",
    path: "/credits/packages/{id}",
    tag: "Credits",
    summary: "Change a credit package. The change applies to new purchases only",
    access: "operator",
    body: CreditPackagePatch,
    answers: [{ status: 200, schema: CreditPackageForOperator }],
    examples: { body: { active: false } },
  },
  chat: {
    method: "post",
    path: "/chat",
    tag: "Assistant",
    summary: "Send one message to the assistant; each interaction is charged once",
    access: "key",
    body: ChatRequest,
    limit: "chat",
    answers: [{ status: 200, schema: ChatReply }],
    refusals: ["payment_required"],
    notBuilt: true,
    examples: { body: { message: "Why did my last deployment fail?" } },
  },
  chatStream: {
    method: "post",
    path: "/chat/stream",
    tag: "Assistant",
    summary: "The same, streamed as server-sent events: delta, tool, action, done, error",
    access: "key",
    body: ChatRequest,
    limit: "chat",
    answers: [{ status: 200, schema: ChatReply, when: "The last event" }],
    streams: true,
    refusals: ["payment_required"],
    notBuilt: true,
    examples: { body: { message: "Restart my shop." } },
  },
  startDevice: {
    method: "post",
    path: "/auth/device",
    tag: "Device login",
    summary: "Start a device login: a device code for the client and a user code for the person",
    access: "none",
    body: DeviceStart,
    optionalBody: true,
    answers: [{ status: 200, schema: DeviceStarted }],
    examples: {
      body: { clientName: "CLI on laptop" },
      answer: {
        device_code: "dev_BCDF2345Zx4dK1m8QpT0vWb7YhN3sJ6rLc9aEf2gUiX5oMtR8zC",
        user_code: "BCDF-2345",
        verification_url: "https://berth.example/device?code=BCDF-2345",
        expires_in: 600,
        interval: 2,
      },
    },
  },
  pollDevice: {
    method: "get",
    path: "/auth/device-poll",
    tag: "Device login",
    summary: "The status: pending, or approved with the API key, which is returned once",
    access: "none",
    query: DevicePollQuery,
    answers: [{ status: 200, schema: DevicePolled }],
    refusals: ["not_found"],
    examples: { answer: { status: "pending" } },
  },
  listKeys: {
    method: "get",
    path: "/keys",
    tag: "API keys",
    summary: "The account's keys, newest first",
    access: "session",
    query: listQuery("key"),
    answers: [{ status: 200, schema: listOf(Key) }],
  },
  createKey: {
    method: "post",
    path: "/keys",
    tag: "API keys",
    summary: "Create a key. It is shown once; an account can have at most 50",
    access: "session",
    body: KeyCreate,
    creates: "key",
    shownOnce: ["key"],
    limit: "keyMade",
    answers: [{ status: 201, schema: KeyCreated }],
    refusals: ["conflict"],
    examples: { body: { name: "Laptop" } },
  },
  revokeKey: {
    method: "delete",
    path: "/keys/{id}",
    tag: "API keys",
    summary: "Revoke a key. It is rejected on every request that follows the answer",
    access: "session",
    answers: [{ status: 200, schema: KeyRevoked }],
  },
  listAccounts: {
    method: "get",
    path: "/accounts",
    tag: "Accounts",
    summary: "All accounts, newest first",
    access: "operator",
    query: AccountListQuery,
    answers: [{ status: 200, schema: listOf(Account) }],
  },
  patchAccount: {
    method: "patch",
    path: "/accounts/{id}",
    tag: "Accounts",
    summary:
      "Change an account's role or plan. The change applies to its sessions and keys from their next request",
    access: "operator",
    body: AccountPatch,
    answers: [{ status: 200, schema: Account }],
    refusals: ["conflict"],
    examples: { body: { plan: "pro" } },
  },
  listActivity: {
    method: "get",
    path: "/activity",
    tag: "Account",
    summary: "The account's audit log of the past year, newest first",
    access: "key",
    query: ActivityQuery,
    answers: [{ status: 200, schema: listOf(Activity) }],
  },
  listAllActivity: {
    method: "get",
    path: "/activity/all",
    tag: "Operators",
    summary: "The audit log of all accounts",
    access: "operator",
    query: AllActivityQuery,
    answers: [{ status: 200, schema: listOf(Activity) }],
  },
  listPacks: {
    method: "get",
    path: "/packs",
    tag: "Billing",
    summary: "All packs on offer and their prices, cheapest first",
    access: "none",
    query: listQuery("pack"),
    answers: [{ status: 200, schema: listOf(Pack) }],
  },
  listInvoices: {
    method: "get",
    path: "/invoices",
    tag: "Billing",
    summary: "The account's invoices, newest first",
    access: "key",
    query: listQuery("invoice"),
    answers: [{ status: 200, schema: listOf(Invoice) }],
  },
  getInvoice: {
    method: "get",
    path: "/invoices/{id}",
    tag: "Billing",
    summary: "One invoice",
    access: "key",
    answers: [{ status: 200, schema: Invoice }],
  },
  listAllPacks: {
    method: "get",
    path: "/packs/all",
    tag: "Billing",
    summary: "All packs, including inactive ones",
    access: "operator",
    query: listQuery("pack"),
    answers: [{ status: 200, schema: listOf(PackForOperator) }],
  },
  createPack: {
    method: "post",
    path: "/packs",
    tag: "Billing",
    summary: "Create a pack",
    access: "operator",
    body: PackCreate,
    creates: "pack",
    answers: [{ status: 201, schema: PackForOperator }],
    examples: {
      body: {
        kind: "site",
        name: "Large",
        amountCents: 4900,
        discounts: { "12": 15 },
        memoryMb: 4096,
        cpuMilli: 4000,
        diskGb: 40,
      },
    },
  },
  patchPack: {
    method: "patch",
    path: "/packs/{id}",
    tag: "Billing",
    summary: "Change a pack. New prices apply to future purchases, new resources to future deployments",
    access: "operator",
    body: PackPatch,
    answers: [{ status: 200, schema: PackForOperator }],
    examples: { body: { active: false } },
  },
  voidInvoice: {
    method: "post",
    path: "/invoices/{id}/void",
    tag: "Billing",
    summary:
      "Void an invoice so that it can no longer be paid. A site or database that was never paid for is deleted with it",
    access: "operator",
    answers: [{ status: 200, schema: Invoice }],
    refusals: ["conflict"],
  },
  refundInvoice: {
    method: "post",
    path: "/invoices/{id}/refund",
    tag: "Billing",
    summary: "Refund a paid invoice in full. Purchased credits are taken back",
    access: "operator",
    body: InvoiceRefund,
    answers: [{ status: 200, schema: InvoiceRefunded }],
    refusals: ["conflict"],
    examples: { body: { force: false } },
  },
  listPaymentFlags: {
    method: "get",
    path: "/payments/flagged",
    tag: "Billing",
    summary: "Payment events that match no invoice or need attention, newest first",
    access: "operator",
    query: FlagQuery,
    answers: [{ status: 200, schema: listOf(PaymentFlag) }],
  },
  resolvePaymentFlag: {
    method: "post",
    path: "/payments/flagged/{id}/resolve",
    tag: "Billing",
    summary: "Mark a flag as resolved, with a note on how",
    access: "operator",
    body: FlagResolve,
    answers: [{ status: 200, schema: PaymentFlag }],
    examples: { body: { resolution: "Refunded by hand." } },
  },
  verifyLedger: {
    method: "get",
    path: "/ledger/verify",
    tag: "Billing",
    summary: "Recompute the whole ledger and compare it with balances, invoices and payments",
    access: "operator",
    answers: [{ status: 200, schema: LedgerVerified }],
  },
  receiveStripeEvent: {
    method: "post",
    path: "/webhooks/stripe",
    at: "site",
    tag: "Billing",
    summary:
      "Receive Stripe events, authenticated by their signature. Each event is applied once, in any order",
    access: "none",
    anyBody: true,
    answers: [{ status: 200, schema: z.object({ received: z.literal(true) }) }],
    refusals: ["invalid_request"],
  },
  listHosts: {
    method: "get",
    path: "/hosts",
    tag: "Hosts",
    summary: "All hosts",
    access: "operator",
    query: listQuery("host"),
    answers: [{ status: 200, schema: listOf(Host) }],
  },
  createHost: {
    method: "post",
    path: "/hosts",
    tag: "Hosts",
    summary: "Create a host and the token that enrols its agent",
    access: "operator",
    body: HostCreate,
    creates: "host",
    shownOnce: ["token", "installCommand"],
    answers: [{ status: 201, schema: HostCreated }],
    refusals: ["conflict"],
    examples: { body: { name: "fra-1", region: "eu" } },
  },
  patchHost: {
    method: "patch",
    path: "/hosts/{id}",
    tag: "Hosts",
    summary:
      "Drain a host, so that it takes no new sites and its sites move to other hosts one by one, or activate it again",
    access: "operator",
    body: HostPatch,
    answers: [{ status: 200, schema: Host }],
    examples: { body: { action: "drain" } },
  },
  deleteHost: {
    method: "delete",
    path: "/hosts/{id}",
    tag: "Hosts",
    summary: "Remove a drained, empty host, or a dead host with `force`",
    access: "operator",
    query: HostRemoveQuery,
    answers: [{ status: 200, schema: HostRemoved }],
    refusals: ["conflict"],
  },
  listSetAside: {
    method: "get",
    path: "/hosts/{id}/set-aside",
    tag: "Hosts",
    summary:
      "Sites and databases on the host that no record assigns to it. They are stopped and kept until they are removed or a record assigns them to the host again",
    access: "operator",
    answers: [{ status: 200, schema: SetAsideList }],
    refusals: ["conflict"],
  },
  removeSetAside: {
    method: "delete",
    path: "/hosts/{id}/set-aside/{keptId}",
    tag: "Hosts",
    summary: "Permanently remove one of these with its data",
    access: "operator",
    answers: [{ status: 200, schema: SetAsideRemoved }],
    refusals: ["conflict"],
  },
  rotateSecrets: {
    method: "post",
    path: "/secrets/rotate",
    tag: "Service",
    summary:
      "Re-encrypt one page of secrets that are encrypted with an older key. Repeat with `nextCursor` until it is null",
    access: "operator",
    body: SecretsRotate,
    answers: [{ status: 200, schema: SecretsRotated }],
    examples: { body: { limit: 100 } },
  },
  getHealth: {
    method: "get",
    path: "/health",
    at: "site",
    tag: "Service",
    summary: "Service health and version",
    access: "none",
    answers: [{ status: 200, schema: z.object({ status: z.literal("ok"), version: z.string() }) }],
  },
  getOpenApi: {
    method: "get",
    path: "/openapi.json",
    tag: "Service",
    summary: "This document",
    access: "none",
    answers: [{ status: 200, schema: z.looseObject({ openapi: z.string() }) }],
  },
} as const satisfies Record<string, Operation>;

export type OperationId = keyof typeof operations;

type Params<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { [Key in Name]: string } & Params<Rest>
  : unknown;
type Given<Schema> = Schema extends z.ZodType ? z.output<Schema> : unknown;
type Part<Of, Name extends string> = Of extends { [Key in Name]: infer Value } ? Given<Value> : unknown;

/** The input of an operation's verb: path parameters, query and body in one object. Their names never overlap. */
export type Input<Id extends OperationId> = Params<(typeof operations)[Id]["path"]> &
  Part<(typeof operations)[Id], "query"> &
  Part<(typeof operations)[Id], "body"> &
  ((typeof operations)[Id] extends { streams: true } ? Resumed : unknown);

/** The answer of an operation's verb. */
export type Answered<Id extends OperationId> =
  | z.input<(typeof operations)[Id]["answers"][number]["schema"]>
  | ((typeof operations)[Id] extends { streams: true } ? ReadableStream<Uint8Array> : never);
