import * as z from "zod";
import {
  billingTermsMonths,
  databaseStatuses,
  databaseTypes,
  invoiceStatuses,
  siteStatuses,
} from "../states.ts";
import { BackupSettings } from "./backups.ts";
import { TimeoutSeconds } from "./commands.ts";
import { BasicAuth, Redirect } from "./ingress.ts";
import { Network } from "./public-access.ts";
import { Timestamp } from "./common.ts";
import { RequestWindow } from "./requests.ts";
import { CronExpression } from "./schedules.ts";
import { DomainName } from "./domains.ts";
import { DeployedSettings, EnvKey, HealthCheck, Lifecycle, LabelName } from "./sites.ts";
import { MountPath, VolumeName } from "./volumes.ts";

/** What the assistant routes by before it is given the tools of a group. */
export const toolGroups = {
  sites:
    "create, configure, start, stop, restart, delete and list sites (web applications); maintenance page",
  deployments: "deploy, deployment history, build logs, why a deployment failed, rollback, deploy webhook",
  runtime: "health check, restart policy, number of replicas, probes from inside and outside",
  logs: "logs, requests of visitors, metrics and events of running sites and what is not well",
  environment: "environment variables and secrets of a site",
  domains: "custom domain names of a site, redirects, passwords and allowed addresses for its visitors",
  databases: "create, start, stop, delete, link databases; credentials; schema; queries; logs and metrics",
  backups:
    "backups of databases and of volumes: create, list, verify, restore, schedule, download; volumes and files of sites",
  jobs: "commands run once and schedules (cron)",
  billing: "packs, prices, invoices, credits, change of pack",
  account: "the account itself, API keys and the record of who changed what",
} as const;
export type ToolGroup = keyof typeof toolGroups;

export type ToolSpec = {
  group: ToolGroup;
  /** For people and models: what it does and what comes of it. */
  summary: string;
  input: z.ZodObject;
  /** Deletes, stops, breaks clients or overwrites: runs only after the person has confirmed exactly this. */
  destructive?: true;
  /** Its answer holds a secret, which is shown to the person and not to the model. */
  secret?: true;
};

const short = z.string().min(1).max(200);
const site = short.describe("Name or id of a site.");
const db = short.describe("Name or id of a database.");
const deployment = short.describe("Id of a deployment.");
const backup = short.describe("Id of a backup.");
const volume = VolumeName.describe("Name of a volume of the site.");
const limit = z.number().int().min(1).max(100).optional();
const tail = z.number().int().min(1).max(1000).optional().describe("Lines from the end.");
const since = Timestamp.optional().describe("Only what is newer, such as 2026-11-21T12:00:00Z.");
const billingTerm = z
  .literal([...billingTermsMonths])
  .optional()
  .describe("Months paid at once.");
const packId = short.optional().describe("Id of a pack, as list_packs shows them.");
const only = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape);

export const tools = {
  list_sites: {
    group: "sites",
    summary: "List the account's sites with status.",
    input: only({ status: z.enum(siteStatuses).optional(), limit }),
  },
  get_site: {
    group: "sites",
    summary: "Show a site: settings, current and latest deployment, domains, what it costs.",
    input: only({ site }),
  },
  create_site: {
    group: "sites",
    summary: "Create a site and its unpaid invoice. It is deployed once the invoice is paid.",
    input: only({
      name: short,
      deployType: z.enum(["github", "dockerfile", "image"]),
      githubUrl: short.optional().describe("Such as github.com/owner/repository; for deployType github."),
      image: short.optional().describe("For deployType image."),
      dockerfile: z.string().max(20_000).optional().describe("For deployType dockerfile."),
      branch: short.optional(),
      port: z.number().int(),
      buildCommand: short.optional(),
      startCommand: short.optional(),
      packId,
      billingTerm,
    }),
  },
  detect_framework: {
    group: "sites",
    summary:
      "Read a Git repository before a site is made of it: language, framework, commands, port, variables, databases, and why it would not work.",
    input: only({
      githubUrl: short.describe("Such as github.com/owner/repository."),
      branch: short.optional(),
      rootDir: short.optional().describe("The folder of the app, where it is not the root."),
    }),
  },
  update_site_settings: {
    group: "sites",
    summary:
      "Change source, branch, commands, port and other settings of a site, from its next deployment on.",
    input: only({ site, settings: DeployedSettings }),
  },
  diagnose_site: {
    group: "sites",
    summary:
      "Find out what is wrong with a site, in order: invoice, host, deployment, container, port, health, route, DNS, certificate, disk, recent changes; with fixes.",
    input: only({ site }),
  },
  start_site: { group: "sites", summary: "Start a stopped site.", input: only({ site }) },
  stop_site: {
    group: "sites",
    summary: "Stop a site: visitors are answered 503.",
    input: only({ site }),
    destructive: true,
  },
  restart_site: {
    group: "sites",
    summary: "Restart a site with its current version and newest environment, without downtime.",
    input: only({ site }),
  },
  set_maintenance_mode: {
    group: "sites",
    summary: "Show visitors of a site a maintenance page (503) while it runs on, or end that.",
    input: only({
      site,
      on: z.boolean(),
      message: z.string().max(2000).optional().describe("What the page says."),
    }),
    // Where it is turned on.
    destructive: true,
  },
  delete_site: {
    group: "sites",
    summary:
      "Delete a site for good, with its containers, images and domains; one with volumes only with their data.",
    input: only({
      site,
      deleteVolumes: z.boolean().optional().describe("Delete the data of its volumes as well."),
    }),
    destructive: true,
  },
  clone_site: {
    group: "sites",
    summary: "Create another site with the settings of this one and its variables, secret values excepted.",
    input: only({ site, name: short, packId, billingTerm }),
  },

  deploy_site: {
    group: "deployments",
    summary: "Deploy the newest commit of a site's branch.",
    input: only({
      site,
      ref: short.optional().describe("A branch, a tag or a whole commit id, instead of the site's branch."),
      rebuild: z.boolean().optional().describe("Build even where nothing has changed."),
    }),
  },
  list_deployments: {
    group: "deployments",
    summary: "List a site's deployments, newest first, with result and cause.",
    input: only({ site, limit }),
  },
  get_deployment: {
    group: "deployments",
    summary: "Show one deployment: steps, times, commit, error.",
    input: only({ deployment }),
  },
  get_build_logs: {
    group: "deployments",
    summary: "Show the last lines of a deployment's log.",
    input: only({ deployment, tail, search: short.optional().describe("Only lines that contain this.") }),
  },
  explain_failed_deployment: {
    group: "deployments",
    summary:
      "Explain why a deployment failed (by default a site's last failed one): step, exit code, memory, probe, last lines, what changed, fixes.",
    input: only({ site: site.optional(), deployment: deployment.optional() }),
  },
  cancel_deployment: {
    group: "deployments",
    summary: "End a deployment that waits or runs; the version in service stays.",
    input: only({ deployment }),
  },
  list_rollback_targets: {
    group: "deployments",
    summary: "List the deployments that a site can be rolled back to.",
    input: only({ site }),
  },
  rollback_site: {
    group: "deployments",
    summary: "Roll a site back to an earlier deployment: its image and environment.",
    input: only({
      site,
      deployment: deployment.optional(),
      withEnv: z.boolean().optional().describe("false: with the newest environment instead of its own."),
    }),
    destructive: true,
  },
  get_deploy_webhook: {
    group: "deployments",
    summary: "Show the address that deploys the site when something posts to it.",
    input: only({ site }),
    secret: true,
  },
  rotate_deploy_webhook: {
    group: "deployments",
    summary: "Give the site a new deploy webhook; the old address stops working.",
    input: only({ site }),
    destructive: true,
    secret: true,
  },

  set_health_check: {
    group: "runtime",
    summary:
      "Set what must succeed before a new version takes over, and is checked from then on: a path that answers (null: any answer), or a port that takes connections. The running version is restarted with it.",
    input: only({
      site,
      path: short.nullable().optional().describe("Default: unchanged."),
      check: HealthCheck.optional().describe("Replaces kind, interval, timeout and failures."),
    }),
  },
  set_lifecycle_policy: {
    group: "runtime",
    summary:
      "Set what happens when a site's containers exit (restart policy), are replaced (drain) or stopped (stop timeout); the running version is restarted with it.",
    input: only({ site, policy: Lifecycle }),
  },
  run_health_check: {
    group: "runtime",
    summary: "Probe a site's containers now: answers, ports, exits, memory, and whether visitors reach them.",
    input: only({ site }),
  },
  probe_url: {
    group: "runtime",
    summary:
      "Request a site's address from outside, as a visitor does: status, redirects, time to the first byte, TLS.",
    input: only({
      site,
      path: short.optional().describe("Such as /login."),
      domain: DomainName.optional().describe("One of its verified domains."),
    }),
  },
  scale_site: {
    group: "runtime",
    summary:
      "Set the number of replicas of a site; the running version is restarted with them, without downtime.",
    input: only({ site, replicas: z.number().int().min(1).max(10) }),
  },

  get_site_logs: {
    group: "logs",
    summary: "Show the last lines that a running site wrote.",
    input: only({ site, tail, since, search: short.optional().describe("Only lines that contain this.") }),
  },
  search_log_history: {
    group: "logs",
    summary: "Search all that is kept of a site's log for a text, also of containers that are gone.",
    input: only({
      site,
      text: short,
      from: Timestamp.optional(),
      to: Timestamp.optional(),
      limit,
    }),
  },
  get_access_logs: {
    group: "logs",
    summary: "Show the latest requests that visitors made to a site: address, path, status, duration.",
    input: only({
      site,
      status: short.optional().describe("A status such as 404, or a class such as 5xx."),
      path: short.optional().describe("The beginning of the path."),
      method: short.optional(),
      address: short.optional().describe("The visitor's."),
      from: Timestamp.optional(),
      to: Timestamp.optional(),
      limit,
    }),
  },
  get_request_stats: {
    group: "logs",
    summary:
      "Show how many requests a site had, with which statuses and how fast it answered, and the most frequent paths, referrers and programs.",
    input: only({ site, window: RequestWindow.optional() }),
  },
  get_site_metrics: {
    group: "logs",
    summary: "Show CPU, memory, network and disk of a running site by the minute.",
    input: only({ site, minutes: z.number().int().min(1).max(1440).optional() }),
  },
  get_disk_usage: {
    group: "logs",
    summary:
      "Show what a site or database takes of its disk, by what it wrote, volumes, images, logs and build cache; without either, all of the account.",
    input: only({ site: site.optional(), db: db.optional() }),
  },
  list_container_events: {
    group: "logs",
    summary: "List starts, stops, exits and ends for lack of memory of a site or database.",
    input: only({ site: site.optional(), db: db.optional(), since }),
  },
  list_unhealthy_resources: {
    group: "logs",
    summary: "List every site and database of the account that is not well, with the reason.",
    input: only({}),
  },

  list_env_vars: {
    group: "environment",
    summary: "List a site's environment variables; values of secrets are not shown.",
    input: only({ site }),
  },
  set_env_vars: {
    group: "environment",
    summary: "Add or change environment variables of a site; they count from the next restart or deployment.",
    input: only({
      site,
      entries: z
        .array(only({ key: EnvKey, value: z.string().max(32_768), secret: z.boolean().optional() }))
        .min(1)
        .max(50),
    }),
  },
  delete_env_vars: {
    group: "environment",
    summary: "Remove environment variables of a site.",
    input: only({ site, keys: z.array(EnvKey).min(1).max(50) }),
    destructive: true,
  },
  list_env_history: {
    group: "environment",
    summary: "List the versions of a site's environment: who changed which variables when.",
    input: only({ site }),
  },
  restore_env_version: {
    group: "environment",
    summary: "Bring back an earlier version of a site's environment.",
    input: only({ site, version: z.number().int().min(1).describe("As list_env_history shows it.") }),
    destructive: true,
  },
  generate_secret: {
    group: "environment",
    summary: "Set a secret variable to a random value that nobody sees.",
    input: only({ site, key: EnvKey, length: z.number().int().min(16).max(128).optional() }),
  },

  list_domains: {
    group: "domains",
    summary:
      "List a site's own domain names with their state, what is wrong with each, and the records to set.",
    input: only({ site }),
  },
  add_domain: {
    group: "domains",
    summary: "Add a domain name to a site; answers the DNS records to set.",
    input: only({
      site,
      domain: DomainName,
      redirectTo: DomainName.optional().describe("Another domain of the site to redirect visitors to."),
      pair: z
        .boolean()
        .optional()
        .describe("Also add the other of example.com and www.example.com, redirecting to this one."),
    }),
  },
  verify_domain: {
    group: "domains",
    summary:
      "Look at a domain name now: proof of ownership, addresses, CAA records and certificate; it is put in service if all is right.",
    input: only({ site, domain: DomainName }),
  },
  remove_domain: {
    group: "domains",
    summary: "Take a domain name away from a site.",
    input: only({ site, domain: DomainName }),
    destructive: true,
  },
  set_primary_domain: {
    group: "domains",
    summary: "Redirect visitors of a site's other names to this one; null: each name is served by itself.",
    input: only({ site, domain: DomainName.nullable() }),
  },
  set_redirect_rules: {
    group: "domains",
    summary: "Replace a site's redirects, of which the first that matches applies; an empty list: none.",
    input: only({ site, rules: z.array(Redirect).max(200) }),
  },
  set_access_protection: {
    group: "domains",
    summary:
      "Let only those visit a site who know a name and password, or who come from listed addresses; null: open again.",
    input: only({
      site,
      auth: BasicAuth.nullable().optional(),
      allow: z.array(Network).min(1).max(100).nullable().optional(),
    }),
  },
  get_certificate: {
    group: "domains",
    summary: "Show a domain's certificate: issuer, validity, and the certificate authority's last refusal.",
    input: only({ site, domain: DomainName }),
  },
  renew_certificate: {
    group: "domains",
    summary: "Obtain a domain's certificate now, or renew one that is due.",
    input: only({ site, domain: DomainName }),
  },

  list_databases: {
    group: "databases",
    summary: "List the account's databases with status.",
    input: only({ status: z.enum(databaseStatuses).optional(), limit }),
  },
  get_database: {
    group: "databases",
    summary: "Show a database: version, status, size, linked sites, backup settings.",
    input: only({ db }),
  },
  create_database: {
    group: "databases",
    summary: "Create a database and its unpaid invoice. It starts once the invoice is paid.",
    input: only({ name: short, type: z.enum(databaseTypes), packId, billingTerm }),
  },
  start_database: { group: "databases", summary: "Start a stopped database.", input: only({ db }) },
  stop_database: {
    group: "databases",
    summary: "Stop a database: linked sites cannot reach it.",
    input: only({ db }),
    destructive: true,
  },
  restart_database: {
    group: "databases",
    summary: "Restart a database: open connections are closed.",
    input: only({ db }),
    destructive: true,
  },
  delete_database: {
    group: "databases",
    summary: "Delete a database with its data; a last backup is made and kept for 30 days.",
    input: only({ db, skipFinalBackup: z.boolean().optional().describe("Make no last backup.") }),
    destructive: true,
  },
  get_connection_string: {
    group: "databases",
    summary: "Show the addresses of a database with its password.",
    input: only({ db }),
    destructive: true,
    secret: true,
  },
  link_database: {
    group: "databases",
    summary: "Give a site the address of a database as a secret variable, or take it away.",
    input: only({
      db,
      site,
      variable: EnvKey.optional(),
      linked: z.boolean().optional().describe("false: take the address away from the site."),
    }),
    // Where it is taken away.
    destructive: true,
  },
  rotate_database_password: {
    group: "databases",
    summary: "Give a database a new password; linked sites are restarted with it.",
    input: only({ db }),
    destructive: true,
  },
  describe_schema: {
    group: "databases",
    summary: "Show tables, columns and indexes of a database, or the kinds of keys of a Redis one.",
    input: only({ db, filter: short.optional().describe("Only tables whose name contains this.") }),
  },
  run_read_query: {
    group: "databases",
    summary: "Run one statement that can change nothing, and show its rows.",
    input: only({ db, query: z.string().min(1).max(10_000), limit }),
  },
  run_write_query: {
    group: "databases",
    summary: "Run one statement that may change data. The person sees first how many rows it would change.",
    input: only({ db, query: z.string().min(1).max(10_000) }),
    destructive: true,
  },
  list_active_queries: {
    group: "databases",
    summary:
      "List what a database is working on now, longest first: what each waits for, and whose locks block it.",
    input: only({ db }),
  },
  kill_query: {
    group: "databases",
    summary: "End one session of a database, with what it runs and the locks that it holds.",
    input: only({ db, query: short.describe("Id of a session, as list_active_queries shows it.") }),
    destructive: true,
  },
  list_slow_queries: {
    group: "databases",
    summary: "List the statements that took a database the most time.",
    input: only({ db, limit }),
  },
  get_database_metrics: {
    group: "databases",
    summary: "Show CPU, memory, disk and network of a database, its size and its connections.",
    input: only({ db, minutes: z.number().int().min(1).max(1440).optional() }),
  },
  get_database_logs: {
    group: "databases",
    summary: "Show the last lines that a database's server wrote.",
    input: only({ db, tail, since, search: short.optional().describe("Only lines that contain this.") }),
  },

  create_backup: {
    group: "backups",
    summary: "Back up a database, or a volume of a site, now.",
    input: only({ db: db.optional(), site: site.optional(), volume: volume.optional() }),
  },
  list_backups: {
    group: "backups",
    summary:
      "List backups with time, size and what they proved: of a database, of a site's volumes, of one of them, or all.",
    input: only({ db: db.optional(), site: site.optional(), volume: volume.optional(), limit }),
  },
  verify_backup: {
    group: "backups",
    summary: "Restore a backup into a throw-away server or folder and compare what it holds.",
    input: only({ backup }),
  },
  restore_backup: {
    group: "backups",
    summary:
      "Replace the data of a database, or of a volume of a site that is stopped, by a backup; what is there is backed up first. A volume of a new name is created.",
    input: only({ db: db.optional(), site: site.optional(), volume: volume.optional(), backup }),
    destructive: true,
  },
  delete_backup: {
    group: "backups",
    summary: "Delete one stored backup.",
    input: only({ backup }),
    destructive: true,
  },
  set_backup_schedule: {
    group: "backups",
    summary:
      "Set when a database or a volume is backed up by itself (daily, weekly or by cron) and how many backups are kept.",
    input: only({
      db: db.optional(),
      site: site.optional(),
      volume: volume.optional(),
      settings: BackupSettings.partial(),
    }),
  },
  get_backup_download_link: {
    group: "backups",
    summary: "Show a short-lived address from which a backup's file is downloaded.",
    input: only({ backup }),
    destructive: true,
    secret: true,
  },
  browse_files: {
    group: "backups",
    summary: "List a folder or show one text file of a running site, or of one of its volumes.",
    input: only({
      site,
      path: z.string().min(1).max(1000).optional().describe("Such as /app; default: the root."),
      volume: VolumeName.optional().describe("Default: the container."),
    }),
  },
  list_volumes: {
    group: "backups",
    summary: "List a site's volumes and what they hold.",
    input: only({ site }),
  },
  create_volume: {
    group: "backups",
    summary: "Add a volume to a site, mounted from its next deployment on.",
    input: only({ site, name: VolumeName, path: MountPath }),
  },
  delete_volume: {
    group: "backups",
    summary: "Delete a volume that nothing mounts any more, with its data.",
    input: only({ site, name: VolumeName }),
    destructive: true,
  },

  list_cron_jobs: {
    group: "jobs",
    summary: "List a site's schedules with their next run.",
    input: only({ site }),
  },
  set_cron_job: {
    group: "jobs",
    summary: "Create a schedule of a site, or change the one of this name.",
    input: only({
      site,
      name: LabelName,
      cron: CronExpression,
      command: short,
      enabled: z.boolean().optional(),
    }),
  },
  delete_cron_job: {
    group: "jobs",
    summary: "Delete a schedule of a site; its runs stay in the list of commands.",
    input: only({ site, name: LabelName }),
    destructive: true,
  },
  run_command: {
    group: "jobs",
    summary: "Run a command once in a new container of the site's image, with its environment.",
    input: only({ site, command: z.string().min(1).max(4000), timeoutSeconds: TimeoutSeconds.optional() }),
    destructive: true,
  },
  get_job_output: {
    group: "jobs",
    summary: "Show result and output of a command, or of the last runs of a site.",
    input: only({ run: short.optional().describe("Id of a command."), site: site.optional() }),
  },

  list_packs: {
    group: "billing",
    summary: "List what can be bought: packs for sites and databases, or packages of credits, with prices.",
    input: only({ kind: z.enum(["site", "database", "credits"]).optional() }),
  },
  list_invoices: {
    group: "billing",
    summary: "List the account's invoices.",
    input: only({ status: z.enum(invoiceStatuses).optional(), limit }),
  },
  get_invoice: {
    group: "billing",
    summary: "Show an invoice: lines, due date, what it starts, where it is paid.",
    input: only({ invoice: short.describe("Id of an invoice.") }),
  },
  cancel_invoice: {
    group: "billing",
    summary: "Cancel an unpaid invoice, and delete the site or database that waits for its first payment.",
    input: only({ invoice: short.describe("Id of an invoice.") }),
    destructive: true,
  },
  change_pack: {
    group: "billing",
    summary:
      "Change the pack of a site or database: a larger one is paid first, a smaller one comes with the renewal.",
    input: only({ site: site.optional(), db: db.optional(), packId: short, billingTerm }),
  },
  get_credit_balance: {
    group: "billing",
    summary: "Show the balance of credits and the last transactions.",
    input: only({}),
  },
  create_credit_invoice: {
    group: "billing",
    summary: "Create the invoice of a package of credits.",
    input: only({ packageId: short }),
  },

  get_account: {
    group: "account",
    summary: "Show the account: what is paid and owed, limits in use, when terms end.",
    input: only({}),
  },
  list_api_keys: { group: "account", summary: "List the account's API keys.", input: only({ limit }) },
  revoke_api_key: {
    group: "account",
    summary: "Revoke an API key: it stops working at once.",
    input: only({ key: short.describe("Id of a key.") }),
    destructive: true,
  },
  list_activity: {
    group: "account",
    summary: "List who changed what in the account, newest first.",
    input: only({
      resource: short.optional().describe("Id of a site, database or other resource."),
      since,
      limit,
    }),
  },
} as const satisfies Record<string, ToolSpec>;

export type ToolName = keyof typeof tools;

/** Whether the tool changes nothing, by the verb of its name; what the person must confirm is no mere reading. */
export const readsOnly = (name: ToolName): boolean =>
  !("destructive" in tools[name]) &&
  /^(?:list|get|describe|explain|detect|diagnose|search|browse|run_read)_/.test(name);

export type ToolInput<Name extends ToolName> = z.output<(typeof tools)[Name]["input"]>;
