import { sql } from "drizzle-orm";
import { check, index, integer, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { type EnvEntry, jobKinds } from "../../protocol/agent/jobs.ts";
import type { Volume } from "../../protocol/api/volumes.ts";
import type { Id } from "../../protocol/ids.ts";
import {
  accountPlans,
  accountRoles,
  commandStatuses,
  commandTriggers,
  backupStatuses,
  backupTriggers,
  databaseStatuses,
  databaseTypes,
  checkoutStatuses,
  deploymentStatuses,
  deploymentTriggers,
  flagReasons,
  hostStatuses,
  invoiceKinds,
  invoiceStatuses,
  jobStatuses,
  refundStatuses,
  siteStatuses,
  transactionTypes,
} from "../../protocol/states.ts";
import type { Discounts } from "../domain/pricing.ts";

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
    id: text().$type<Id<"session">>().primaryKey(),
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
    /** Since when the key's guard, which keeps a copy of this row, knows of the revocation. */
    guardToldAt: time("guard_told_at"),
    /** The mark of a change of the account's role or plan that the guard has not heard of yet. */
    untoldChange: text("untold_change"),
  },
  (t) => [
    index("api_keys_account").on(t.accountId, t.createdAt), // GET /keys
    // The timer finishes what was cut short.
    index("api_keys_untold_change")
      .on(t.untoldChange)
      .where(sql`untold_change IS NOT NULL`),
    // The timer finishes revocations that were cut short.
    index("api_keys_untold")
      .on(t.revokedAt)
      .where(sql`revoked_at IS NOT NULL AND guard_told_at IS NULL`),
  ],
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
  /** Months of a term → per cent off it. */
  discounts: text({ mode: "json" }).$type<Discounts>().notNull().default({}),
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
    /** How many jobs it takes without having asked for them; null: none. */
    slots: integer(),
    agentVersion: text("agent_version"),
    createdAt: time("created_at").notNull(),
    /** The last connection, not the last heartbeat: heartbeats never touch D1. */
    connectedAt: time("connected_at"),
    /** Since when its agent has not been heard; null while it is, or was never. */
    offlineSince: time("offline_since"),
    diskFreeMb: integer("disk_free_mb"),
    /** When what it has was last compared with the record, and the memory of what runs there of which that knows nothing. */
    comparedAt: time("compared_at"),
    unknownMb: integer("unknown_mb").notNull().default(0),
    /** When its agent last replaced a part of the ingress. */
    ingressReplacedAt: time("ingress_replaced_at"),
  },
  (t) => [
    // A removed host's name is free again.
    uniqueIndex("hosts_name")
      .on(t.name)
      .where(sql`status <> 'REMOVED'`),
  ],
);

/** Of sites and databases: how their term ends, and the pack that follows. */
const term = () => ({
  suspendedAt: time("suspended_at"),
  /** Counts for placement while it is being paid, and once it is. */
  nextPackId: text("next_pack_id").$type<Id<"pack">>(),
  /** When the pack changes; null: when the change is paid, or with the next renewal. */
  nextPackAt: time("next_pack_at"),
  nextBillingTerm: integer("next_billing_term"),
  /** Since when the containers are to have the limits of another pack than they were made with. */
  packChangedAt: time("pack_changed_at"),
});

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
    submodules: integer({ mode: "boolean" }).notNull().default(false),
    lfs: integer({ mode: "boolean" }).notNull().default(false),
    dockerfile: text(),
    image: text(),
    registryUsername: text("registry_username"),
    /** Sealed by the secret box. */
    registryPasswordSealed: text("registry_password_sealed"),
    port: integer().notNull(),
    buildCommand: text("build_command"),
    startCommand: text("start_command"),
    releaseCommand: text("release_command"),
    startTimeoutSeconds: integer("start_timeout_seconds"),
    rootDir: text("root_dir"),
    dockerfilePath: text("dockerfile_path"),
    healthCheckPath: text("health_check_path"),
    replicas: integer().notNull().default(1),
    /** What the next deployment mounts; which volumes there are, `site_volumes` says. */
    volumes: text({ mode: "json" }).$type<Volume[]>().notNull().default([]),
    region: text(),
    packId: text("pack_id").$type<Id<"pack">>().notNull(),
    billingTerm: integer("billing_term").notNull(),
    /** First label of the site's own address. */
    slug: text().notNull().unique(),
    hostId: text("host_id").$type<Id<"host">>(),
    /** Its pack counts on `hostId` and `leavingHostId`. Not that of a FAILED site of which nothing runs: it needs room again to run again. */
    reserved: integer({ mode: "boolean" }).notNull().default(true),
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
    ...term(),
    /** Written by each accepted command, read by the other statements of its batch. */
    mark: text(),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
  },
  (t) => [
    index("sites_term").on(t.paidUntil), // the cron
    index("sites_next_pack")
      .on(t.nextPackAt)
      .where(sql`next_pack_at IS NOT NULL`),
    index("sites_account").on(t.accountId, t.id), // GET /sites
    uniqueIndex("sites_account_name").on(t.accountId, t.name), // a name is unique per account
    index("sites_status").on(t.status), // the reaper
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
    /** Megabytes of its volume, as its host measured last; null: never. */
    diskMb: integer("disk_mb"),
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
    /** Of planned ones, since the last backup that was proven. */
    backupFailures: integer("backup_failures").notNull().default(0),
    backupsFailingSince: time("backups_failing_since"),
    backupFailureReason: text("backup_failure_reason"),
    /** Who reaches it from outside, as last asked for; the host has done so once both generations are the same. */
    publicEnabled: integer("public_enabled", { mode: "boolean" }).notNull().default(false),
    publicAllow: text("public_allow", { mode: "json" }).$type<string[]>().notNull().default([]),
    publicGeneration: integer("public_generation").notNull().default(0),
    publicApplied: integer("public_applied").notNull().default(0),
    /** Of its host, from the first time on. */
    publicPort: integer("public_port"),
    /** As the host last reported: where it is reached, and by what its certificate is verified until when. */
    publicAddress: text("public_address"),
    publicAuthority: text("public_authority"),
    publicEndsAt: time("public_ends_at"),
    /** Why the host could not do it, and when it is asked again. */
    publicError: text("public_error"),
    publicTryAt: time("public_try_at"),
    paidUntil: time("paid_until"),
    ...term(),
    /** Written by each accepted command, read by the other statements of its batch. */
    mark: text(),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
  },
  (t) => [
    uniqueIndex("databases_public_port")
      .on(t.hostId, t.publicPort)
      .where(sql`public_port IS NOT NULL`),
    index("databases_public") // the cron
      .on(t.id)
      .where(sql`public_enabled OR public_applied < public_generation`),
    index("databases_term").on(t.paidUntil), // the cron
    index("databases_next_pack")
      .on(t.nextPackAt)
      .where(sql`next_pack_at IS NOT NULL`),
    index("databases_account").on(t.accountId, t.id), // GET /databases
    uniqueIndex("databases_account_name").on(t.accountId, t.name),
    index("databases_status").on(t.status), // the reaper
    index("databases_rotating")
      .on(t.id)
      .where(sql`previous_password_sealed IS NOT NULL`),
    index("databases_host").on(t.hostId), // placement
    index("databases_next_backup").on(t.nextBackupAt), // the cron
    index("databases_backups_failing") // GET /backups/failing
      .on(t.id)
      .where(sql`backup_failures > 0`),
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
    /** The one before, of which it holds less than a tenth; null: it is no such, or is meant to be. */
    shrunkFrom: text("shrunk_from").$type<Id<"backup">>(),
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
    index("backups_expiry").on(t.expiresAt),
    index("backups_removed").on(t.removedAt),
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

/**
 * Volumes of sites that there are or may be on their hosts: a row comes with the setting, and goes when its data does. A site
 * that has one does not move.
 */
export const siteVolumes = sqliteTable(
  "site_volumes",
  {
    siteId: text("site_id").$type<Id<"site">>().notNull(),
    name: text().notNull(),
    createdAt: time("created_at").notNull(),
  },
  (t) => [uniqueIndex("site_volumes_key").on(t.siteId, t.name)],
);

export type RunSettings = {
  port: number;
  startCommand: string | null;
  healthCheckPath: string | null;
  /** Left out by deployments from before there were any. */
  replicas?: number;
  volumes?: Volume[];
};

/** What a deployment is made of, beside the commit, its environment and the secrets of its source. */
export type BuildSettings = Pick<
  typeof sites.$inferSelect,
  | "githubUrl"
  | "branch"
  | "submodules"
  | "lfs"
  | "dockerfile"
  | "image"
  | "rootDir"
  | "dockerfilePath"
  | "buildCommand"
> & {
  /** Of a move, what the registry gave when the image was pulled. */
  imageDigest?: string | null;
};

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
    /** Those that its image is made of, likewise, while it may be made once more; null: the site's. */
    build: text({ mode: "json" }).$type<BuildSettings>(),
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
    index("deployments_status").on(t.siteId, t.status),
    index("deployments_kept")
      .on(t.siteId, t.number)
      .where(sql`status IN ('LIVE', 'SUPERSEDED', 'BUILDING', 'STARTING')`),
    index("deployments_build") // what an end of a deployment lets go
      .on(t.siteId)
      .where(sql`build IS NOT NULL`),
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
    commandId: text("command_id").$type<Id<"command">>(),
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
    // Whole, not for open jobs only: the planner cannot tell from a bound status that a partial index would do.
    index("jobs_host").on(t.status, t.hostId, t.seq), // a host asks for work
    index("jobs_account").on(t.status, t.hostId, t.accountId, t.seq), // an account's turn there
    // Who had the last turns there; worker/jobs/turns.ts asks by the same terms.
    index("jobs_taken")
      .on(t.hostId, t.leasedAt)
      .where(
        sql`kind IN ('site.deploy', 'database.provision', 'database.backup', 'database.verify', 'database.restore') AND leased_at IS NOT NULL`,
      ),
    index("jobs_taken_commands")
      .on(t.hostId, t.leasedAt)
      .where(sql`kind = 'site.command' AND leased_at IS NOT NULL`),
    index("jobs_deadline").on(t.status, t.deadlineAt), // the reaper
    index("jobs_lane").on(t.lane, t.status, t.seq), // order within a lane
    index("jobs_site").on(t.siteId, t.status), // what a site waits for
    index("jobs_database").on(t.databaseId, t.status),
    index("jobs_backup").on(t.backupId),
    index("jobs_deployment").on(t.deploymentId, t.seq), // where a deployment was made
    index("jobs_evicted")
      .on(t.siteId, t.seq)
      .where(sql`kind = 'site.evict'`), // whether what was made there is there
    index("jobs_mark").on(t.mark), // the statements of one batch
    uniqueIndex("jobs_one_leased")
      .on(t.lane)
      .where(sql`status = 'LEASED'`),
  ],
);

/** Commands run once in a site's image: asked for by somebody, or by a schedule. */
export const commands = sqliteTable(
  "commands",
  {
    id: text().$type<Id<"command">>().primaryKey(),
    siteId: text("site_id").$type<Id<"site">>().notNull(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    command: text().notNull(),
    timeoutSeconds: integer("timeout_seconds").notNull(),
    status: text({ enum: commandStatuses }).notNull(),
    trigger: text({ enum: commandTriggers }).notNull(),
    scheduleId: text("schedule_id").$type<Id<"schedule">>(),
    /** Whose image it runs in: the one in service when a host took it. */
    deploymentId: text("deployment_id").$type<Id<"deployment">>(),
    exitCode: integer("exit_code"),
    error: text(),
    createdAt: time("created_at").notNull(),
    startedAt: time("started_at"),
    finishedAt: time("finished_at"),
  },
  (t) => [
    index("commands_site").on(t.siteId, t.id), // GET /sites/:id/commands
    index("commands_schedule").on(t.scheduleId, t.id), // a schedule's history
    index("commands_open").on(t.status, t.siteId), // what waits and runs
    index("commands_finished").on(t.finishedAt), // the cron forgets old ones
  ],
);

/** Commands by the clock. */
export const schedules = sqliteTable(
  "schedules",
  {
    id: text().$type<Id<"schedule">>().primaryKey(),
    siteId: text("site_id").$type<Id<"site">>().notNull(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    name: text().notNull(),
    cron: text().notNull(),
    command: text().notNull(),
    timeoutSeconds: integer("timeout_seconds").notNull(),
    enabled: integer({ mode: "boolean" }).notNull(),
    /** Guards the UPDATE that takes a due minute: who moves it on runs it. null while it is not enabled, and once it was due while its site did not run. */
    nextRunAt: time("next_run_at"),
    skippedRuns: integer("skipped_runs").notNull().default(0),
    lastSkippedAt: time("last_skipped_at"),
    /** Written by the tick that took a due minute, read by the other statements of its batch. */
    mark: text(),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
  },
  (t) => [
    uniqueIndex("schedules_site_name").on(t.siteId, t.name),
    index("schedules_due").on(t.nextRunAt), // the cron
    index("schedules_account").on(t.accountId), // how many an account has
    index("schedules_unset") // those of sites that may run again
      .on(t.siteId)
      .where(sql`enabled AND next_run_at IS NULL`),
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
    /** Of a renewal or a change: the pack that is bought, and the end of the term that it follows or is part of. */
    packId: text("pack_id").$type<Id<"pack">>(),
    periodEnd: time("period_end"),
    createdAt: time("created_at").notNull(),
    dueAt: time("due_at").notNull(),
    paidAt: time("paid_at"),
    /** Written by the statement that pays it, read by the statements of the same batch. */
    settlementMark: text("settlement_mark"),
  },
  (t) => [
    index("invoices_account").on(t.accountId, t.id), // GET /invoices
    index("invoices_resource").on(t.resourceId),
    // One renewal for each end of a term, and one at a time to pay, whatever races.
    uniqueIndex("invoices_renewal")
      .on(t.resourceId, t.periodEnd)
      .where(sql`kind = 'renewal' AND status IN ('unpaid', 'paid')`),
    uniqueIndex("invoices_one_to_pay")
      .on(t.resourceId)
      .where(sql`kind IN ('renewal', 'change') AND status = 'unpaid'`),
    index("invoices_due").on(t.status, t.dueAt), // the cron voids what nobody pays
    index("invoices_settlement").on(t.settlementMark), // the statements of one batch
  ],
);

/** Mail to accounts, written with what it tells. The id names the occasion, so that there is one for each. */
export const mails = sqliteTable(
  "mails",
  {
    id: text().primaryKey(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    subject: text().notNull(),
    text: text().notNull(),
    createdAt: time("created_at").notNull(),
    /** When it is tried next; moved on before each try. */
    tryAt: time("try_at").notNull(),
    sentAt: time("sent_at"),
  },
  (t) => [index("mails_try").on(t.sentAt, t.tryAt), index("mails_created").on(t.createdAt)], // the cron
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

/** Credits by the package. `priceCents` buys `credits`. */
export const creditPackages = sqliteTable("credit_packages", {
  id: text().$type<Id<"creditPackage">>().primaryKey(),
  name: text().notNull(),
  credits: integer().notNull(),
  priceCents: integer("price_cents").notNull(),
  currency: text().notNull().default("usd"),
  active: integer({ mode: "boolean" }).notNull().default(true),
});

/** What a credits invoice buys, as it was when it was asked for. */
export const creditPurchases = sqliteTable("credit_purchases", {
  invoiceId: text("invoice_id").$type<Id<"invoice">>().primaryKey(),
  packageId: text("package_id").$type<Id<"creditPackage">>().notNull(),
  credits: integer().notNull(),
});

/** Tries to pay an invoice at the processor: at most one at a time, so that nobody pays twice. */
export const checkouts = sqliteTable(
  "checkouts",
  {
    id: text().$type<Id<"checkout">>().primaryKey(),
    invoiceId: text("invoice_id").$type<Id<"invoice">>().notNull(),
    number: integer().notNull(),
    processor: text({ enum: ["test", "stripe"] }).notNull(),
    /** The processor's name for it; null until the processor has answered. */
    sessionId: text("session_id"),
    url: text(),
    status: text({ enum: checkoutStatuses }).notNull(),
    createdAt: time("created_at").notNull(),
    /** When the processor closes it. */
    expiresAt: time("expires_at").notNull(),
    /** When the processor is asked next. */
    checkAt: time("check_at").notNull(),
  },
  (t) => [
    uniqueIndex("checkouts_number").on(t.invoiceId, t.number),
    uniqueIndex("checkouts_one_open")
      .on(t.invoiceId)
      .where(sql`status IN ('opening', 'open', 'processing')`),
    uniqueIndex("checkouts_session").on(t.processor, t.sessionId),
    index("checkouts_check").on(t.status, t.checkAt), // reconciliation
  ],
);

/** Sessions of the embedded test processor: its own memory, read by nothing but its adapter. */
export const testSessions = sqliteTable("test_sessions", {
  id: text().primaryKey(),
  invoiceId: text("invoice_id").$type<Id<"invoice">>().notNull(),
  amountCents: integer("amount_cents").notNull(),
  currency: text().notNull(),
  returnUrl: text("return_url").notNull(),
  status: text({ enum: ["open", "complete", "expired"] }).notNull(),
  expiresAt: time("expires_at").notNull(),
});

/** What the processor sent, once per event, for ever. */
export const processorEvents = sqliteTable("processor_events", {
  id: text().primaryKey(),
  type: text().notNull(),
  /** As it came. */
  body: text().notNull(),
  outcome: text({ enum: ["applied", "known", "ignored", "flagged"] }).notNull(),
  receivedAt: time("received_at").notNull(),
});

/**
 * How far a processor's list of events was read, and when. It goes back with all else when the record does: so what was paid
 * since then is read again.
 */
export const processorReadings = sqliteTable("processor_readings", {
  processor: text().primaryKey(),
  eventsUntil: time("events_until").notNull(),
  readAt: time("read_at").notNull(),
});

/** What does not fit, for an operator. Money named here was taken and is not a payment of any invoice. */
export const paymentFlags = sqliteTable(
  "payment_flags",
  {
    id: text().$type<Id<"flag">>().primaryKey(),
    reason: text({ enum: flagReasons }).notNull(),
    /** The processor's name for what it is about; each is flagged once per reason. */
    reference: text().notNull(),
    invoiceId: text("invoice_id"),
    amountCents: integer("amount_cents"),
    currency: text(),
    createdAt: time("created_at").notNull(),
    resolvedAt: time("resolved_at"),
    resolvedBy: text("resolved_by").$type<Id<"account">>(),
    resolution: text(),
  },
  (t) => [
    uniqueIndex("payment_flags_subject").on(t.reason, t.reference),
    index("payment_flags_invoice")
      .on(t.invoiceId)
      .where(sql`resolved_at IS NULL`), // may it be paid
  ],
);

/** Money given back. One per invoice is open or done: an invoice is refunded in full or not at all. */
export const refunds = sqliteTable(
  "refunds",
  {
    id: text().$type<Id<"refund">>().primaryKey(),
    invoiceId: text("invoice_id").$type<Id<"invoice">>().notNull(),
    /** The payment's reference at the processor. */
    paymentReference: text("payment_reference").notNull(),
    /** The processor's name for it; null until the processor has answered. */
    reference: text(),
    amountCents: integer("amount_cents").notNull(),
    status: text({ enum: refundStatuses }).notNull(),
    /** Credits that go back, held until the processor has answered. */
    holdId: text("hold_id"),
    /** Credits that were spent already and cannot go back. */
    missingCredits: integer("missing_credits").notNull().default(0),
    error: text(),
    mark: text(),
    createdBy: text("created_by").$type<Id<"account">>().notNull(),
    createdAt: time("created_at").notNull(),
  },
  (t) => [
    uniqueIndex("refunds_one")
      .on(t.invoiceId)
      .where(sql`status <> 'failed'`),
    index("refunds_status").on(t.status), // tried again by the cron
  ],
);

/** What customers' banks dispute, as the processor last said. */
export const disputes = sqliteTable("disputes", {
  /** The processor's. */
  id: text().primaryKey(),
  paymentReference: text("payment_reference").notNull(),
  amountCents: integer("amount_cents").notNull(),
  currency: text().notNull(),
  status: text().notNull(),
  reason: text().notNull(),
  /** The processor's time of the news that was last applied. */
  toldAt: time("told_at").notNull(),
});

/**
 * Credits, in double entry. Nothing writes these balances but the triggers of the two tables below, and the CHECK ends
 * any batch that would take a customer below zero. System accounts (`system:…`) are where credits come from and go to.
 */
export const ledgerAccounts = sqliteTable(
  "ledger_accounts",
  {
    id: text().primaryKey(),
    balance: integer().notNull().default(0),
    /** Of the balance, what open holds keep. */
    held: integer().notNull().default(0),
  },
  () => [
    check("ledger_accounts_covered", sql`id LIKE 'system:%' OR (held >= 0 AND balance >= held)`),
    check("ledger_accounts_integers", sql`typeof(balance) = 'integer' AND typeof(held) = 'integer'`),
  ],
);

/** Append-only: triggers refuse UPDATE and DELETE. */
export const ledgerTransfers = sqliteTable(
  "ledger_transfers",
  {
    seq: integer().primaryKey({ autoIncrement: true }),
    id: text().$type<Id<"transaction">>().notNull().unique(),
    debitId: text("debit_id").notNull(),
    creditId: text("credit_id").notNull(),
    amount: integer().notNull(),
    type: text({ enum: transactionTypes }).notNull(),
    /** The invoice, refund, interaction or grant it is for: one transfer each. */
    reference: text().notNull(),
    createdAt: time("created_at").notNull(),
  },
  (t) => [
    check("ledger_transfers_amount", sql`typeof(amount) = 'integer' AND amount > 0`),
    check("ledger_transfers_ends", sql`debit_id <> credit_id`),
    uniqueIndex("ledger_transfers_reference").on(t.type, t.reference),
    index("ledger_transfers_debit").on(t.debitId, t.seq), // GET /credits
    index("ledger_transfers_credit").on(t.creditId, t.seq), // GET /credits
  ],
);

/** Credits kept for something under way: posted (spent, or less of it) or voided, once. */
export const ledgerHolds = sqliteTable(
  "ledger_holds",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    amount: integer().notNull(),
    status: text({ enum: ["open", "posted", "voided"] }).notNull(),
    /** Written by the statement that posts it, read by the statements of the same batch. */
    mark: text(),
    createdAt: time("created_at").notNull(),
    /** Voided by the cron after this; null: never. */
    expiresAt: time("expires_at"),
  },
  (t) => [
    check("ledger_holds_amount", sql`typeof(amount) = 'integer' AND amount > 0`),
    index("ledger_holds_expiry").on(t.status, t.expiresAt), // the cron
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

/** One row: when the timer last ran. What lies between two runs beside their minute, nobody was there to be told anything. */
export const timerRuns = sqliteTable("timer_runs", {
  id: integer().primaryKey(),
  ranAt: time("ran_at").notNull(),
});
