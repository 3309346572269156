/** Status values. The first three site statuses are defined by the spec, the rest by Berth. */
export const siteStatuses = [
  "PENDING",
  "DEPLOYING",
  "RUNNING",
  "STOPPED",
  "FAILED",
  "SUSPENDED",
  "DELETING",
] as const;
export type SiteStatus = (typeof siteStatuses)[number];

export const deploymentStatuses = [
  "QUEUED",
  "BUILDING",
  "STARTING",
  "LIVE",
  "FAILED",
  "CANCELLED",
  "SUPERSEDED",
] as const;
export type DeploymentStatus = (typeof deploymentStatuses)[number];

/** What a repository is built by. */
export const builders = ["detect", "dockerfile"] as const;

export const domainStatuses = ["PENDING_VERIFICATION", "VERIFIED", "ACTIVE", "ERROR"] as const;
export type DomainStatus = (typeof domainStatuses)[number];

/** What can be wrong with a custom domain, in the order in which it is to be put right. */
export const domainProblems = [
  "not_looked_at",
  "resolver_unavailable",
  "proof_missing",
  "proof_other",
  "name_held",
  "name_released",
  "release_planned",
  "target_missing",
  "address_missing",
  "proxied",
  "cname_other",
  "address_other",
  "address_other_ipv6",
  "caa_forbids",
  "site_not_placed",
  "host_unreachable",
  "route_pending",
  "certificate_pending",
  "certificate_failed",
] as const;

export const deploymentTriggers = [
  "payment",
  "api",
  "webhook",
  "rollback",
  "chat",
  "renewal",
  "move",
] as const;
export type DeploymentTrigger = (typeof deploymentTriggers)[number];

export const commandStatuses = ["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"] as const;
export type CommandStatus = (typeof commandStatuses)[number];

export const commandTriggers = ["api", "schedule", "chat"] as const;
export type CommandTrigger = (typeof commandTriggers)[number];

export const jobStatuses = ["QUEUED", "LEASED", "DONE", "FAILED", "CANCELLED"] as const;

export const databaseTypes = ["postgresql", "mysql", "redis"] as const;
export type DatabaseType = (typeof databaseTypes)[number];

export const databaseStatuses = [
  "PENDING",
  "PROVISIONING",
  "RUNNING",
  "STOPPED",
  "FAILED",
  "SUSPENDED",
  "DELETING",
] as const;
export type DatabaseStatus = (typeof databaseStatuses)[number];

/** What a backup is of: a database of this type, or a volume of a site. */
export const backupTypes = [...databaseTypes, "volume"] as const;
export type BackupType = (typeof backupTypes)[number];

/** STORED: complete, but not yet verified by a restore. */
export const backupStatuses = ["RUNNING", "STORED", "VERIFIED", "FAILED"] as const;
export type BackupStatus = (typeof backupStatuses)[number];

/** final: taken before the database is deleted. */
export const backupTriggers = ["api", "chat", "schedule", "before-restore", "final"] as const;
export type BackupTrigger = (typeof backupTriggers)[number];

/** How an API key came to be. */
export const signUpStates = ["open", "closed"] as const;

export const keyOrigins = ["dashboard", "device", "setup", "mcp"] as const;

export const invoiceKinds = ["site", "database", "credits", "renewal", "change"] as const;
export type InvoiceKind = (typeof invoiceKinds)[number];

export const invoiceStatuses = ["unpaid", "paid", "void", "refunded"] as const;
export type InvoiceStatus = (typeof invoiceStatuses)[number];

export const hostStatuses = ["ACTIVE", "DRAINING", "REMOVED"] as const;

/**
 * The kinds of actors that make changes. `link`: the bearer of an invoice URL; `webhook`: the bearer of a deploy
 * webhook URL.
 */
/** What the service or a host does by itself, as `operation` of the activity. */
export const automaticActions = [
  "settleInvoice",
  "refundInvoice",
  "suspendSite",
  "suspendDatabase",
  "moveSite",
  "reportSiteCrash",
  "reportSiteExit",
  "reportDatabaseCrash",
] as const;
export type AutomaticAction = (typeof automaticActions)[number];

export const activityActors = [
  "session",
  "key",
  "assistant",
  "operator",
  "webhook",
  "link",
  "host",
  "system",
] as const;
export type ActivityActor = (typeof activityActors)[number];

export const accountRoles = ["user", "operator"] as const;
export type AccountRole = (typeof accountRoles)[number];

export const accountPlans = ["free", "pro"] as const;
export type AccountPlan = (typeof accountPlans)[number];

export const billingTermsMonths = [1, 3, 6, 12, 24] as const;
export type BillingTermMonths = (typeof billingTermsMonths)[number];

export const transactionTypes = ["purchase", "chat", "refund", "grant"] as const;
export type TransactionType = (typeof transactionTypes)[number];

/** One attempt to pay an invoice. processing: the customer has finished, the money has not arrived yet. */
export const checkoutStatuses = ["opening", "open", "processing", "paid", "expired", "failed"] as const;
export type CheckoutStatus = (typeof checkoutStatuses)[number];

export const refundStatuses = ["pending", "done", "failed"] as const;
export type RefundStatus = (typeof refundStatuses)[number];

/**
 * Payment problems that need an operator. `owner_not_warned`: a deletion is on hold because the warning could not be
 * mailed.
 */
export const flagReasons = [
  "unknown_invoice",
  "invoice_void",
  "paid_twice",
  "wrong_amount",
  "wrong_currency",
  "wrong_mode",
  "refunded_elsewhere",
  "refund_failed",
  "refund_of_spent_credits",
  "disputed",
  "owner_not_warned",
] as const;
export type FlagReason = (typeof flagReasons)[number];

/** Where notifications go: the account's own email address, or an address of the owner's. */
export const channelTypes = ["mail", "webhook", "slack"] as const;
export type ChannelType = (typeof channelTypes)[number];

/** What an owner may be notified of. `limit_near`: disk or memory. */
export const notificationKinds = [
  "deploy_failed",
  "crash_loop",
  "unhealthy",
  "limit_near",
  "backup_failed",
  "invoice_due",
  "certificate",
] as const;
export type NotificationKind = (typeof notificationKinds)[number];

export const deliveryStatuses = ["pending", "sent", "failed"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];
