import * as z from "zod";
import {
  billingTermsMonths,
  databaseStatuses,
  databaseTypes,
  invoiceStatuses,
  siteStatuses,
} from "../states.ts";
import { Backup, BackupSettings } from "./backups.ts";
import { Command, TimeoutSeconds } from "./commands.ts";
import { CreditPackage } from "./credits.ts";
import { Database, DatabaseActionAccepted } from "./databases.ts";
import { Deployment, DeploymentComparison, LogLine } from "./deployments.ts";
import { DiskUse } from "./disk.ts";
import { DatabaseInsight, DatabaseTable } from "./insight.ts";
import { Invoice } from "./invoices.ts";
import { operations, type OperationId } from "./operations.ts";
import { Pack, PackChanged } from "./packs.ts";
import { BasicAuth, Redirect } from "./ingress.ts";
import { Network } from "./public-access.ts";
import { text, Timestamp } from "./common.ts";
import { RequestStats, RequestWindow } from "./requests.ts";
import { LogFound } from "./running.ts";
import { CronExpression, Schedule } from "./schedules.ts";
import { Domain, DomainName } from "./domains.ts";
import { SourceInspect } from "./sources.ts";
import {
  command,
  DeployedSettings,
  EnvChanged,
  EnvKey,
  EnvVariable,
  HealthCheck,
  HealthCheckPath,
  Lifecycle,
  LabelName,
  Site,
  SiteCreate,
  SiteInFull,
  SiteActionAccepted,
} from "./sites.ts";
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
  /** What it answers, as its caller gets it: without what is for the person's screen alone. */
  output: z.ZodType;
  /** Deletes, stops, breaks clients or overwrites: runs only after the person has confirmed exactly this. */
  destructive?: true;
  /** Its answer holds a secret, which is shown to the person and not to the model. */
  secret?: true;
  /** Each call makes another one: a model that repeats it within one message is told what the first one made. */
  makesAnother?: true;
  /** Its answer holds words of visitors and other strangers: what a model that has read them changes or sends waits for the person. */
  quotes?: true;
  /** Asks a server that its arguments name, which so learns what they say. */
  reachesOut?: true;
};

const short = text.min(1).max(200);
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
const payAt = z.string().describe("Where the person pays.");
const named = short.optional().describe("Only those whose name contains this.");
const cursor = short.optional().describe("The nextCursor of the page before.");
const nextCursor = z.string().nullable().describe("Of the next page; null: there are no more.");
/** The secret itself is on the person's screen. */
const Shown = z.object({ shown: z.string() });
const Line = LogLine.pick({ at: true, stream: true, text: true });
const Bill = Invoice.omit({ token: true }).extend({ payAt: payAt.nullable() });
const SiteShown = SiteInFull.omit({ envVariables: true }).extend({
  variables: z.array(z.string()).describe("Their keys."),
});
const PackShown = Pack.omit({ terms: true }).extend({
  termsCents: z.record(z.string(), z.number().int()).describe("For a whole billing term, by its months."),
});
const Costs = z.object({
  pack: z.string(),
  months: z.number().int(),
  amountCents: z.number().int().describe("For all of these months."),
  currency: z.string(),
});
const Applied = Site.pick({
  healthCheckPath: true,
  healthCheck: true,
  replicas: true,
  lifecycle: true,
}).extend({
  applied: z.enum(["now", "by the next deployment"]),
});
/** What the operation answers that the tool is made of. */
const answer = <Id extends OperationId>(id: Id): (typeof operations)[Id]["answers"][0]["schema"] =>
  operations[id].answers[0].schema;
const [{ shape: ofGit }, { shape: ofDockerfile }, { shape: ofImage }] = SiteCreate.options;
const only = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape);

export const tools = {
  list_sites: {
    group: "sites",
    summary: "List the account's sites with status.",
    input: only({ status: z.enum(siteStatuses).optional(), name: named, limit, cursor }),
    output: z.object({
      sites: z.array(Site.pick({ id: true, name: true, status: true, url: true })),
      nextCursor,
    }),
  },
  get_site: {
    group: "sites",
    summary:
      "Show a site: settings, current and latest deployment, domains, what it costs, what is known to be wrong.",
    input: only({ site }),
    output: SiteShown.extend({
      problem: z.string().nullable().describe("Why it is not well, by the record: nothing is probed."),
      costs: Costs.nullable().describe("null: its pack is no longer sold."),
    }),
  },
  create_site: {
    group: "sites",
    summary: "Create a site and its unpaid invoice. It is deployed once the invoice is paid.",
    input: only({
      name: ofGit.name,
      deployType: z.enum(["github", "dockerfile", "image"]),
      githubUrl: ofGit.githubUrl
        .optional()
        .describe("Such as github.com/owner/repository; for deployType github."),
      image: ofImage.image.optional().describe("For deployType image."),
      dockerfile: ofDockerfile.dockerfile.optional().describe("For deployType dockerfile."),
      branch: ofGit.branch,
      port: ofGit.port.unwrap(),
      buildCommand: ofGit.buildCommand,
      startCommand: ofGit.startCommand,
      packId,
      billingTerm,
    }),
    output: answer("createSite").extend({ payAt }),
  },
  detect_framework: {
    group: "sites",
    summary:
      "Read a Git repository before a site is made of it: language, framework, commands, port, variables, databases, and why it would not work.",
    input: SourceInspect.omit({ gitToken: true }),
    output: answer("inspectSource"),
    quotes: true,
    reachesOut: true,
  },
  update_site_settings: {
    group: "sites",
    summary:
      "Change source, branch, commands, port and other settings of a site, from its next deployment on.",
    input: only({ site, settings: DeployedSettings }),
    output: SiteShown,
  },
  diagnose_site: {
    group: "sites",
    summary:
      "Find out what is wrong with a site, in order: invoice, host, databases, deployment, container, port, health, route, DNS, certificate, disk, recent changes; with fixes.",
    input: only({ site }),
    output: answer("diagnoseSite"),
    quotes: true,
  },
  start_site: {
    group: "sites",
    summary: "Start a stopped site.",
    input: only({ site }),
    output: SiteActionAccepted,
  },
  stop_site: {
    group: "sites",
    summary: "Stop a site: visitors are answered 503.",
    input: only({ site }),
    output: SiteActionAccepted,
    destructive: true,
  },
  restart_site: {
    group: "sites",
    summary: "Restart a site with its current version and newest environment, without downtime.",
    input: only({ site }),
    output: SiteActionAccepted,
  },
  set_maintenance_mode: {
    group: "sites",
    summary: "Show visitors of a site a maintenance page (503) while it runs on, or end that.",
    input: only({
      site,
      on: z.boolean(),
      message: text.max(2000).optional().describe("What the page says."),
    }),
    output: Site.shape.ingress,
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
    output: answer("deleteSite"),
    destructive: true,
  },
  clone_site: {
    group: "sites",
    summary: "Create another site with the settings of this one and its variables, secret values excepted.",
    input: only({ site, name: short, packId, billingTerm }),
    output: answer("cloneSite").extend({ payAt }),
  },

  deploy_site: {
    group: "deployments",
    summary: "Deploy the newest commit of a site's branch.",
    input: only({
      site,
      ref: short.optional().describe("A branch, a tag or a whole commit id, instead of the site's branch."),
      rebuild: z.boolean().optional().describe("Build even where nothing has changed."),
    }),
    output: SiteActionAccepted,
  },
  list_deployments: {
    group: "deployments",
    summary: "List a site's deployments, newest first, with result and cause.",
    input: only({ site, limit }),
    output: z.array(
      Deployment.pick({
        id: true,
        number: true,
        status: true,
        trigger: true,
        commit: true,
        commitMessage: true,
        error: true,
        createdAt: true,
      }),
    ),
    quotes: true,
  },
  get_deployment: {
    group: "deployments",
    summary: "Show one deployment: steps, times, commit, error.",
    input: only({ deployment }),
    output: answer("getDeployment"),
    quotes: true,
  },
  get_build_logs: {
    group: "deployments",
    summary: "Show the last lines of a deployment's log.",
    input: only({ deployment, tail, search: short.optional().describe("Only lines that contain this.") }),
    output: z.array(z.string()),
    quotes: true,
  },
  explain_failed_deployment: {
    group: "deployments",
    summary:
      "Explain why a deployment failed (by default a site's last failed one): step, exit code, memory, probe, last lines, what changed, fixes.",
    input: only({ site: site.optional(), deployment: deployment.optional() }),
    output: z.union([
      answer("explainDeployment").extend({
        since: Deployment.pick({ status: true, number: true })
          .nullable()
          .optional()
          .describe("The site's latest deployment, if it is a later one."),
      }),
      z.object({ failed: z.literal(false), note: z.string() }),
    ]),
    quotes: true,
  },
  cancel_deployment: {
    group: "deployments",
    summary: "End a deployment that waits or runs; the version in service stays.",
    input: only({ deployment }),
    output: answer("cancelDeployment"),
  },
  list_rollback_targets: {
    group: "deployments",
    summary:
      "List the deployments that a site can be rolled back to: age, size of the image, and how the environment has changed since.",
    input: only({ site }),
    output: z.array(
      Deployment.pick({
        id: true,
        number: true,
        commit: true,
        commitMessage: true,
        envVersion: true,
        finishedAt: true,
      }).extend({
        ageHours: z.number().int().nullable(),
        sizeMb: z.number().nullable().describe("null: its host does not say."),
        environment: DeploymentComparison.shape.environment.describe(
          "How it changed from the earlier of this and the version in service to the later.",
        ),
      }),
    ),
    quotes: true,
  },
  rollback_site: {
    group: "deployments",
    summary: "Roll a site back to an earlier deployment: its image and environment.",
    input: only({
      site,
      deployment: deployment.optional(),
      withEnv: z.boolean().optional().describe("false: with the newest environment instead of its own."),
    }),
    output: answer("rollbackSite"),
    destructive: true,
  },
  get_deploy_webhook: {
    group: "deployments",
    summary: "Show the address that deploys the site when something posts to it.",
    input: only({ site }),
    output: Shown,
    secret: true,
  },
  rotate_deploy_webhook: {
    group: "deployments",
    summary: "Give the site a new deploy webhook; the old address stops working.",
    input: only({ site }),
    output: Shown,
    destructive: true,
    secret: true,
  },

  set_health_check: {
    group: "runtime",
    summary:
      "Set what must succeed before a new version takes over, and is checked from then on: a path that answers (null: any answer), or a port that takes connections. The running version is restarted with it.",
    input: only({
      site,
      path: HealthCheckPath.nullable().optional().describe("Default: unchanged."),
      check: HealthCheck.optional().describe("Replaces kind, interval, timeout and failures."),
    }),
    output: Applied,
  },
  set_lifecycle_policy: {
    group: "runtime",
    summary:
      "Set what happens when a site's containers exit (restart policy), are replaced (drain) or stopped (stop timeout); the running version is restarted with it.",
    input: only({ site, policy: Lifecycle }),
    output: Applied,
  },
  run_health_check: {
    group: "runtime",
    summary: "Probe a site's containers now: answers, ports, exits, memory, and whether visitors reach them.",
    input: only({ site }),
    output: answer("getSiteHealth"),
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
    output: answer("probeSite"),
  },
  scale_site: {
    group: "runtime",
    summary:
      "Set the number of replicas of a site; the running version is restarted with them, without downtime.",
    input: only({ site, replicas: z.number().int().min(1).max(10) }),
    output: Applied,
  },

  get_site_logs: {
    group: "logs",
    summary: "Show the last lines that a running site wrote.",
    input: only({ site, tail, since, search: short.optional().describe("Only lines that contain this.") }),
    output: z.array(Line),
    quotes: true,
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
    output: z.object({ lines: z.array(Line), complete: LogFound.shape.complete }),
    quotes: true,
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
    output: answer("getSiteRequests").shape.data,
    quotes: true,
  },
  get_request_stats: {
    group: "logs",
    summary:
      "Show how many requests a site had, with which statuses and how fast it answered, and the most frequent paths, referrers and programs.",
    input: only({ site, window: RequestWindow.optional() }),
    output: RequestStats.omit({ series: true }).extend({
      notable: RequestStats.shape.series.describe(
        "The ten intervals with the most failures, or the most requests.",
      ),
    }),
    quotes: true,
  },
  get_site_metrics: {
    group: "logs",
    summary: "Show CPU, memory, network and disk of a running site by the minute.",
    input: only({ site, minutes: z.number().int().min(1).max(1440).optional() }),
    output: answer("getSiteMetrics").shape.data,
  },
  get_disk_usage: {
    group: "logs",
    summary:
      "Show what a site or database takes of its disk, by what it wrote, volumes, images, logs and build cache; without either, all of the account.",
    input: only({ site: site.optional(), db: db.optional() }),
    output: z.union([
      DiskUse,
      z.object({
        resources: z.array(
          DiskUse.omit({ volumes: true, images: true }).extend({
            volumesMb: z.number(),
            imagesMb: z.number(),
          }),
        ),
        truncated: answer("getAccountDisk").shape.truncated,
      }),
    ]),
  },
  list_container_events: {
    group: "logs",
    summary: "List starts, stops, exits and ends for lack of memory of a site or database.",
    input: only({ site: site.optional(), db: db.optional(), since }),
    output: answer("getSiteEvents").shape.data,
    quotes: true,
  },
  list_unhealthy_resources: {
    group: "logs",
    summary: "List every site and database of the account that is not well, with the reason.",
    input: only({}),
    output: answer("listUnhealthy"),
  },

  list_env_vars: {
    group: "environment",
    summary: "List a site's environment variables; values of secrets are not shown.",
    input: only({ site }),
    output: Site.shape.envVariables,
  },
  set_env_vars: {
    group: "environment",
    summary: "Add or change environment variables of a site; they count from the next restart or deployment.",
    input: only({
      site,
      entries: z
        .array(
          only({
            key: EnvKey,
            value: text.max(32_768),
            secret: z.boolean().optional(),
            scope: EnvVariable.shape.scope.unwrap().optional(),
          }),
        )
        .min(1)
        .max(50),
      apply: z.boolean().optional().describe("Restart the running site with them now, without downtime."),
    }),
    output: EnvChanged,
  },
  delete_env_vars: {
    group: "environment",
    summary: "Remove environment variables of a site.",
    input: only({ site, keys: z.array(EnvKey).min(1).max(50) }),
    output: EnvChanged,
    destructive: true,
  },
  list_env_history: {
    group: "environment",
    summary: "List the versions of a site's environment: who changed which variables when.",
    input: only({ site }),
    output: answer("listEnvVersions").shape.data,
  },
  restore_env_version: {
    group: "environment",
    summary: "Bring back an earlier version of a site's environment.",
    input: only({ site, version: z.number().int().min(1).describe("As list_env_history shows it.") }),
    output: answer("restoreEnvVersion"),
    destructive: true,
  },
  generate_secret: {
    group: "environment",
    summary: "Set a secret variable to a random value that nobody sees.",
    input: only({ site, key: EnvKey, length: z.number().int().min(16).max(128).optional() }),
    output: z.object({ key: z.string(), set: z.literal(true), note: z.string() }),
  },

  list_domains: {
    group: "domains",
    summary:
      "List a site's own domain names with their state, what is wrong with each, and the records to set.",
    input: only({ site }),
    output: answer("listDomains").shape.data,
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
    output: answer("createDomain"),
  },
  verify_domain: {
    group: "domains",
    summary:
      "Look at a domain name now: proof of ownership, addresses, CAA records and certificate; it is put in service if all is right.",
    input: only({ site, domain: DomainName }),
    output: answer("verifyDomain"),
  },
  remove_domain: {
    group: "domains",
    summary: "Take a domain name away from a site.",
    input: only({ site, domain: DomainName }),
    output: answer("deleteDomain"),
    destructive: true,
  },
  set_primary_domain: {
    group: "domains",
    summary: "Redirect visitors of a site's other names to this one; null: each name is served by itself.",
    input: only({ site, domain: DomainName.nullable() }),
    output: Site.shape.ingress,
  },
  set_redirect_rules: {
    group: "domains",
    summary: "Replace a site's redirects, of which the first that matches applies; an empty list: none.",
    input: only({ site, rules: z.array(Redirect).max(200) }),
    output: Site.shape.ingress,
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
    output: Site.shape.ingress,
  },
  get_certificate: {
    group: "domains",
    summary: "Show a domain's certificate: issuer, validity, and why it was last not issued or renewed.",
    input: only({ site, domain: DomainName }),
    output: Domain.pick({ domain: true, status: true, problems: true, certificate: true, checkedAt: true }),
  },
  renew_certificate: {
    group: "domains",
    summary: "Obtain a domain's certificate now, or renew one that is due.",
    input: only({ site, domain: DomainName }),
    output: Domain.pick({ domain: true, status: true, problems: true, certificate: true }),
  },

  list_databases: {
    group: "databases",
    summary: "List the account's databases with status.",
    input: only({ status: z.enum(databaseStatuses).optional(), name: named, limit, cursor }),
    output: z.object({
      databases: z.array(Database.pick({ id: true, name: true, type: true, status: true })),
      nextCursor,
    }),
  },
  get_database: {
    group: "databases",
    summary: "Show a database: version, status, size, linked sites, backup settings.",
    input: only({ db }),
    output: answer("getDatabase"),
  },
  create_database: {
    group: "databases",
    summary: "Create a database and its unpaid invoice. It starts once the invoice is paid.",
    input: only({ name: short, type: z.enum(databaseTypes), packId, billingTerm }),
    output: answer("createDatabase").extend({ payAt }),
  },
  start_database: {
    group: "databases",
    summary: "Start a stopped database.",
    input: only({ db }),
    output: DatabaseActionAccepted,
  },
  stop_database: {
    group: "databases",
    summary: "Stop a database: linked sites cannot reach it.",
    input: only({ db }),
    output: DatabaseActionAccepted,
    destructive: true,
  },
  restart_database: {
    group: "databases",
    summary: "Restart a database: open connections are closed.",
    input: only({ db }),
    output: DatabaseActionAccepted,
    destructive: true,
  },
  delete_database: {
    group: "databases",
    summary: "Delete a database with its data; a last backup is made and kept for 30 days.",
    input: only({ db, skipFinalBackup: z.boolean().optional().describe("Make no last backup.") }),
    output: answer("deleteDatabase"),
    destructive: true,
  },
  get_connection_string: {
    group: "databases",
    summary: "Show the addresses of a database with its password.",
    input: only({ db }),
    output: Shown,
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
    output: z.union([answer("linkDatabase"), answer("unlinkDatabase")]),
    // Where it is taken away.
    destructive: true,
  },
  rotate_database_password: {
    group: "databases",
    summary: "Give a database a new password; linked sites are restarted with it.",
    input: only({ db }),
    output: answer("rotateDatabase"),
    destructive: true,
  },
  describe_schema: {
    group: "databases",
    summary: "Show tables, columns and indexes of a database, or the kinds of keys of a Redis one.",
    input: only({ db, filter: short.optional().describe("Only tables whose name contains this.") }),
    output: z.object({
      tables: z.array(
        z.object({
          name: z.string().describe("With its schema."),
          rowsEstimate: DatabaseTable.shape.rowsEstimate,
          columns: z.array(z.string()).describe("Name and type."),
          primaryKey: DatabaseTable.shape.primaryKey,
          indexes: z.array(z.string()).describe("Name and columns."),
        }),
      ),
      keyspaces: answer("getDatabaseSchema").shape.keyspaces,
      truncated: answer("getDatabaseSchema").shape.truncated,
    }),
    quotes: true,
  },
  run_read_query: {
    group: "databases",
    summary: "Run one statement that can change nothing, and show its rows.",
    input: only({ db, query: text.trim().min(1).max(10_000), limit }),
    output: answer("queryDatabase"),
    quotes: true,
  },
  run_write_query: {
    group: "databases",
    summary: "Run one statement that may change data. The person sees first how many rows it would change.",
    input: only({ db, query: text.trim().min(1).max(10_000) }),
    output: answer("queryDatabase"),
    destructive: true,
    quotes: true,
  },
  list_active_queries: {
    group: "databases",
    summary:
      "List what a database is working on now, longest first: what each waits for, and whose locks block it.",
    input: only({ db }),
    output: DatabaseInsight.shape.activeQueries,
    quotes: true,
  },
  kill_query: {
    group: "databases",
    summary: "End one session of a database, with what it runs and the locks that it holds.",
    input: only({ db, query: short.describe("Id of a session, as list_active_queries shows it.") }),
    output: answer("endDatabaseSession"),
    destructive: true,
  },
  list_slow_queries: {
    group: "databases",
    summary: "List the statements that took a database the most time.",
    input: only({ db, limit }),
    output: DatabaseInsight.shape.slowQueries,
    quotes: true,
  },
  get_database_metrics: {
    group: "databases",
    summary: "Show CPU, memory, disk and network of a database, its size and its connections.",
    input: only({ db, minutes: z.number().int().min(1).max(1440).optional() }),
    output: DatabaseInsight.pick({ sizeMb: true, connections: true, cacheHitRatio: true }).extend({
      minutes: answer("getDatabaseMetrics").shape.data,
    }),
  },
  get_database_logs: {
    group: "databases",
    summary: "Show the last lines that a database's server wrote.",
    input: only({ db, tail, since, search: short.optional().describe("Only lines that contain this.") }),
    output: z.array(Line.omit({ stream: true })),
    quotes: true,
  },

  create_backup: {
    group: "backups",
    summary: "Back up a database, or a volume of a site, now.",
    input: only({ db: db.optional(), site: site.optional(), volume: volume.optional() }),
    output: Backup,
    makesAnother: true,
  },
  list_backups: {
    group: "backups",
    summary:
      "List backups with time, size and what they proved: of a database, of a site's volumes, of one of them, or all.",
    input: only({ db: db.optional(), site: site.optional(), volume: volume.optional(), limit }),
    output: z.array(Backup),
  },
  verify_backup: {
    group: "backups",
    summary: "Restore a backup into a throw-away server or folder and compare what it holds.",
    input: only({ backup }),
    output: answer("verifyBackup"),
  },
  restore_backup: {
    group: "backups",
    summary:
      "Replace the data of a database, or of a volume of a site that is stopped, by a backup; what is there is backed up first, if it can be. A volume of a new name is created.",
    input: only({ db: db.optional(), site: site.optional(), volume: volume.optional(), backup }),
    output: z.union([answer("restoreDatabase"), answer("restoreVolume")]),
    destructive: true,
  },
  delete_backup: {
    group: "backups",
    summary: "Delete one stored backup.",
    input: only({ backup }),
    output: answer("deleteBackup"),
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
    output: z.union([Database, answer("changeVolume")]),
    // Where it deletes some of those that are there.
    destructive: true,
  },
  get_backup_download_link: {
    group: "backups",
    summary: "Show a short-lived address from which a backup's file is downloaded.",
    input: only({ backup }),
    output: Shown.extend({ expiresAt: Timestamp }),
    destructive: true,
    secret: true,
  },
  browse_files: {
    group: "backups",
    summary: "List a folder or show one text file of a running site, or of one of its volumes.",
    input: only({
      site,
      path: text.min(1).max(1000).optional().describe("Such as /app; default: the root."),
      volume: VolumeName.optional().describe("Default: the container."),
    }),
    output: answer("browseFiles"),
    quotes: true,
  },
  list_volumes: {
    group: "backups",
    summary: "List a site's volumes and what they hold.",
    input: only({ site }),
    output: answer("listVolumes"),
  },
  create_volume: {
    group: "backups",
    summary: "Add a volume to a site, mounted from its next deployment on.",
    input: only({ site, name: VolumeName, path: MountPath }),
    output: Site.shape.volumes,
  },
  delete_volume: {
    group: "backups",
    summary: "Delete a volume that nothing mounts any more, with its data.",
    input: only({ site, name: VolumeName }),
    output: answer("removeVolume"),
    destructive: true,
  },

  list_cron_jobs: {
    group: "jobs",
    summary: "List a site's schedules with their next run and how the last one ended.",
    input: only({ site }),
    output: z.array(
      Schedule.extend({
        lastRun: Command.pick({
          id: true,
          status: true,
          exitCode: true,
          error: true,
          createdAt: true,
          finishedAt: true,
        }).nullable(),
      }),
    ),
  },
  set_cron_job: {
    group: "jobs",
    summary: "Create a schedule of a site, or change the one of this name.",
    input: only({
      site,
      name: LabelName,
      cron: CronExpression,
      command,
      enabled: z.boolean().optional(),
    }),
    output: Schedule,
  },
  delete_cron_job: {
    group: "jobs",
    summary: "Delete a schedule of a site; its runs stay in the list of commands.",
    input: only({ site, name: LabelName }),
    output: answer("deleteSchedule"),
    destructive: true,
  },
  run_command: {
    group: "jobs",
    summary: "Run a command once in a new container of the site's image, with its environment.",
    input: only({ site, command, timeoutSeconds: TimeoutSeconds.optional() }),
    output: answer("runCommand"),
    destructive: true,
  },
  get_job_output: {
    group: "jobs",
    summary: "Show result and output of a command, or of the last runs of a site.",
    input: only({ run: short.optional().describe("Id of a command."), site: site.optional() }),
    output: z.union([z.object({ command: Command, output: z.array(z.string()) }), z.array(Command)]),
    quotes: true,
  },

  list_packs: {
    group: "billing",
    summary: "List what can be bought: packs for sites and databases and packages of credits, with prices.",
    input: only({ kind: z.enum(["site", "database", "credits"]).optional() }),
    output: z.array(z.union([PackShown, CreditPackage])),
  },
  list_invoices: {
    group: "billing",
    summary: "List the account's invoices.",
    input: only({ status: z.enum(invoiceStatuses).optional(), limit }),
    output: z.array(Bill),
  },
  get_invoice: {
    group: "billing",
    summary: "Show an invoice: lines, due date, what it starts, where it is paid.",
    input: only({ invoice: short.describe("Id of an invoice.") }),
    output: Bill,
  },
  cancel_invoice: {
    group: "billing",
    summary: "Cancel an unpaid invoice, and delete the site or database that waits for its first payment.",
    input: only({ invoice: short.describe("Id of an invoice.") }),
    output: Invoice.omit({ token: true }),
    destructive: true,
  },
  change_pack: {
    group: "billing",
    summary:
      "Change the pack of a site or database: a larger one is paid first, a smaller one comes with the renewal, as does any while a renewal is open.",
    input: only({ site: site.optional(), db: db.optional(), packId: short, billingTerm }),
    output: PackChanged.extend({ payAt: payAt.nullable() }),
  },
  get_credit_balance: {
    group: "billing",
    summary: "Show the balance of credits and the last transactions.",
    input: only({}),
    output: answer("getCredits"),
  },
  create_credit_invoice: {
    group: "billing",
    summary: "Create the invoice of a package of credits.",
    input: only({ packageId: short }),
    output: answer("purchaseCredits").extend({ payAt }),
    makesAnother: true,
  },

  get_account: {
    group: "account",
    summary: "Show the account: what is paid and owed, limits in use, when terms end.",
    input: only({}),
    output: answer("getAccount"),
  },
  list_api_keys: {
    group: "account",
    summary: "List the account's API keys.",
    input: only({ limit }),
    output: answer("listKeys").shape.data,
  },
  revoke_api_key: {
    group: "account",
    summary: "Revoke an API key: it stops working at once.",
    input: only({ key: short.describe("Id of a key.") }),
    output: answer("revokeKey"),
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
    output: answer("listActivity").shape.data,
  },
} as const satisfies Record<string, ToolSpec>;

export type ToolName = keyof typeof tools;

/** Whether the tool changes nothing, by the verb of its name; what the person must confirm is no mere reading. */
export const readsOnly = (name: ToolName): boolean =>
  !("destructive" in tools[name]) &&
  /^(?:list|get|describe|explain|detect|diagnose|search|browse|probe|run_read|run_health)_/.test(name);

export type ToolInput<Name extends ToolName> = z.output<(typeof tools)[Name]["input"]>;
export type ToolOutput<Name extends ToolName> = z.input<(typeof tools)[Name]["output"]>;
