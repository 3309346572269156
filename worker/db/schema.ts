import { sql } from "drizzle-orm";
import { check, index, integer, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { FailingCheck } from "../../protocol/agent/messages.ts";
import { type EnvEntry, jobKinds } from "../../protocol/agent/jobs.ts";
import type { DomainCertificate, DomainProblem } from "../../protocol/api/domains.ts";
import type { IngressRules } from "../../protocol/api/ingress.ts";
import type { BuildOptions, HealthCheck, Lifecycle } from "../../protocol/api/sites.ts";
import type { BillingDetails, Brand, InvoiceParties, Seller } from "../../protocol/api/settings.ts";
import type { Volume } from "../../protocol/api/volumes.ts";
import type { Id } from "../../protocol/ids.ts";
import {
  accountPlans,
  accountRoles,
  commandStatuses,
  commandTriggers,
  backupStatuses,
  activityActors,
  backupTriggers,
  backupTypes,
  channelTypes,
  databaseStatuses,
  databaseTypes,
  checkoutStatuses,
  deliveryStatuses,
  deploymentStatuses,
  deploymentTriggers,
  flagReasons,
  hostStatuses,
  invoiceKinds,
  invoiceStatuses,
  jobStatuses,
  keyOrigins,
  notificationKinds,
  type NotificationKind,
  refundStatuses,
  signUpStates,
  siteStatuses,
  transactionTypes,
} from "../../protocol/states.ts";
import { certificateSteps } from "../domain/certificates.ts";
import type { ZoneConflict } from "../domain/dns-records.ts";
import type { Discounts } from "../domain/pricing.ts";
import type { VolumeKey } from "../domain/volume-keys.ts";
import { takenCommands, takenJobs } from "./job-conditions.ts";

const time = (name: string) => integer(name, { mode: "timestamp_ms" });

/** Accounts. The columns up to updatedAt, and the next three tables, are better-auth's core schema under our names. */
export const accounts = sqliteTable(
  "accounts",
  {
    id: text().$type<Id<"account">>().primaryKey(),
    name: text().notNull(),
    email: text().notNull().unique(),
    emailVerified: integer("email_verified", { mode: "boolean" }).notNull().default(false),
    image: text(),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
    role: text({ enum: accountRoles }).notNull().default("user"),
    plan: text({ enum: accountPlans }).notNull().default("free"),
    /** What operators remember of it; its owner does not see it. */
    note: text(),
    /** By an operator, with the reason that its owner is told; null: not suspended. */
    suspendedAt: time("suspended_at"),
    suspendedFor: text("suspended_for"),
    /** By its owner: names and addresses are gone, what money needs is kept. */
    deletedAt: time("deleted_at"),
    /** When its last suspension ended: what is still suspended since then starts again. */
    releasedAt: time("released_at"),
    /** Signing in takes a second step; written by better-auth. */
    twoFactorEnabled: integer("two_factor_enabled", { mode: "boolean" }).notNull().default(false),
  },
  (t) => [
    index("accounts_suspended") // the cron
      .on(t.suspendedAt)
      .where(sql`suspended_at IS NOT NULL`),
    index("accounts_released") // the cron
      .on(t.releasedAt)
      .where(sql`released_at IS NOT NULL`),
  ],
);

/** Browser sessions. The cookie contains the token, this table only its SHA-256. */
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
  (t) => [
    index("sessions_account").on(t.accountId), // sign out everywhere
    index("sessions_end").on(t.expiresAt), // the cron
  ],
);

/**
 * Sign-in methods of an account: `credential` with a password (`scrypt$N$r$p$salt$hash`), or a provider such as
 * `github`.
 */
export const identities = sqliteTable(
  "identities",
  {
    id: text().primaryKey(),
    // Named as by better-auth, which mistakes one for the other if either is mapped: whoever came by GitHub once came no second time.
    userId: text("account_id").$type<Id<"account">>().notNull(),
    providerId: text("provider_id").notNull(),
    /** The provider's id of the person; the account's own id for `credential`. */
    accountId: text("provider_account_id").notNull(),
    /** Encrypted by better-auth. */
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
    index("identities_account").on(t.userId),
    uniqueIndex("identities_provider").on(t.providerId, t.accountId),
  ],
);

/**
 * The second step of signing in, better-auth's table `twoFactor`. Both secrets are sealed (adapters/two-factor-rows.ts). `verified`: a
 * code has proven that the app has the secret.
 */
export const twoFactors = sqliteTable("two_factors", {
  id: text().primaryKey(),
  accountId: text("account_id").$type<Id<"account">>().notNull().unique(),
  secret: text("secret_sealed").notNull(),
  /** A JSON list of those not used yet. */
  backupCodes: text("backup_codes_sealed").notNull(),
  verified: integer({ mode: "boolean" }).notNull().default(true),
  failedVerificationCount: integer("failed_verification_count").notNull().default(0),
  lockedUntil: time("locked_until"),
});

/** Pending verifications: password resets, email verifications, OAuth states. Identifiers are stored hashed. */
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
    /** SHA-256 of the key, hex. The key itself is shown once and never stored. */
    hash: text().notNull().unique(),
    /** The first characters, for display. */
    start: text().notNull(),
    /** mcp: for `/mcp` alone. */
    origin: text({ enum: keyOrigins }).notNull(),
    createdAt: time("created_at").notNull(),
    lastUsedAt: time("last_used_at"),
    revokedAt: time("revoked_at"),
    /** When the key's guard, which caches this row, was notified of the revocation. */
    guardToldAt: time("guard_told_at"),
    /** The mark of a change of the account's role or plan that the guard has not been notified of yet. */
    untoldChange: text("untold_change"),
  },
  (t) => [
    index("api_keys_account").on(t.accountId, t.createdAt), // GET /keys
    // The timer completes interrupted changes.
    index("api_keys_untold_change")
      .on(t.untoldChange)
      .where(sql`untold_change IS NOT NULL`),
    // The timer completes interrupted revocations.
    index("api_keys_untold")
      .on(t.revokedAt)
      .where(sql`revoked_at IS NOT NULL AND guard_told_at IS NULL`),
  ],
);

/** Packs on offer. `priceCents` is per month. */
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
  /** Months of a term → discount in percent. */
  discounts: text({ mode: "json" }).$type<Discounts>().notNull().default({}),
});

export const hosts = sqliteTable(
  "hosts",
  {
    id: text().$type<Id<"host">>().primaryKey(),
    name: text().notNull(),
    status: text({ enum: hostStatuses }).notNull().default("ACTIVE"),
    region: text(),
    /** SHA-256 of the enrolment token, hex; the id of a removed host whose token another one has. */
    tokenHash: text("token_hash").notNull().unique(),
    /** As reported by the agent; null before its first connection. */
    cpuCount: real("cpu_count"),
    memoryMb: integer("memory_mb"),
    /** No more is used than what its agent reported first, or an operator has set since; and what it reported then. */
    memoryLimitMb: integer("memory_limit_mb"),
    memoryKnownMb: integer("memory_known_mb"),
    /** How many jobs it takes without asking for them; null: none. */
    slots: integer(),
    agentVersion: text("agent_version"),
    createdAt: time("created_at").notNull(),
    /** The last connection, not the last heartbeat: heartbeats are never written to D1. */
    connectedAt: time("connected_at"),
    /** Since when the agent is unreachable; null while it is connected, or if it never was. */
    offlineSince: time("offline_since"),
    /** Of the disk that containers write to; and what must be free for a deployment to begin, null: unknown. */
    diskFreeMb: integer("disk_free_mb"),
    diskNeededMb: integer("disk_needed_mb"),
    /** Why its ingress does not run, as its agent last said; null: it does. */
    ingressProblem: text("ingress_problem"),
    /** Why its agent was not updated, as it last said; null: it was, or need not be. */
    updateProblem: text("update_problem"),
    /** What is wrong with its clock or old on it, as its agent last said. */
    machineProblems: text("machine_problems", { mode: "json" }).$type<string[]>().notNull().default([]),
    /** Where another agent with its token tries to connect from, empty: an unknown address; null: none does. */
    otherAgentFrom: text("other_agent_from"),
    /**
     * When its inventory was last compared with the record, and the memory of running containers unknown to the
     * record.
     */
    comparedAt: time("compared_at"),
    unknownMb: integer("unknown_mb").notNull().default(0),
    /** The sites whose health checks fail there, as its agent last said. */
    failingChecks: text("failing_checks", { mode: "json" }).$type<FailingCheck[]>().notNull().default([]),
    /** When its agent last replaced a part of the ingress. */
    ingressReplacedAt: time("ingress_replaced_at"),
    /** Where visitors reach it, as the operator says; null: `connectedFrom`, if that is a public IPv4 address. */
    ipv4: text(),
    /** null: visitors do not reach it by IPv6. */
    ipv6: text(),
    /** The address of the agent's last connection. */
    connectedFrom: text("connected_from"),
    /** Where its agent takes requests of other hosts, and its public key (SubjectPublicKeyInfo, base64); null: not at all. */
    peerPort: integer("peer_port"),
    peerKey: text("peer_key"),
  },
  (t) => [
    // The name of a removed host can be reused.
    uniqueIndex("hosts_name")
      .on(t.name)
      .where(sql`status <> 'REMOVED'`),
  ],
);

/** Columns of sites and databases: the end of the term, and the pack that follows. */
const term = () => ({
  /** The day of the month on which its terms end, or the last of a shorter month; null: the day of `paid_until`. */
  billingDay: integer("billing_day"),
  suspendedAt: time("suspended_at"),
  /** Reserved in placement from the time its payment is pending. */
  nextPackId: text("next_pack_id").$type<Id<"pack">>(),
  /** When the pack changes; null: on payment, or at the next renewal. */
  nextPackAt: time("next_pack_at"),
  nextBillingTerm: integer("next_billing_term"),
  /** When a pack change took effect that running containers have not been recreated for yet. */
  packChangedAt: time("pack_changed_at"),
});

export const sites = sqliteTable(
  "sites",
  {
    id: text().$type<Id<"site">>().primaryKey(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    name: text().notNull(),
    status: text({ enum: siteStatuses }).notNull(),
    /** The state requested by the last accepted command; `status` follows when it is reached. */
    wanted: text({ enum: ["RUNNING", "STOPPED"] })
      .notNull()
      .default("RUNNING"),
    /** Whether a version serves requests right now. */
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
    buildOptions: text("build_options", { mode: "json" }).$type<BuildOptions>().notNull().default({}),
    healthCheckPath: text("health_check_path"),
    ingress: text({ mode: "json" }).$type<IngressRules>().notNull().default({}),
    replicas: integer().notNull().default(1),
    healthCheck: text("health_check", { mode: "json" }).$type<HealthCheck>().notNull().default({}),
    keptImages: integer("kept_images").notNull().default(5),
    lifecycle: text({ mode: "json" }).$type<Lifecycle>().notNull().default({}),
    /** Mounted by the next deployment; `site_volumes` lists the existing volumes. */
    volumes: text({ mode: "json" }).$type<Volume[]>().notNull().default([]),
    region: text(),
    packId: text("pack_id").$type<Id<"pack">>().notNull(),
    billingTerm: integer("billing_term").notNull(),
    /** The first label of the site's own address. */
    slug: text().notNull().unique(),
    hostId: text("host_id").$type<Id<"host">>(),
    /**
     * Its pack counts towards `hostId` and `leavingHostId`, except for a FAILED site that runs nothing: it must be
     * placed again to start.
     */
    reserved: integer({ mode: "boolean" }).notNull().default(true),
    /** During a move: the target host. `hostId` serves until the site is healthy there. */
    moveHostId: text("move_host_id").$type<Id<"host">>(),
    /** The pack whose limits it keeps on `hostId`, which has no room for its own: it moves first. */
    limitsPackId: text("limits_pack_id").$type<Id<"pack">>(),
    /** The previous host, and when its remains may be removed. */
    leavingHostId: text("leaving_host_id").$type<Id<"host">>(),
    leaveAt: time("leave_at"),
    /** SHA-256 of the deploy webhook's secret path segment; the segment is derived, see domain/tokens.ts. */
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
    index("sites_host").on(t.hostId), // placement: memory in use on a host
    index("sites_move_host")
      .on(t.moveHostId)
      .where(sql`move_host_id IS NOT NULL`),
    index("sites_limits_pack")
      .on(t.limitsPackId)
      .where(sql`limits_pack_id IS NOT NULL`),
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
    /** Also the first label of its host name in the account's network. */
    name: text().notNull(),
    type: text({ enum: databaseTypes }).notNull(),
    status: text({ enum: databaseStatuses }).notNull(),
    /** The state requested by the last accepted command; `status` follows when it is reached. */
    wanted: text({ enum: ["RUNNING", "STOPPED"] })
      .notNull()
      .default("RUNNING"),
    /** Fixed at creation, because another major version could not read the files. */
    image: text().notNull(),
    /** As reported by the server when it last started; null: never provisioned, so there is no data. */
    version: text(),
    /** Why it does not run, or why the last change failed. */
    error: text(),
    /** The size of its volume in megabytes, as last measured; null: never. */
    diskMb: integer("disk_mb"),
    packId: text("pack_id").$type<Id<"pack">>().notNull(),
    billingTerm: integer("billing_term").notNull(),
    region: text(),
    hostId: text("host_id").$type<Id<"host">>(),
    /** SHA-256 of the token, hex, of the last host that was removed with its data; null: none was. */
    lostWith: text("lost_with"),
    databaseName: text("database_name").notNull(),
    /** Sealed by the secret box, like the passwords below. Belongs to the administrator, which only Berth uses. */
    adminPasswordSealed: text("admin_password_sealed").notNull(),
    /** The generation of the password; each has its own user name, so that two are valid during a rotation. */
    generation: integer().notNull().default(1),
    passwordSealed: text("password_sealed").notNull(),
    /** During a rotation: the password of the next generation, until the server has it. */
    nextPasswordSealed: text("next_password_sealed"),
    /** Afterwards: the password of the previous generation, until no linked site uses it. */
    previousPasswordSealed: text("previous_password_sealed"),
    /** The restore that created its current volume; null: the original volume. */
    volume: text().$type<Id<"job">>(),
    backupSchedule: text("backup_schedule").default("daily"),
    backupHourUtc: integer("backup_hour_utc").notNull().default(3),
    backupKeep: integer("backup_keep").notNull().default(7),
    /** null: not scheduled yet, or no schedule. */
    nextBackupAt: time("next_backup_at"),
    /** Failed scheduled backups since the last verified one. */
    backupFailures: integer("backup_failures").notNull().default(0),
    backupsFailingSince: time("backups_failing_since"),
    backupFailureReason: text("backup_failure_reason"),
    /** The requested public access; the host has applied it when both generations are equal. */
    publicEnabled: integer("public_enabled", { mode: "boolean" }).notNull().default(false),
    publicAllow: text("public_allow", { mode: "json" }).$type<string[]>().notNull().default([]),
    publicGeneration: integer("public_generation").notNull().default(0),
    publicApplied: integer("public_applied").notNull().default(0),
    /** The public port on its host; never changed once assigned. */
    publicPort: integer("public_port"),
    /** As last reported by the host: its address, and the CA and expiry of the certificate. */
    publicAddress: text("public_address"),
    publicAuthority: text("public_authority"),
    publicEndsAt: time("public_ends_at"),
    /** Why the host could not apply it, and when it is retried. */
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

/** Backups in the store. They outlive their database, so the row contains everything that a restore needs. */
export const backups = sqliteTable(
  "backups",
  {
    id: text().$type<Id<"backup">>().primaryKey(),
    /** What was backed up: a database, or a site's volume (`domain/volume-keys.ts`). */
    databaseId: text("database_id").$type<Id<"database"> | VolumeKey>().notNull(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    status: text({ enum: backupStatuses }).notNull(),
    trigger: text({ enum: backupTriggers }).notNull(),
    /** The database at the time of the backup: names, engine, pack. Of a volume, the site's name and pack; the others are empty. */
    name: text().notNull(),
    databaseName: text("database_name").notNull(),
    type: text({ enum: backupTypes }).notNull(),
    version: text(),
    image: text().notNull(),
    packId: text("pack_id").$type<Id<"pack">>().notNull(),
    hostId: text("host_id").$type<Id<"host">>(),
    /**
     * The attempt that uploads the object, part of the object's key, so that no two attempts write to the same object.
     */
    attempt: integer(),
    /** The store's id of the upload in progress. */
    uploadId: text("upload_id"),
    sizeBytes: integer("size_bytes"),
    sha256: text(),
    fingerprintSha256: text("fingerprint_sha256"),
    tables: integer(),
    rows: integer(),
    /**
     * The previous backup, if this one holds less than a tenth of it and the owner has not accepted that; null
     * otherwise.
     */
    shrunkFrom: text("shrunk_from").$type<Id<"backup">>(),
    /** Whether it is of one moment; null: a database's, which always is, or not complete. */
    consistent: integer({ mode: "boolean" }),
    error: text(),
    /** How often hosts tried to verify it. */
    verifications: integer().notNull().default(0),
    /** Written by the statement that changes it, read by the others of its batch. */
    mark: text(),
    createdAt: time("created_at").notNull(),
    finishedAt: time("finished_at"),
    verifiedAt: time("verified_at"),
    expiresAt: time("expires_at"),
    /** Hidden; the row is deleted once its objects are. */
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

/** Sites that receive a database's connection string as a secret variable. */
export const databaseLinks = sqliteTable(
  "database_links",
  {
    databaseId: text("database_id").$type<Id<"database">>().notNull(),
    siteId: text("site_id").$type<Id<"site">>().notNull(),
    variable: text().notNull(),
    /** The password generation last sent to the host for a container of the site. */
    offeredGeneration: integer("offered_generation"),
    /** The password generation the site runs with; null before its first release with one. */
    generation: integer(),
    createdAt: time("created_at").notNull(),
  },
  (t) => [
    uniqueIndex("database_links_key").on(t.databaseId, t.siteId),
    uniqueIndex("database_links_variable").on(t.siteId, t.variable),
  ],
);

/**
 * Custom domains. Several sites may claim a name; the first that proves ownership gets it. `services/domains/look.ts`
 * writes what is below `createdAt`.
 */
export const domains = sqliteTable(
  "domains",
  {
    id: text().$type<Id<"domain">>().primaryKey(),
    siteId: text("site_id").$type<Id<"site">>().notNull(),
    name: text().notNull(),
    /** The value of the TXT record that proves ownership. */
    challenge: text().notNull(),
    /** The name whose record of ownership is asked for: example.com for www.example.com beside it; null: its own. */
    provedAs: text("proved_as"),
    verifiedAt: time("verified_at"),
    createdAt: time("created_at").notNull(),
    /** Another domain of the site, to which visitors are redirected. */
    redirectTo: text("redirect_to"),
    /** The status once it is verified. */
    state: text({ enum: ["VERIFIED", "ACTIVE", "ERROR"] })
      .notNull()
      .default("VERIFIED"),
    problems: text({ mode: "json" }).$type<DomainProblem[]>().notNull().default([]),
    certificate: text({ mode: "json" }).$type<DomainCertificate>(),
    checkedAt: time("checked_at"),
    /** When the clock looks at it again; null: now. */
    nextCheckAt: time("next_check_at"),
    /** How often it was looked at in its present status. */
    looks: integer().notNull().default(0),
    /** Since when neither its record of ownership nor its address leads here. */
    lostSince: time("lost_since"),
  },
  (t) => [
    uniqueIndex("domains_site").on(t.siteId, t.name),
    uniqueIndex("domains_verified")
      .on(t.name)
      .where(sql`verified_at IS NOT NULL`),
    index("domains_next_check").on(t.nextCheckAt), // the clock
  ],
);

/** A site's environment, one row per version: a rollback restores the version of its deployment. */
export const siteEnvVersions = sqliteTable(
  "site_env_versions",
  {
    siteId: text("site_id").$type<Id<"site">>().notNull(),
    version: integer().notNull(),
    /** Values of secret entries are sealed by the secret box. */
    entries: text({ mode: "json" }).$type<EnvEntry[]>().notNull(),
    /** The author of the version, as in `activity`; null: unknown. */
    actor: text({ enum: activityActors }),
    actorId: text("actor_id"),
    /** The version that it brought back. */
    restoredFrom: integer("restored_from"),
    createdAt: time("created_at").notNull(),
  },
  (t) => [uniqueIndex("site_env_versions_key").on(t.siteId, t.version)],
);

/**
 * Volumes of sites that exist or may exist on their hosts. A row is created with the setting and deleted with the
 * data. A site with volumes does not move.
 */
export const siteVolumes = sqliteTable(
  "site_volumes",
  {
    siteId: text("site_id").$type<Id<"site">>().notNull(),
    name: text().notNull(),
    createdAt: time("created_at").notNull(),
    /** null: backed up on request only. */
    backupSchedule: text("backup_schedule"),
    backupHourUtc: integer("backup_hour_utc").notNull().default(3),
    backupKeep: integer("backup_keep").notNull().default(7),
    nextBackupAt: time("next_backup_at"),
    /** As of a database. */
    backupFailures: integer("backup_failures").notNull().default(0),
    backupsFailingSince: time("backups_failing_since"),
    backupFailureReason: text("backup_failure_reason"),
    /** Why the last restore into it failed. */
    restoreError: text("restore_error"),
    /** Written by the statement that changes it, read by the others of its batch. */
    mark: text(),
  },
  (t) => [
    uniqueIndex("site_volumes_key").on(t.siteId, t.name),
    index("site_volumes_next_backup").on(t.nextBackupAt), // the cron
  ],
);

/** The columns of a site that each deployment keeps a copy of: how its container runs, and what it is built from. */
export const runSettings = [
  "port",
  "startCommand",
  "healthCheckPath",
  "healthCheck",
  "replicas",
  "lifecycle",
  "volumes",
] as const;
export const buildSettings = [
  "githubUrl",
  "branch",
  "submodules",
  "lfs",
  "dockerfile",
  "image",
  "rootDir",
  "dockerfilePath",
  "buildCommand",
  "buildOptions",
] as const;
export type RunSettings = Pick<typeof sites.$inferSelect, (typeof runSettings)[number]>;
/** `imageDigest`, for a move: the digest from the registry when the image was pulled. */
export type BuildSettings = Pick<typeof sites.$inferSelect, (typeof buildSettings)[number]> & {
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
    /** The API key that asked for it; null: somebody or something else did. */
    keyId: text("key_id").$type<Id<"key">>(),
    commit: text("commit_sha"),
    commitMessage: text("commit_message"),
    imageDigest: text("image_digest"),
    /** The engine's id on the host; null if it equals the digest. */
    imageId: text("image_id"),
    /** The agent's hash of the build inputs, keyed per host. */
    buildKey: text("build_key"),
    /** Updated when a start or restart uses a newer environment. */
    envVersion: integer("env_version").notNull().default(0),
    /** The site's settings that its container runs with, as of the time a host took it. */
    run: text({ mode: "json" }).$type<RunSettings>(),
    /** The settings that its image was built with, while it may be rebuilt; null: the site's current ones. */
    build: text({ mode: "json" }).$type<BuildSettings>(),
    /** For a rollback: the deployment whose image, environment and run settings are restored. */
    rollbackOf: text("rollback_of").$type<Id<"deployment">>(),
    /** The branch, tag or commit that was asked for; null: the newest commit of the site's branch. */
    ref: text(),
    /** Build even if nothing has changed. */
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
    index("deployments_build") // what the end of a deployment releases
      .on(t.siteId)
      .where(sql`build IS NOT NULL`),
    // At most one queued and one in progress per site, even with concurrent requests.
    uniqueIndex("deployments_one_waiting")
      .on(t.siteId)
      .where(sql`status = 'QUEUED'`),
    uniqueIndex("deployments_one_running")
      .on(t.siteId)
      .where(sql`status IN ('BUILDING', 'STARTING')`),
  ],
);

/** Work for a host. The row references the resource; the arguments are read when a host takes the job. */
export const jobs = sqliteTable(
  "jobs",
  {
    /** Order of acceptance. */
    seq: integer().primaryKey({ autoIncrement: true }),
    id: text().$type<Id<"job">>().notNull().unique(),
    kind: text({ enum: jobKinds }).notNull(),
    status: text({ enum: jobStatuses }).notNull(),
    /** null: any host may take it, which places the site there. */
    hostId: text("host_id").$type<Id<"host">>(),
    /**
     * Jobs of a lane run one at a time and in order. It is the site's id, except for jobs that must not block the
     * site's others.
     */
    lane: text().notNull(),
    /** The subject: exactly one of the two. */
    siteId: text("site_id").$type<Id<"site">>(),
    databaseId: text("database_id").$type<Id<"database">>(),
    /** For backups, verifications and restores. */
    backupId: text("backup_id").$type<Id<"backup">>(),
    /** For volume.restore: the volume of the site. */
    volume: text(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    deploymentId: text("deployment_id").$type<Id<"deployment">>(),
    commandId: text("command_id").$type<Id<"command">>(),
    /** The environment version sent with the current attempt. */
    envVersion: integer("env_version"),
    /** Incremented by every offer; (id, attempt) is the lease. */
    attempt: integer().notNull().default(0),
    cancelRequested: integer("cancel_requested", { mode: "boolean" }).notNull().default(false),
    /** While QUEUED: the deadline for a host to take it. While LEASED: the deadline for its completion. */
    deadlineAt: time("deadline_at").notNull(),
    /** Written by the statement that offers or ends the job, read by the statements of the same batch. */
    mark: text(),
    error: text(),
    createdAt: time("created_at").notNull(),
    leasedAt: time("leased_at"),
    finishedAt: time("finished_at"),
  },
  (t) => [
    // Not a partial index on open jobs, because the planner cannot match one to a bound status.
    index("jobs_host").on(t.status, t.hostId, t.seq), // a host asks for work
    index("jobs_account").on(t.status, t.hostId, t.accountId, t.seq), // the account's turn there
    // The latest turns there; worker/jobs/turns.ts filters by the same conditions.
    index("jobs_taken").on(t.hostId, t.leasedAt).where(sql.raw(takenJobs)),
    index("jobs_taken_commands").on(t.hostId, t.leasedAt).where(sql.raw(takenCommands)),
    index("jobs_deadline").on(t.status, t.deadlineAt), // the reaper
    index("jobs_lane").on(t.lane, t.status, t.seq), // order within a lane
    index("jobs_site").on(t.siteId, t.status), // what a site waits for
    index("jobs_database").on(t.databaseId, t.status),
    index("jobs_backup").on(t.backupId),
    index("jobs_deployment").on(t.deploymentId, t.seq), // where a deployment was built
    index("jobs_evicted")
      .on(t.siteId, t.seq)
      .where(sql`kind = 'site.evict'`), // whether anything built there remains
    index("jobs_mark").on(t.mark), // the statements of one batch
    uniqueIndex("jobs_one_leased")
      .on(t.lane)
      .where(sql`status = 'LEASED'`),
  ],
);

/** One-off commands in a site's image, started by a person or a schedule. */
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
    /** The deployment whose image it runs in: the one in service when a host took it. */
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
    index("commands_open").on(t.status, t.siteId), // queued and running ones
    index("commands_finished").on(t.finishedAt), // the cron deletes old ones
  ],
);

/** Scheduled commands. */
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
    /**
     * The update that advances this time gets to run the due minute. null while the schedule is disabled, and after it
     * was due while its site did not run.
     */
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
    index("schedules_account").on(t.accountId), // number per account
    index("schedules_unset") // schedules of sites that may run again
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
    /** The site or database that the invoice pays for. */
    resourceId: text("resource_id"),
    /** The months paid for. */
    termMonths: integer("term_months"),
    /** For a renewal or a change: the pack, and the end of the term that it extends or is part of. */
    packId: text("pack_id").$type<Id<"pack">>(),
    periodEnd: time("period_end"),
    createdAt: time("created_at").notNull(),
    dueAt: time("due_at").notNull(),
    paidAt: time("paid_at"),
    /** One after the other without gaps, in the order of payment; given by a trigger. null: never paid. */
    number: integer().unique(),
    /** Written by the statement that pays it, read by the statements of the same batch. */
    settlementMark: text("settlement_mark"),
    /** Written by a trigger when it is issued, and not changed afterwards. */
    parties: text({ mode: "json" }).$type<Partial<InvoiceParties>>(),
  },
  (t) => [
    index("invoices_account").on(t.accountId, t.id), // GET /invoices
    // With the status: SQLite would otherwise take `invoices_due`, and read all that are unpaid for each resource.
    index("invoices_resource").on(t.resourceId, t.status),
    // One renewal per end of a term, and one payable invoice at a time, even with concurrent requests.
    uniqueIndex("invoices_renewal")
      .on(t.resourceId, t.periodEnd)
      .where(sql`kind = 'renewal' AND status IN ('unpaid', 'paid')`),
    uniqueIndex("invoices_one_to_pay")
      .on(t.resourceId)
      .where(sql`kind IN ('renewal', 'change') AND status = 'unpaid'`),
    index("invoices_due").on(t.status, t.dueAt), // the cron voids unpaid invoices
    index("invoices_settlement").on(t.settlementMark), // the statements of one batch
  ],
);

/** Mails to accounts, written in the same batch as their cause. The id names the occasion, so each is sent once. */
export const mails = sqliteTable(
  "mails",
  {
    id: text().primaryKey(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    subject: text().notNull(),
    text: text().notNull(),
    createdAt: time("created_at").notNull(),
    /** The next attempt; advanced before each attempt. */
    tryAt: time("try_at").notNull(),
    sentAt: time("sent_at"),
  },
  (t) => [index("mails_try").on(t.sentAt, t.tryAt), index("mails_created").on(t.createdAt)], // the cron
);

/** Payments received, one row per processor reference, never deleted. */
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

/** Credit packages. `priceCents` buys `credits`. */
export const creditPackages = sqliteTable("credit_packages", {
  id: text().$type<Id<"creditPackage">>().primaryKey(),
  name: text().notNull(),
  credits: integer().notNull(),
  priceCents: integer("price_cents").notNull(),
  currency: text().notNull().default("usd"),
  active: integer({ mode: "boolean" }).notNull().default(true),
});

/** The content of a credits invoice, as of its creation. */
export const creditPurchases = sqliteTable("credit_purchases", {
  invoiceId: text("invoice_id").$type<Id<"invoice">>().primaryKey(),
  packageId: text("package_id").$type<Id<"creditPackage">>().notNull(),
  credits: integer().notNull(),
});

/** Attempts to pay an invoice at the processor, at most one at a time, to prevent double payments. */
export const checkouts = sqliteTable(
  "checkouts",
  {
    id: text().$type<Id<"checkout">>().primaryKey(),
    invoiceId: text("invoice_id").$type<Id<"invoice">>().notNull(),
    number: integer().notNull(),
    processor: text({ enum: ["test", "stripe"] }).notNull(),
    /** The processor's id of it; null until the processor has answered. */
    sessionId: text("session_id"),
    url: text(),
    status: text({ enum: checkoutStatuses }).notNull(),
    createdAt: time("created_at").notNull(),
    /** When the processor closes it. */
    expiresAt: time("expires_at").notNull(),
    /** When the processor is queried next. */
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

/** Sessions of the embedded test processor; private to its adapter. */
export const testSessions = sqliteTable("test_sessions", {
  id: text().primaryKey(),
  invoiceId: text("invoice_id").$type<Id<"invoice">>().notNull(),
  amountCents: integer("amount_cents").notNull(),
  currency: text().notNull(),
  returnUrl: text("return_url").notNull(),
  status: text({ enum: ["open", "complete", "expired"] }).notNull(),
  expiresAt: time("expires_at").notNull(),
});

/** Events from the processor, once each, never deleted. */
export const processorEvents = sqliteTable("processor_events", {
  id: text().primaryKey(),
  type: text().notNull(),
  /** The raw payload. */
  body: text().notNull(),
  outcome: text({ enum: ["applied", "known", "ignored", "flagged"] }).notNull(),
  receivedAt: time("received_at").notNull(),
});

/**
 * How far the processor's list of events was read, and when. A restore of the database resets it as well, so later
 * payments are read again.
 */
export const processorReadings = sqliteTable("processor_readings", {
  processor: text().primaryKey(),
  eventsUntil: time("events_until").notNull(),
  readAt: time("read_at").notNull(),
});

/** Payment problems for an operator. Money named here was received but is not a payment of any invoice. */
export const paymentFlags = sqliteTable(
  "payment_flags",
  {
    id: text().$type<Id<"flag">>().primaryKey(),
    reason: text({ enum: flagReasons }).notNull(),
    /** The processor's id of the subject; each subject is flagged once per reason. */
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
      .where(sql`resolved_at IS NULL`), // whether it may be paid
  ],
);

/** Refunds. At most one per invoice is pending or done, because invoices are refunded in full or not at all. */
export const refunds = sqliteTable(
  "refunds",
  {
    id: text().$type<Id<"refund">>().primaryKey(),
    invoiceId: text("invoice_id").$type<Id<"invoice">>().notNull(),
    /** The payment's reference at the processor. */
    paymentReference: text("payment_reference").notNull(),
    /** The processor's id of it; null until the processor has answered. */
    reference: text(),
    amountCents: integer("amount_cents").notNull(),
    status: text({ enum: refundStatuses }).notNull(),
    /** Credits to take back, held until the processor has answered. */
    holdId: text("hold_id"),
    /** Credits that were already spent and cannot be taken back. */
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
    index("refunds_status").on(t.status), // retried by the cron
  ],
);

/** Disputes by customers' banks, as last reported by the processor. */
export const disputes = sqliteTable("disputes", {
  /** The processor's id. */
  id: text().primaryKey(),
  paymentReference: text("payment_reference").notNull(),
  amountCents: integer("amount_cents").notNull(),
  currency: text().notNull(),
  status: text().notNull(),
  reason: text().notNull(),
  /** The processor's time of the latest applied event. */
  toldAt: time("told_at").notNull(),
});

/**
 * Credits in double entry. Only the triggers of the next two tables write these balances, and the CHECK aborts any
 * batch that would make a customer's balance negative. System accounts (`system:…`) are the sources and destinations
 * of credits.
 */
export const ledgerAccounts = sqliteTable(
  "ledger_accounts",
  {
    id: text().primaryKey(),
    balance: integer().notNull().default(0),
    /** The part of the balance reserved by open holds. */
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
    /** The invoice, refund, interaction or grant that caused it: one transfer each. */
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

/** Credits reserved for work in progress: posted (spent in full or in part) or voided, once. */
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

/**
 * First answers to requests with an Idempotency-Key, kept for one day. `status` null: the first request is still in
 * progress.
 */
export const idempotentRequests = sqliteTable(
  "idempotent_requests",
  {
    /** SHA-256 over account, method, path and key. */
    id: text().primaryKey(),
    bodyHash: text("body_hash").notNull(),
    status: integer(),
    /** The body, sealed, because it may contain a key or a token that is shown once. */
    responseSealed: text("response_sealed"),
    /** Whose large answer this is, and its length in bytes; null: it is none. */
    accountId: text("account_id"),
    largeBytes: integer("large_bytes"),
    createdAt: time("created_at").notNull(),
  },
  (t) => [
    index("idempotent_requests_created").on(t.createdAt), // the cron deletes old ones
    index("idempotent_requests_large")
      .on(t.accountId, t.largeBytes)
      .where(sql`large_bytes IS NOT NULL`),
  ],
);

/**
 * A single row: when the timer last ran. During a longer gap between two runs, the control plane was down and received
 * no reports.
 */
export const timerRuns = sqliteTable("timer_runs", {
  id: integer().primaryKey(),
  ranAt: time("ran_at").notNull(),
});

/** The list of conversations with the assistant; each conversation's messages are in its Durable Object (`objects/conversation.ts`). */
export const conversations = sqliteTable(
  "conversations",
  {
    id: text().$type<Id<"conversation">>().primaryKey(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    title: text().notNull(),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
  },
  (t) => [
    index("conversations_account").on(t.accountId, t.id), // GET /chat/conversations
    index("conversations_updated").on(t.updatedAt), // the cron forgets old ones
  ],
);

/** The audit log, kept for one year. Rows are written in the batch of the change if it has one, otherwise after it. */
export const activity = sqliteTable(
  "activity",
  {
    id: text().primaryKey().$type<Id<"activity">>(),
    /** The owner of the resource; of what nobody owns, the operator who acted. */
    accountId: text("account_id").$type<Id<"account">>(),
    actor: text({ enum: activityActors }).notNull(),
    actorId: text("actor_id"),
    /** The operation's id, or a tool of the assistant that was called. */
    operation: text().notNull(),
    resourceId: text("resource_id"),
    arguments: text({ mode: "json" }).notNull().$type<Record<string, unknown>>(),
    /** `done`, the error code of the refusal, or `asked` for a call that waits for the person. */
    outcome: text().notNull(),
    requestId: text("request_id"),
    createdAt: time("created_at").notNull(),
  },
  (t) => [
    index("activity_account").on(t.accountId, t.id), // GET /activity
    // The same without calls, of which there may be any number between two changes.
    index("activity_changes")
      .on(t.accountId, t.id)
      .where(sql`instr(operation, '_') = 0`),
    index("activity_resource").on(t.resourceId, t.id), // by resource
  ],
);

/** A single row for the sites' domain: the last comparison of its DNS records with the sites. */
export const dnsZones = sqliteTable("dns_zones", {
  id: text().primaryKey(),
  /** One comparison runs at a time; an interrupted one ends at this time. */
  busyUntil: time("busy_until").notNull(),
  /** Not earlier than this, after a failure. */
  nextAt: time("next_at").notNull(),
  /** Something changed during a comparison: another one follows. */
  hinted: integer({ mode: "boolean" }).notNull().default(false),
  syncedAt: time("synced_at"),
  recordCount: integer("record_count").notNull().default(0),
  /** Names with a record that Berth did not create. */
  conflicts: text({ mode: "json" }).$type<ZoneConflict[]>().notNull().default([]),
  failures: integer().notNull().default(0),
  error: text(),
  errorSince: time("error_since"),
});

/** This installation's account at a certificate authority. */
export const peerAuthorities = sqliteTable("peer_authorities", {
  id: text().primaryKey(),
  /** PEM. */
  certificate: text().notNull(),
  /** Sealed by the secret box. */
  keySealed: text("key_sealed").notNull(),
  endsAt: time("ends_at").notNull(),
});

export const acmeAccounts = sqliteTable("acme_accounts", {
  /** The authority's directory. */
  id: text().primaryKey(),
  /** Sealed by the secret box. */
  keySealed: text("key_sealed").notNull(),
  /** null: not registered yet. */
  url: text(),
});

/**
 * The certificate for a wildcard name: the present one, and the order of the next. Of other custom domains a copy of what their host
 * obtained and renews, for the host that their site moves to.
 */
export const certificates = sqliteTable("certificates", {
  /** The name, such as `*.sites.example.com` or `www.example.com`. */
  id: text().primaryKey(),
  /** PEM; null: none has been issued yet. */
  chain: text(),
  /** Sealed by the secret box. */
  keySealed: text("key_sealed"),
  issuer: text(),
  notBefore: time("not_before"),
  notAfter: time("not_after"),
  /** When all connected hosts had received it. */
  toldAt: time("told_at"),
  /** One process works on it at a time; an interrupted one ends at this time. */
  busyUntil: time("busy_until").notNull(),
  /** Not earlier than this, after a failure. */
  nextAt: time("next_at").notNull(),
  failures: integer().notNull().default(0),
  error: text(),
  errorSince: time("error_since"),
  /** The order in progress; null: none. */
  step: text({ enum: certificateSteps }),
  orderedAt: time("ordered_at"),
  orderUrl: text("order_url"),
  challengeUrl: text("challenge_url"),
  challengeValue: text("challenge_value"),
  /** When the challenge's record was in the zone. */
  publishedAt: time("published_at"),
  /** The next certificate's key, sealed; stored before it is used. */
  orderKeySealed: text("order_key_sealed"),
});

/**
 * Accounts with readers of `GET /events`: only their changes are written down. Triggers (`drizzle/*_watch_changes.sql`)
 * look here.
 */
export const followedAccounts = sqliteTable("followed_accounts", {
  accountId: text("account_id").$type<Id<"account">>().primaryKey(),
  /** All changes after this one are there. */
  sinceSeq: integer("since_seq").notNull(),
  /** Extended while there are readers; afterwards the row is deleted. */
  until: time("until").notNull(),
});

/** Changes of followed accounts, written by triggers only, and kept for some minutes. */
export const changes = sqliteTable(
  "changes",
  {
    seq: integer().primaryKey({ autoIncrement: true }),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    type: text().notNull(),
    resourceId: text("resource_id").notNull(),
    /** The fields of the event besides `type` and `id`. */
    fields: text({ mode: "json" }).$type<Record<string, unknown>>().notNull(),
    /** Whether the account's object was given a hint. */
    told: integer({ mode: "boolean" }).notNull().default(false),
    createdAt: time("created_at").notNull(),
  },
  (t) => [
    index("changes_account").on(t.accountId, t.seq), // GET /events
    index("changes_untold")
      .on(t.told)
      .where(sql`told = 0`), // the batch that wrote them gives the hint
  ],
);

/** Where an account wants to be notified, and of what. Without one, nothing is noticed. */
export const notificationChannels = sqliteTable(
  "notification_channels",
  {
    id: text().$type<Id<"channel">>().primaryKey(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    type: text({ enum: channelTypes }).notNull(),
    name: text().notNull(),
    /** Sealed by the secret box; null for mail, which goes to the account's address. */
    urlSealed: text("url_sealed"),
    /** For a webhook: what its messages are signed with, sealed. */
    secretSealed: text("secret_sealed"),
    kinds: text({ mode: "json" }).$type<NotificationKind[]>().notNull(),
    enabled: integer({ mode: "boolean" }).notNull().default(true),
    /** Why the service disabled it; null: it did not. */
    disabledReason: text("disabled_reason"),
    createdAt: time("created_at").notNull(),
    updatedAt: time("updated_at").notNull(),
  },
  (t) => [index("notification_channels_account").on(t.accountId, t.id)],
);

/** What happened to an account that wants to know: written by triggers, or with what a host reports. Once per occasion. */
export const notices = sqliteTable(
  "notices",
  {
    seq: integer().primaryKey({ autoIncrement: true }),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    kind: text({ enum: notificationKinds }).notNull(),
    occasion: text().notNull(),
    resourceId: text("resource_id").notNull(),
    /** What cannot be read elsewhere: the detail that a host told, or the id of the mail. */
    detail: text(),
    createdAt: time("created_at").notNull(),
    /** When its deliveries were written. */
    takenAt: time("taken_at"),
  },
  (t) => [
    uniqueIndex("notices_occasion").on(t.accountId, t.occasion),
    index("notices_created").on(t.createdAt), // forgotten after a time
    index("notices_waiting")
      .on(t.seq)
      .where(sql`taken_at IS NULL`), // the cron
  ],
);

/** One notification through one channel, and its outcome. */
export const deliveries = sqliteTable(
  "deliveries",
  {
    id: text().$type<Id<"delivery">>().primaryKey(),
    accountId: text("account_id").$type<Id<"account">>().notNull(),
    channelId: text("channel_id").$type<Id<"channel">>().notNull(),
    kind: text({ enum: [...notificationKinds, "test"] }).notNull(),
    occasion: text().notNull(),
    resourceId: text("resource_id"),
    subject: text().notNull(),
    text: text().notNull(),
    /** The page about it. */
    link: text(),
    status: text({ enum: deliveryStatuses }).notNull(),
    attempts: integer().notNull().default(0),
    /** The next attempt; advanced before each attempt. null: none follows. */
    tryAt: time("try_at"),
    /** Of the last attempt. */
    httpStatus: integer("http_status"),
    error: text(),
    createdAt: time("created_at").notNull(),
    finishedAt: time("finished_at"),
  },
  (t) => [
    uniqueIndex("deliveries_occasion").on(t.channelId, t.occasion),
    index("deliveries_created").on(t.createdAt), // forgotten after a time
    index("deliveries_account").on(t.accountId, t.id), // GET /notifications/deliveries
    index("deliveries_due")
      .on(t.tryAt)
      .where(sql`status = 'pending'`), // the cron
  ],
);

/** A single row: the operator's own name, looks and data. Fields that are not there have their defaults. */
export const installationSettings = sqliteTable("installation_settings", {
  id: integer().primaryKey(),
  brand: text({ mode: "json" }).$type<Partial<Brand>>().notNull(),
  seller: text({ mode: "json" }).$type<Partial<Seller>>().notNull(),
  /** Who may create an account; null: as the configuration says (SIGN_UP). */
  signUp: text("sign_up", { enum: signUpStates }),
  updatedAt: time("updated_at").notNull(),
});

/** What an account's invoices say of the buyer. */
export const billingDetails = sqliteTable("billing_details", {
  accountId: text("account_id").$type<Id<"account">>().primaryKey(),
  details: text({ mode: "json" }).$type<Partial<BillingDetails>>().notNull(),
  updatedAt: time("updated_at").notNull(),
});
