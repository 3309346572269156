import { sql } from "drizzle-orm";
import { index, integer, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { EnvEntry } from "../../protocol/agent/jobs.ts";
import type { Id } from "../../protocol/ids.ts";
import {
  accountPlans,
  accountRoles,
  backupStatuses,
  backupTriggers,
  databaseStatuses,
  databaseTypes,
  deploymentStatuses,
  deploymentTriggers,
  hostStatuses,
  invoiceKinds,
  invoiceStatuses,
  jobStatuses,
  siteStatuses,
} from "../../protocol/states.ts";
import { jobKinds } from "../../protocol/agent/jobs.ts";

const time = (name: string) => integer(name, { mode: "timestamp_ms" });

/** People. The columns up to updatedAt, and the three tables below, are better-auth's core schema under our names. */
export const accounts = sqliteTable("accounts", {
  id: text().$type<Id<"account">>().primaryKey(),
  name: text().notNull(),
  email: text().notNull().unique(),
  emailVerified: integer("email_verified", { mode: "boolean" }).notNull().default(false),
  image: text(),
  createdAt: time("created_at").notNull(),
  updatedAt: time("updated_at").notNull(),
  role: text({ enum: accountRoles }).notNull().default("user"),
  plan: text({ enum: accountPlans }).notNull().default("free"),
});

/** Signed-in browsers. The cookie holds the token, this table only its SHA-256. */
export const sessions = sqliteTable(
  "sessions",
  {
    id: text().primaryKey(),
    token: text("token_hash").notNull().unique(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    ipAddress: text("ip_address"),
    userAgent: text("user_agent"),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
    expiresAt: time("expires_at").notNull(),
  },
  (t) => [index("sessions_account").on(t.accountId)], // sign out everywhere
);

/** How an account may sign in: `credential` with a password (`scrypt$N$r$p$salt$hash`), or a provider such as `github`. */
export const identities = sqliteTable(
  "identities",
  {
    id: text().primaryKey(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    providerId: text("provider_id").notNull(),
    /** The provider's name for the person; the account's own id for `credential`. */
    providerAccountId: text("provider_account_id").notNull(),
    /** Tokens are encrypted by better-auth. */
    accessToken: text("access_token"),
    refreshToken: text("refresh_token"),
    idToken: text("id_token"),
    accessTokenExpiresAt: time("access_token_expires_at"),
    refreshTokenExpiresAt: time("refresh_token_expires_at"),
    scope: text(),
    password: text(),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
  },
  (t) => [
    index("identities_account").on(t.accountId),
    uniqueIndex("identities_provider").on(t.providerId, t.providerAccountId),
  ],
);

/** Pending proofs: password resets, e-mail verifications, OAuth states. Identifiers are stored hashed. */
export const verifications = sqliteTable(
  "verifications",
  {
    id: text().primaryKey(),
    identifier: text().notNull(),
    value: text().notNull(),
    expiresAt: time("expires_at").notNull(),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
  },
  (t) => [index("verifications_identifier").on(t.identifier)],
);

export const apiKeys = sqliteTable(
  "api_keys",
  {
    id: text().$type<Id<"key">>().primaryKey(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    name: text().notNull(),
    /** SHA-256 of the key, hex. The key itself is shown once and kept nowhere. */
    hash: text().notNull().unique(),
    /** The first characters, for display. */
    start: text().notNull(),
    origin: text({ enum: ["dashboard", "device", "setup"] }).notNull(),
    createdAt: time("created_at").notNull(),
    lastUsedAt: time("last_used_at"),
    revokedAt: time("revoked_at"),
  },
  (t) => [index("api_keys_account").on(t.accountId, t.createdAt)], // GET /keys
);

/** What can be hosted, at which price. `priceCents` is per month. */
export const packs = sqliteTable("packs", {
  id: text().$type<Id<"pack">>().primaryKey(),
  kind: text({ enum: ["site", "database"] }).notNull(),
  name: text().notNull(),
  priceCents: integer("price_cents").notNull(),
  currency: text().notNull().default("usd"),
  memoryMb: integer("memory_mb").notNull(),
  cpuMilli: integer("cpu_milli").notNull(),
  pids: integer().notNull(),
  diskGb: integer("disk_gb").notNull(),
  active: integer({ mode: "boolean" }).notNull().default(true),
});

export const hosts = sqliteTable(
  "hosts",
  {
    id: text().$type<Id<"host">>().primaryKey(),
    name: text().notNull(),
    status: text({ enum: hostStatuses }).notNull().default("ACTIVE"),
    region: text(),
    /** SHA-256 of the enrolment token, hex. */
    tokenHash: text("token_hash").notNull().unique(),
    /** As the agent last reported; null before its first connection. */
    cpuCount: real("cpu_count"),
    memoryMb: integer("memory_mb"),
    agentVersion: text("agent_version"),
    createdAt: time("created_at").notNull(),
    /** The last connection, not the last heartbeat: heartbeats never touch D1. */
    connectedAt: time("connected_at"),
    /** Since when its agent has not been heard; null while it is, or was never. */
    offlineSince: time("offline_since"),
    diskFreeMb: integer("disk_free_mb"),
  },
  (t) => [
    // A removed host's name is free again.
    uniqueIndex("hosts_name")
      .on(t.name)
      .where(sql`status <> 'REMOVED'`),
  ],
);

export const sites = sqliteTable(
  "sites",
  {
    id: text().$type<Id<"site">>().primaryKey(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    name: text().notNull(),
    status: text({ enum: siteStatuses }).notNull(),
    /** The state the last accepted command asked for; `status` follows when it is true. */
    wanted: text({ enum: ["RUNNING", "STOPPED"] })
      .notNull()
      .default("RUNNING"),
    /** A version answers requests right now. */
    serving: integer({ mode: "boolean" }).notNull().default(false),
    deployType: text("deploy_type", { enum: ["github", "dockerfile", "image"] }).notNull(),
    githubUrl: text("github_url"),
    branch: text(),
    /** Sealed by the secret box. */
    gitTokenSealed: text("git_token_sealed"),
    dockerfile: text(),
    image: text(),
    registryUsername: text("registry_username"),
    /** Sealed by the secret box. */
    registryPasswordSealed: text("registry_password_sealed"),
    port: integer().notNull(),
    buildCommand: text("build_command"),
    startCommand: text("start_command"),
    rootDir: text("root_dir"),
    dockerfilePath: text("dockerfile_path"),
    healthCheckPath: text("health_check_path"),
    region: text(),
    packId: text("pack_id").$type<Id<"pack">>().notNull(),
    billingTerm: integer("billing_term").notNull(),
    /** First label of the site's own address. */
    slug: text().notNull().unique(),
    hostId: text("host_id").$type<Id<"host">>(),
    /** While the site moves: the host that is to carry it. `hostId` carries it until the new one is healthy. */
    moveHostId: text("move_host_id").$type<Id<"host">>(),
    /** The host that carried it before, and from when on what is left there may go. */
    leavingHostId: text("leaving_host_id").$type<Id<"host">>(),
    leaveAt: time("leave_at"),
    /** SHA-256 of the deploy webhook's secret path segment; the segment is derived, see domain/webhook-address.ts. */
    webhookHash: text("webhook_hash").notNull().unique(),
    webhookGeneration: integer("webhook_generation").notNull().default(1),
    /** The deployment in service; null until the first one is live. */
    currentDeploymentId: text("current_deployment_id").$type<Id<"deployment">>(),
    paidUntil: time("paid_until"),
    /** Written by each accepted command, read by the other statements of its batch. */
    mark: text(),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
  },
  (t) => [
    index("sites_account").on(t.accountId, t.id), // GET /sites
    uniqueIndex("sites_account_name").on(t.accountId, t.name), // a name is unique per account
    index("sites_host").on(t.hostId), // placement: what a host already carries
    index("sites_move_host")
      .on(t.moveHostId)
      .where(sql`move_host_id IS NOT NULL`),
    index("sites_leaving_host")
      .on(t.leavingHostId)
      .where(sql`leaving_host_id IS NOT NULL`),
  ],
);

export const databases = sqliteTable(
  "databases",
  {
    id: text().$type<Id<"database">>().primaryKey(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    /** Also the first label of its address in the account's network. */
    name: text().notNull(),
    type: text({ enum: databaseTypes }).notNull(),
    status: text({ enum: databaseStatuses }).notNull(),
    /** The state the last accepted command asked for; `status` follows when it is true. */
    wanted: text({ enum: ["RUNNING", "STOPPED"] })
      .notNull()
      .default("RUNNING"),
    /** Chosen at creation and kept: another major version could not read the files. */
    image: text().notNull(),
    /** As the server said it when it last started; null: never provisioned, so there is no data. */
    version: text(),
    /** Why it does not run, or was not changed as asked. */
    error: text(),
    packId: text("pack_id").$type<Id<"pack">>().notNull(),
    billingTerm: integer("billing_term").notNull(),
    region: text(),
    hostId: text("host_id").$type<Id<"host">>(),
    databaseName: text("database_name").notNull(),
    /** Sealed by the secret box, as the passwords below. Of the user that Berth keeps to itself. */
    adminPasswordSealed: text("admin_password_sealed").notNull(),
    /** Counts the passwords; each has a user name of its own, so that two are valid while one follows the other. */
    generation: integer().notNull().default(1),
    passwordSealed: text("password_sealed").notNull(),
    /** While a rotation is under way: of the next generation, until the server knows it. */
    nextPasswordSealed: text("next_password_sealed"),
    /** After that: of the generation before, until no linked site runs with it. */
    previousPasswordSealed: text("previous_password_sealed"),
    /** The restore whose volume it runs on; null: its first. */
    volume: text().$type<Id<"job">>(),
    backupSchedule: text("backup_schedule", { enum: ["daily", "weekly"] }).default("daily"),
    backupHourUtc: integer("backup_hour_utc").notNull().default(3),
    backupKeep: integer("backup_keep").notNull().default(7),
    /** null: not planned yet, or no schedule. */
    nextBackupAt: time("next_backup_at"),
    paidUntil: time("paid_until"),
    /** Written by each accepted command, read by the other statements of its batch. */
    mark: text(),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
  },
  (t) => [
    index("databases_account").on(t.accountId, t.id), // GET /databases
    uniqueIndex("databases_account_name").on(t.accountId, t.name),
    index("databases_host").on(t.hostId), // placement
    index("databases_next_backup").on(t.nextBackupAt), // the cron
  ],
);

/** Copies of databases in the store. They outlive their database, so all that a restore needs is here. */
export const backups = sqliteTable(
  "backups",
  {
    id: text().$type<Id<"backup">>().primaryKey(),
    databaseId: text("database_id").$type<Id<"database">>().notNull(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    status: text({ enum: backupStatuses }).notNull(),
    trigger: text({ enum: backupTriggers }).notNull(),
    /** The database as it was: names, engine, pack. */
    name: text().notNull(),
    databaseName: text("database_name").notNull(),
    type: text({ enum: databaseTypes }).notNull(),
    version: text(),
    image: text().notNull(),
    packId: text("pack_id").$type<Id<"pack">>().notNull(),
    hostId: text("host_id").$type<Id<"host">>(),
    /** Of the job's attempt that uploads, or uploaded: part of the object's key, so that no two write to one object. */
    attempt: integer(),
    /** The store's name for the upload under way. */
    uploadId: text("upload_id"),
    sizeBytes: integer("size_bytes"),
    sha256: text(),
    fingerprintSha256: text("fingerprint_sha256"),
    tables: integer(),
    rows: integer(),
    error: text(),
    /** How often a host tried to verify it. */
    verifications: integer().notNull().default(0),
    /** Written by the statement that moves it, read by the others of its batch. */
    mark: text(),
    createdAt: time("created_at").notNull(),
    finishedAt: time("finished_at"),
    verifiedAt: time("verified_at"),
    expiresAt: time("expires_at"),
    /** It is not shown any more; when its objects are gone, the row goes. */
    removedAt: time("removed_at"),
  },
  (t) => [
    index("backups_database").on(t.databaseId, t.id),
    index("backups_account").on(t.accountId, t.id), // GET /backups
    index("backups_status").on(t.status, t.createdAt), // the cron
    uniqueIndex("backups_one_running")
      .on(t.databaseId)
      .where(sql`status = 'RUNNING' AND "trigger" IN ('api', 'schedule')`),
  ],
);

/** Sites that are given a database's address and password as a secret variable. */
export const databaseLinks = sqliteTable(
  "database_links",
  {
    databaseId: text("database_id").$type<Id<"database">>().notNull(),
    siteId: text("site_id").$type<Id<"site">>().notNull(),
    variable: text().notNull(),
    /** Of the password that the host was given last for a container of the site. */
    offeredGeneration: integer("offered_generation"),
    /** Of the password that the site runs with; null before it was released with one. */
    generation: integer(),
    createdAt: time("created_at").notNull(),
  },
  (t) => [
    uniqueIndex("database_links_key").on(t.databaseId, t.siteId),
    uniqueIndex("database_links_variable").on(t.siteId, t.variable),
  ],
);

/** A site's own names. Several sites may claim one; the first that proves it has it. */
export const domains = sqliteTable(
  "domains",
  {
    id: text().$type<Id<"domain">>().primaryKey(),
    siteId: text("site_id").$type<Id<"site">>().notNull(),
    name: text().notNull(),
    /** The value of the TXT record that proves ownership. */
    challenge: text().notNull(),
    verifiedAt: time("verified_at"),
    createdAt: time("created_at").notNull(),
  },
  (t) => [
    uniqueIndex("domains_site").on(t.siteId, t.name),
    uniqueIndex("domains_verified")
      .on(t.name)
      .where(sql`verified_at IS NOT NULL`),
  ],
);

/** Environment of a site, one row per version: rollback brings back the version a deployment ran with. */
export const siteEnvVersions = sqliteTable(
  "site_env_versions",
  {
    siteId: text("site_id").$type<Id<"site">>().notNull(),
    version: integer().notNull(),
    /** Values of secret entries are sealed by the secret box. */
    entries: text({ mode: "json" }).$type<EnvEntry[]>().notNull(),
    createdAt: time("created_at").notNull(),
  },
  (t) => [uniqueIndex("site_env_versions_key").on(t.siteId, t.version)],
);

export type RunSettings = { port: number; startCommand: string | null; healthCheckPath: string | null };

export const deployments = sqliteTable(
  "deployments",
  {
    id: text().$type<Id<"deployment">>().primaryKey(),
    siteId: text("site_id").$type<Id<"site">>().notNull(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    number: integer().notNull(),
    status: text({ enum: deploymentStatuses }).notNull(),
    trigger: text({ enum: deploymentTriggers }).notNull(),
    commit: text("commit_sha"),
    commitMessage: text("commit_message"),
    imageDigest: text("image_digest"),
    /** As the host's engine names it; null where it is the digest. */
    imageId: text("image_id"),
    /** What the agent says went into the build, hashed with a key of the host. */
    buildKey: text("build_key"),
    /** A start or restart with a newer environment moves it. */
    envVersion: integer("env_version").notNull().default(0),
    /** The site's settings that its container runs with, as they were when a host took it. */
    run: text({ mode: "json" }).$type<RunSettings>(),
    /** The deployment whose image, environment and run settings this one brings back. */
    rollbackOf: text("rollback_of").$type<Id<"deployment">>(),
    /** Build even where nothing has changed. */
    rebuild: integer({ mode: "boolean" }).notNull().default(false),
    error: text(),
    cloneMs: integer("clone_ms"),
    buildMs: integer("build_ms"),
    startMs: integer("start_ms"),
    swapMs: integer("swap_ms"),
    createdAt: time("created_at").notNull(),
    startedAt: time("started_at"),
    finishedAt: time("finished_at"),
  },
  (t) => [
    index("deployments_site").on(t.siteId, t.id), // GET /sites/:id/deployments and the latest of a site
    uniqueIndex("deployments_number").on(t.siteId, t.number),
    // At most one waiting and one in progress per site, whatever races.
    uniqueIndex("deployments_one_waiting")
      .on(t.siteId)
      .where(sql`status = 'QUEUED'`),
    uniqueIndex("deployments_one_running")
      .on(t.siteId)
      .where(sql`status IN ('BUILDING', 'STARTING')`),
  ],
);

/** Work for a host. The row points at what is to be done; the arguments are read when a host takes it. */
export const jobs = sqliteTable(
  "jobs",
  {
    /** Order of acceptance. */
    seq: integer().primaryKey({ autoIncrement: true }),
    id: text().$type<Id<"job">>().notNull().unique(),
    kind: text({ enum: jobKinds }).notNull(),
    status: text({ enum: jobStatuses }).notNull(),
    /** null: any host may take it, and the site is placed there. */
    hostId: text("host_id").$type<Id<"host">>(),
    /** What its jobs are done for one at a time and in order: the site's id, for what must not wait for the site another. */
    lane: text().notNull(),
    /** What it is about: one of the two. */
    siteId: text("site_id").$type<Id<"site">>(),
    databaseId: text("database_id").$type<Id<"database">>(),
    /** Of database.backup, .verify and .restore. */
    backupId: text("backup_id").$type<Id<"backup">>(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    deploymentId: text("deployment_id").$type<Id<"deployment">>(),
    /** Version of the environment that the current attempt was given. */
    envVersion: integer("env_version"),
    /** Raised by every offer; (id, attempt) is the lease. */
    attempt: integer().notNull().default(0),
    cancelRequested: integer("cancel_requested", { mode: "boolean" }).notNull().default(false),
    /** While QUEUED the latest moment a host may take it, while LEASED the latest moment it may end. */
    deadlineAt: time("deadline_at").notNull(),
    /** Written by the statement that offers or ends the job, read by the statements of the same batch. */
    mark: text(),
    error: text(),
    createdAt: time("created_at").notNull(),
    leasedAt: time("leased_at"),
    finishedAt: time("finished_at"),
  },
  (t) => [
    index("jobs_open")
      .on(t.hostId, t.seq)
      .where(sql`status IN ('QUEUED', 'LEASED')`), // a host asks for work
    index("jobs_deadline")
      .on(t.deadlineAt)
      .where(sql`status IN ('QUEUED', 'LEASED')`), // the reaper
    index("jobs_lane").on(t.lane, t.seq), // order within a lane
    index("jobs_site").on(t.siteId, t.seq), // what a site waits for
    index("jobs_database").on(t.databaseId, t.seq),
    index("jobs_backup").on(t.backupId),
    index("jobs_mark").on(t.mark), // the statements of one batch
    uniqueIndex("jobs_one_leased")
      .on(t.lane)
      .where(sql`status = 'LEASED'`),
  ],
);

export const invoices = sqliteTable(
  "invoices",
  {
    id: text().$type<Id<"invoice">>().primaryKey(),
    /** Unguessable; opens the public page. */
    token: text().notNull().unique(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    kind: text({ enum: invoiceKinds }).notNull(),
    status: text({ enum: invoiceStatuses }).notNull(),
    amountCents: integer("amount_cents").notNull(),
    currency: text().notNull(),
    lines: text({ mode: "json" }).$type<{ description: string; amountCents: number }[]>().notNull(),
    /** Site or database the invoice pays for. */
    resourceId: text("resource_id"),
    /** Months bought. */
    termMonths: integer("term_months"),
    createdAt: time("created_at").notNull(),
    dueAt: time("due_at").notNull(),
    paidAt: time("paid_at"),
    /** Written by the statement that pays it, read by the statements of the same batch. */
    settlementMark: text("settlement_mark"),
  },
  (t) => [
    index("invoices_account").on(t.accountId, t.id), // GET /invoices
    index("invoices_resource").on(t.resourceId),
    index("invoices_settlement").on(t.settlementMark), // the statements of one batch
  ],
);

/** Money that came in, one row per processor reference, for ever. */
export const payments = sqliteTable(
  "payments",
  {
    id: text().$type<Id<"payment">>().primaryKey(),
    invoiceId: text("invoice_id").$type<Id<"invoice">>().notNull(),
    processor: text({ enum: ["test", "stripe"] }).notNull(),
    reference: text().notNull(),
    amountCents: integer("amount_cents").notNull(),
    currency: text().notNull(),
    createdAt: time("created_at").notNull(),
  },
  (t) => [
    uniqueIndex("payments_reference").on(t.processor, t.reference),
    index("payments_invoice").on(t.invoiceId),
  ],
);

/** First answers to requests with an Idempotency-Key, kept for a day. `status` null: the first still runs. */
export const idempotentRequests = sqliteTable(
  "idempotent_requests",
  {
    /** SHA-256 over account, method, path and key. */
    id: text().primaryKey(),
    bodyHash: text("body_hash").notNull(),
    status: integer(),
    /** The body, sealed: it may hold a key or a token that is shown once. */
    responseSealed: text("response_sealed"),
    createdAt: time("created_at").notNull(),
  },
  (t) => [index("idempotent_requests_created").on(t.createdAt)], // the cron forgets old ones
);
