import * as z from "zod";
import type { ErrorCode } from "../errors.ts";
import { ChatReply, ChatRequest } from "./chat.ts";
import { ListQuery, listOf } from "./common.ts";
import { CreditPackage, CreditPurchase, CreditPurchased, Credits } from "./credits.ts";
import {
  Backup,
  Database,
  DatabaseActionAccepted,
  DatabaseCreate,
  DatabaseCreated,
  DatabaseCredentials,
  DatabasePatch,
  DatabaseRestore,
} from "./databases.ts";
import { Deployment, DeploymentCancelled, LogLine, LogQuery } from "./deployments.ts";
import { DevicePolled, DevicePollQuery, DeviceStart, DeviceStarted } from "./device.ts";
import { Host, HostCreate, HostCreated } from "./hosts.ts";
import { Invoice } from "./invoices.ts";
import { Key, KeyCreate, KeyCreated } from "./keys.ts";
import { Pack } from "./packs.ts";
import { SiteLogQuery, SiteLogs, SiteMetrics } from "./running.ts";
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

/** One endpoint: what the routes validate with, the document says and the clients call. */
export type Operation = {
  method: "get" | "post" | "patch" | "delete";
  /** Below {base_url} unless `at` says otherwise; parameters as `{id}`. */
  path: string;
  at?: "site" | "webhook";
  tag: string;
  summary: string;
  /** key: a key or a session; session: a session only; operator: an operator's key or session. */
  access: "none" | "key" | "session" | "operator";
  query?: z.ZodObject;
  body?: z.ZodType;
  /** The body may be left out. */
  optionalBody?: true;
  /** Any body is taken and none of it is trusted. */
  anyBody?: true;
  answers: { status: 200 | 201 | 202; schema: z.ZodType; when?: string }[];
  /** Also answers server-sent events. */
  streams?: true;
  /** Beyond those that follow from access, parameters and body. */
  refusals?: readonly ErrorCode[];
  /** Answers 501 after all checks, until the capability is there. */
  notBuilt?: true;
  examples?: { body?: unknown; answer?: unknown };
};

const exampleTime = "2026-11-21T12:00:00.000Z";
const exampleSiteId = "site_001m80000000000000000000000";

export const operations = {
  listSites: {
    method: "get",
    path: "/sites",
    tag: "Sites",
    summary: "The caller's sites, newest first",
    access: "key",
    query: ListQuery,
    answers: [{ status: 200, schema: listOf(Site) }],
  },
  createSite: {
    method: "post",
    path: "/sites",
    tag: "Sites",
    summary: "Create a site and an unpaid invoice; it is deployed once the invoice is paid",
    access: "key",
    body: SiteCreate,
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
    summary: "Run an action, or change domains, environment variables or settings: exactly one of them",
    access: "key",
    body: SitePatch,
    answers: [
      { status: 200, schema: z.union([EnvChanged, DomainChanged, Site]), when: "A change" },
      { status: 202, schema: SiteActionAccepted, when: "An action" },
    ],
    refusals: ["payment_required", "conflict"],
    examples: { body: { action: "deploy" }, answer: { id: exampleSiteId, status: "DEPLOYING" } },
  },
  deleteSite: {
    method: "delete",
    path: "/sites/{id}",
    tag: "Sites",
    summary: "Delete the site for good: containers, images, routes, secrets and logs go",
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
    query: ListQuery,
    answers: [{ status: 200, schema: listOf(Deployment) }],
  },
  rollbackSite: {
    method: "post",
    path: "/sites/{id}/rollback",
    tag: "Deployments",
    summary: "Bring back an earlier deployment: its image and its environment",
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
    summary: "End a deployment that waits or runs; the version in service stays",
    access: "key",
    answers: [{ status: 202, schema: DeploymentCancelled }],
    refusals: ["conflict"],
  },
  getDeploymentLogs: {
    method: "get",
    path: "/deployments/{id}/logs",
    tag: "Deployments",
    summary: "The log of a deployment, oldest line first",
    access: "key",
    query: LogQuery,
    answers: [{ status: 200, schema: listOf(LogLine) }],
    streams: true,
  },
  getSiteLogs: {
    method: "get",
    path: "/sites/{id}/logs",
    tag: "Sites",
    summary: "What the running site wrote",
    access: "key",
    query: SiteLogQuery,
    answers: [{ status: 200, schema: SiteLogs }],
    streams: true,
    notBuilt: true,
  },
  getSiteMetrics: {
    method: "get",
    path: "/sites/{id}/metrics",
    tag: "Sites",
    summary: "CPU, memory, network and disk of the running site, by the minute",
    access: "key",
    answers: [{ status: 200, schema: SiteMetrics }],
    notBuilt: true,
  },
  getWebhook: {
    method: "get",
    path: "/sites/{id}/webhook",
    tag: "Deploy webhook",
    summary: "The site's deploy webhook: a secret address",
    access: "key",
    answers: [{ status: 200, schema: WebhookAddress }],
  },
  rotateWebhook: {
    method: "post",
    path: "/sites/{id}/webhook/rotate",
    tag: "Deploy webhook",
    summary: "Another address; the old one stops at once",
    access: "key",
    answers: [{ status: 200, schema: WebhookAddress }],
  },
  triggerWebhook: {
    method: "post",
    path: "/webhooks/deploy/{id}",
    at: "webhook",
    tag: "Deploy webhook",
    summary: "Deploy the current source; the address is the credential and the body is ignored",
    access: "none",
    anyBody: true,
    answers: [
      { status: 202, schema: z.object({ status: z.literal("DEPLOYING"), deploymentId: z.string() }) },
      {
        status: 200,
        schema: z.object({ status: Site.shape.status, skipped: z.literal(true) }),
        when: "A ping, or a push to another branch",
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
    query: ListQuery,
    answers: [{ status: 200, schema: listOf(Database) }],
    notBuilt: true,
  },
  createDatabase: {
    method: "post",
    path: "/databases",
    tag: "Databases",
    summary: "Create a database and an unpaid invoice; it is provisioned once the invoice is paid",
    access: "key",
    body: DatabaseCreate,
    answers: [{ status: 201, schema: DatabaseCreated }],
    refusals: ["conflict"],
    notBuilt: true,
    examples: { body: { name: "my-database", type: "postgresql", billingTerm: 1 } },
  },
  getDatabase: {
    method: "get",
    path: "/databases/{id}",
    tag: "Databases",
    summary: "One database",
    access: "key",
    answers: [{ status: 200, schema: Database }],
    notBuilt: true,
  },
  patchDatabase: {
    method: "patch",
    path: "/databases/{id}",
    tag: "Databases",
    summary: "Start, stop or restart",
    access: "key",
    body: DatabasePatch,
    answers: [{ status: 202, schema: DatabaseActionAccepted }],
    refusals: ["payment_required", "conflict"],
    notBuilt: true,
    examples: { body: { action: "restart" } },
  },
  deleteDatabase: {
    method: "delete",
    path: "/databases/{id}",
    tag: "Databases",
    summary: "Delete the database for good, after a last backup",
    access: "key",
    answers: [{ status: 202, schema: DatabaseActionAccepted }],
    notBuilt: true,
  },
  getDatabaseCredentials: {
    method: "get",
    path: "/databases/{id}/credentials",
    tag: "Databases",
    summary: "User, password and connection string",
    access: "key",
    answers: [{ status: 200, schema: DatabaseCredentials }],
    notBuilt: true,
  },
  listBackups: {
    method: "get",
    path: "/databases/{id}/backups",
    tag: "Databases",
    summary: "A database's backups, newest first",
    access: "key",
    query: ListQuery,
    answers: [{ status: 200, schema: listOf(Backup) }],
    notBuilt: true,
  },
  createBackup: {
    method: "post",
    path: "/databases/{id}/backups",
    tag: "Databases",
    summary: "Back up now",
    access: "key",
    answers: [{ status: 202, schema: Backup }],
    refusals: ["conflict"],
    notBuilt: true,
  },
  restoreDatabase: {
    method: "post",
    path: "/databases/{id}/restore",
    tag: "Databases",
    summary: "Bring back a backup; the present data stays until the restored one is verified",
    access: "key",
    body: DatabaseRestore,
    answers: [{ status: 202, schema: DatabaseActionAccepted }],
    refusals: ["conflict"],
    notBuilt: true,
    examples: { body: { backupId: "bak_001m80000000000000000000000" } },
  },
  getCredits: {
    method: "get",
    path: "/credits",
    tag: "Credits",
    summary: "The balance and the last 20 transactions",
    access: "key",
    answers: [{ status: 200, schema: Credits }],
    notBuilt: true,
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
    answers: [{ status: 200, schema: listOf(CreditPackage) }],
    notBuilt: true,
  },
  purchaseCredits: {
    method: "post",
    path: "/credits/purchase",
    tag: "Credits",
    summary: "Create an invoice for a credit package",
    access: "key",
    body: CreditPurchase,
    answers: [{ status: 201, schema: CreditPurchased }],
    notBuilt: true,
    examples: { body: { packageId: "cpk_001m80000000000000000000000" } },
  },
  chat: {
    method: "post",
    path: "/chat",
    tag: "Assistant",
    summary: "One interaction with the assistant, charged once",
    access: "key",
    body: ChatRequest,
    answers: [{ status: 200, schema: ChatReply }],
    refusals: ["payment_required"],
    notBuilt: true,
    examples: { body: { message: "Why did my last deployment fail?" } },
  },
  chatStream: {
    method: "post",
    path: "/chat/stream",
    tag: "Assistant",
    summary: "The same as server-sent events: delta, tool, action, done, error",
    access: "key",
    body: ChatRequest,
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
    summary: "Begin: a code for the client and one for the person",
    access: "none",
    body: DeviceStart,
    optionalBody: true,
    answers: [{ status: 200, schema: DeviceStarted }],
    examples: {
      body: { clientName: "CLI on laptop" },
      answer: {
        device_code: "BCDF2345.Zx4",
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
    summary: "pending, or approved with the API key, once",
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
    query: ListQuery,
    answers: [{ status: 200, schema: listOf(Key) }],
  },
  createKey: {
    method: "post",
    path: "/keys",
    tag: "API keys",
    summary: "A new key, shown this once",
    access: "session",
    body: KeyCreate,
    answers: [{ status: 201, schema: KeyCreated }],
    examples: { body: { name: "Laptop" } },
  },
  revokeKey: {
    method: "delete",
    path: "/keys/{id}",
    tag: "API keys",
    summary: "Works on no request that comes after the answer",
    access: "session",
    answers: [{ status: 200, schema: z.object({ id: z.string(), revoked: z.literal(true) }) }],
  },
  listPacks: {
    method: "get",
    path: "/packs",
    tag: "Billing",
    summary: "What can be hosted and its price, cheapest first",
    access: "none",
    answers: [{ status: 200, schema: listOf(Pack) }],
  },
  listInvoices: {
    method: "get",
    path: "/invoices",
    tag: "Billing",
    summary: "The account's invoices, newest first",
    access: "key",
    query: ListQuery,
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
  listHosts: {
    method: "get",
    path: "/hosts",
    tag: "Hosts",
    summary: "All compute hosts",
    access: "operator",
    query: ListQuery,
    answers: [{ status: 200, schema: listOf(Host) }],
  },
  createHost: {
    method: "post",
    path: "/hosts",
    tag: "Hosts",
    summary: "A new host and the token that enrols its agent",
    access: "operator",
    body: HostCreate,
    answers: [{ status: 201, schema: HostCreated }],
    refusals: ["conflict"],
    examples: { body: { name: "fra-1", region: "eu" } },
  },
  getHealth: {
    method: "get",
    path: "/health",
    at: "site",
    tag: "Service",
    summary: "Whether the service answers, and its version",
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
