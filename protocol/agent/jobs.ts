import * as z from "zod";
import { idOf } from "../api/common.ts";
import { wholeCommit } from "../commit.ts";
import type { Id } from "../ids.ts";
import { HostIngressRules } from "../api/ingress.ts";
import { Network } from "../api/public-access.ts";
import { Replicas, VolumeName, Volumes } from "../api/volumes.ts";
import { gitSecrets } from "../git-token.ts";
import { databaseTypes } from "../states.ts";
import { StoredBackup, StoredVolume } from "./backups.ts";
import { StopNotice } from "./stop-notice.ts";
import {
  BuildOptions,
  GitAddress,
  GitBranch,
  ImageReference,
  HealthCheck,
  Lifecycle,
  Port,
  RepositoryPath,
} from "../api/sites.ts";

const SiteId = idOf("site");
const DeploymentId = idOf("deployment");

const Commit = z.string().regex(wholeCommit);

const MadeSource = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("git"),
    address: GitAddress,
    /** null: the repository's default branch. */
    branch: GitBranch.nullable(),
    token: z.string().nullable(),
    /** If omitted, the head of the branch. */
    commit: Commit.optional(),
    /** Fetch Git LFS files or submodules as well. */
    submodules: z.boolean().optional(),
    lfs: z.boolean().optional(),
  }),
  z.object({ type: z.literal("dockerfile"), text: z.string() }),
  z.object({
    type: z.literal("image"),
    reference: ImageReference,
    /** If omitted, the digest that the registry currently has for this name. */
    digest: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/)
      .optional(),
    /** The registry's credentials, or null. */
    login: z.object({ username: z.string(), password: z.string() }).nullable(),
  }),
]);
export type MadeSource = z.infer<typeof MadeSource>;

export const Source = z.discriminatedUnion("type", [
  ...MadeSource.options,
  /**
   * Rollback: reuses the image of one of the job's `kept` deployments; a host without that image builds from
   * `otherwise`.
   */
  z.object({ type: z.literal("kept"), deploymentId: DeploymentId, otherwise: MadeSource.optional() }),
]);
export type Source = z.infer<typeof Source>;

export const EnvEntry = z.object({
  key: z.string(),
  value: z.string(),
  scope: z.enum(["build", "runtime", "both"]),
  secret: z.boolean(),
});
export type EnvEntry = z.infer<typeof EnvEntry>;

/** When names and rules were read, by the control plane's clock: a change of them does not wait for other jobs of the site. */
const ReadAtMs = z.number().int().nonnegative().optional();

/** How a site's container runs: everything a rollout needs besides the image. */
export const RunSpec = z.object({
  siteId: SiteId,
  accountId: idOf("account"),
  /** The host names that the ingress routes to this site, its own address first. */
  hostnames: z.array(z.string()).min(1),
  /** What the ingress does for them. */
  ingress: HostIngressRules.optional(),
  readAtMs: ReadAtMs,
  /** Its own address and its source, as far as known. */
  siteUrl: z.url().optional(),
  commit: z.string().nullish(),
  port: Port,
  startCommand: z.string().nullable(),
  healthCheckPath: z.string().nullable(),
  /** What is omitted is the host's own. */
  healthCheck: HealthCheck.optional(),
  /** How many seconds a new container may take to respond. */
  startTimeoutSeconds: z.number().int().positive(),
  env: z.array(EnvEntry),
  limits: z.object({
    memoryMb: z.number().int().positive(),
    /** Thousandths of a core. */
    cpuMilli: z.number().int().positive(),
    pids: z.number().int().positive(),
    /** How much the volumes may hold when a deployment starts; unlimited if omitted. */
    diskGb: z.number().int().positive().optional(),
  }),
  /** Containers that share the limits. */
  replicas: Replicas.default(1),
  /** What is omitted is the host's own. */
  lifecycle: Lifecycle.optional(),
  volumes: Volumes.default([]),
  /**
   * The names of volumes that this host is known to have. A missing one is an error and must not be created silently.
   */
  heldVolumes: z.array(z.string()).optional(),
});
export type RunSpec = z.infer<typeof RunSpec>;

const DatabaseId = idOf("database");
/** A database's volume, named by the restore that created it. */
export const RestoredVolume = z.string().regex(/^job_[0-9a-z]+$/);

/** The share of its pack's memory that Redis may fill with data. */
export const redisDataShare = 0.75;

/** How a database's container runs, and which logins it has. */
export const DatabaseSpec = z.object({
  databaseId: DatabaseId,
  accountId: idOf("account"),
  type: z.enum(databaseTypes),
  image: ImageReference,
  /** Its host name in the account's network. */
  hostname: z.string(),
  /** Set once a restore has replaced the original volume. */
  volume: RestoredVolume.optional(),
  /** Lower-case letters, digits and `_`. Also the owning role, if the engine has roles. */
  databaseName: z.string().regex(/^[a-z][a-z0-9_]{0,55}$/),
  /** Password of the administrator, which only Berth uses. */
  adminPassword: z.string(),
  /** The complete list of logins. */
  logins: z.array(z.object({ username: z.string(), password: z.string() })).min(1),
  limits: z.object({
    memoryMb: z.number().int().positive(),
    /** Thousandths of a core. */
    cpuMilli: z.number().int().positive(),
    pids: z.number().int().positive(),
    /** The host reports usage above this; unlimited if omitted. */
    diskGb: z.number().int().positive().optional(),
  }),
  /** The public port of the host and the networks that may use it; if omitted, there is no public access. */
  publicAccess: z.object({ port: Port, allow: z.array(Network).min(1) }).optional(),
});
export type DatabaseSpec = z.infer<typeof DatabaseSpec>;

const ImageId = z.string().regex(/^sha256:[0-9a-f]{64}$/);

/** The inputs of a deployment and the resulting image. */
const Made = z.object({
  commit: z.string().nullable(),
  commitMessage: z.string().nullable(),
  /** `sha256:…`: the digest in the registry for a pulled image, the engine's id for a built one. */
  imageDigest: z.string(),
  /** The engine's id on the host. */
  imageId: ImageId,
  /** Equal for equal build inputs; null if nothing was built. */
  buildKey: z.string().nullable(),
});

/** An earlier deployment that was live, whose image the host must keep. */
export const KeptDeployment = Made.extend({
  deploymentId: DeploymentId,
  number: z.number().int().positive(),
});
export type KeptDeployment = z.infer<typeof KeptDeployment>;

/** Job kind → its arguments. A kind without a handler or a result schema does not compile. */
export const jobArgs = {
  "site.deploy": z.object({
    run: RunSpec,
    deploymentId: DeploymentId,
    source: Source,
    rootDir: RepositoryPath.nullable(),
    dockerfilePath: RepositoryPath.nullable(),
    buildCommand: z.string().nullable(),
    /** Also where `release` is omitted: what it runs stays in the image; null: as the Procfile says. */
    releaseCommand: z.string().nullable().optional(),
    /** What is omitted is detected. */
    options: BuildOptions,
    buildTimeoutSeconds: z.number().int().positive(),
    /** Runs once before the version serves; null: as its Procfile says; omitted: none, as for a rollback or a move. */
    release: z
      .object({ command: z.string().nullable(), timeoutSeconds: z.number().int().positive() })
      .optional(),
    /** Build even if no build input has changed. */
    rebuild: z.boolean(),
    /** Newest first. Once this deployment is live, the site's other images are removed. */
    kept: z.array(KeptDeployment),
    /** The site is and stays stopped: the image is built, no container is started. */
    parked: z.boolean().optional(),
  }),
  /** Starts the stopped container, or a new one of the same image if it is gone. */
  "site.start": z.object({ run: RunSpec, deploymentId: DeploymentId }),
  "site.stop": z.object({
    siteId: SiteId,
    hostnames: z.array(z.string()),
    readAtMs: ReadAtMs,
    notice: StopNotice.optional(),
  }),
  /** Same image, new container, zero-downtime swap. */
  "site.restart": z.object({ run: RunSpec, deploymentId: DeploymentId }),
  /** Changes the host names of the site, and what the ingress does for them, beside any other job of the site. */
  "site.route": z.object({
    siteId: SiteId,
    hostnames: z.array(z.string()),
    ingress: HostIngressRules.optional(),
    readAtMs: ReadAtMs,
  }),
  "site.delete": z.object({ siteId: SiteId, accountId: idOf("account"), hostnames: z.array(z.string()) }),
  /** The site belongs to another host now: removes everything that is left of it here. */
  "site.evict": z.object({ siteId: SiteId, accountId: idOf("account") }),
  /** Runs once in its own container and is never repeated, even if the agent restarts. */
  "site.command": z.object({
    run: RunSpec,
    deploymentId: DeploymentId,
    commandId: idOf("command"),
    command: z.string(),
    timeoutSeconds: z.number().int().positive(),
  }),
  /** The first start: after a failure everything is removed, since it holds no data yet. */
  "database.provision": z.object({ database: DatabaseSpec }),
  /** Volumes that the record knows to be replaced by restores (null: the original). Only these are removed. */
  "database.start": z.object({
    database: DatabaseSpec,
    replacedVolumes: z.array(RestoredVolume.nullable()).max(100).optional(),
  }),
  "database.restart": z.object({ database: DatabaseSpec }),
  "database.stop": z.object({ databaseId: DatabaseId, accountId: idOf("account") }),
  /** Sets the logins to exactly those listed. Connections stay open unless their login is removed. */
  "database.rotate": z.object({ database: DatabaseSpec }),
  /** Applies the spec's public access without a restart. */
  "database.expose": z.object({ database: DatabaseSpec, generation: z.number().int().positive() }),
  /** Removes the database with all its data. */
  "database.delete": z.object({ databaseId: DatabaseId, accountId: idOf("account") }),
  /** Dumps, fingerprints and uploads a consistent snapshot. */
  "database.backup": z.object({
    database: DatabaseSpec,
    backupId: idOf("backup"),
    attempt: z.number().int().positive(),
    /** Whether the database is to run afterwards. */
    serving: z.boolean().default(true),
  }),
  /** Restores into a temporary server like `like` and compares the fingerprint. */
  "database.verify": z.object({ like: DatabaseSpec, backup: StoredBackup }),
  /** Restores into a second volume, and switches to it after verification. */
  "database.restore": z.object({
    database: DatabaseSpec,
    backup: StoredBackup,
    /** Whether the database is to serve in the meantime. */
    serving: z.boolean(),
  }),
  /** Archives and uploads a volume's files. What uses the volume stands still while it is read, for some seconds at most. */
  "volume.backup": z.object({
    siteId: SiteId,
    volume: VolumeName,
    backupId: idOf("backup"),
    attempt: z.number().int().positive(),
  }),
  /** Unpacks into a folder of its own and compares. */
  "volume.verify": z.object({ backup: StoredVolume }),
  /** Unpacks beside the volume's files, compares, then exchanges the two. Nothing may use the volume. */
  "volume.restore": z.object({
    siteId: SiteId,
    accountId: idOf("account"),
    volume: VolumeName,
    backup: StoredVolume,
    /** How much the site's pack allows its volumes to hold. */
    diskGb: z.number().int().positive(),
  }),
} as const;
export type JobKind = keyof typeof jobArgs;
type DatabaseJobKind = Extract<JobKind, `database.${string}`>;
type BackupJobKind = "database.backup" | "database.verify" | "database.restore";
export type PlainDatabaseJobKind = Exclude<DatabaseJobKind, BackupJobKind>;

/** Which of an agent's slots a job takes: those of builds and deployments, of short jobs, of commands, or none of them. */
export type Slot = "job" | "short" | "command" | "long";

export type JobTraits<K extends JobKind = never> = {
  /** Whose id the job carries; those of deployments and commands also carry the site's. */
  about: "site" | "deployment" | "command" | "database" | "backup";
  /**
   * `short`: without a build, so that a stop does not wait for other builds. `long`: its duration depends on the amount
   * of data; one at a time per host, in parallel with its other work.
   */
  slot: Slot;
  /** The limit of one attempt on the host, in addition to those of its build, release command, start or command. */
  timeoutMinutes: number;
  /** Starts the site's containers: it needs the site's room and gives them the addresses of its databases. */
  starts?: true;
  /** Runs in the image of the site's current deployment. */
  ofCurrentDeployment?: true;
  /** Removes or checks, so that any host that exists may take it where none is named. */
  needsNoRoom?: true;
  /** Nobody waits for the result: one of these at a time per host. */
  background?: true;
  /** Does not wait for a queued backup of its database. */
  passesBackups?: true;
  /** What must not appear in its log or error. */
  secrets(args: JobArgs<K>): string[];
};

const none = (): string[] => [];
const ofRun = ({ run }: { run: RunSpec }): string[] =>
  run.env.filter(({ secret }) => secret).map(({ value }) => value);
const ofDatabase = ({ database }: { database: DatabaseSpec }): string[] => [
  database.adminPassword,
  ...database.logins.map(({ password }) => password),
];

function ofSource({ source }: { source: Source }): string[] {
  const made = source.type === "kept" ? source.otherwise : source;
  if (made?.type === "git" && made.token !== null) return gitSecrets(made.token);
  return made?.type === "image" && made.login !== null ? [made.login.password] : [];
}

/** Job kind → its traits, from which the queue's conditions are written. */
export const jobTraits: { [K in JobKind]: JobTraits<K> } = {
  "site.deploy": {
    about: "deployment",
    slot: "job",
    timeoutMinutes: 10,
    starts: true,
    secrets: (args) => [...ofRun(args), ...ofSource(args)],
  },
  "site.start": {
    about: "site",
    slot: "short",
    timeoutMinutes: 5,
    starts: true,
    ofCurrentDeployment: true,
    secrets: ofRun,
  },
  "site.stop": { about: "site", slot: "short", timeoutMinutes: 5, secrets: none },
  "site.restart": {
    about: "site",
    slot: "short",
    timeoutMinutes: 5,
    starts: true,
    ofCurrentDeployment: true,
    secrets: ofRun,
  },
  "site.route": { about: "site", slot: "short", timeoutMinutes: 1, secrets: none },
  "site.delete": { about: "site", slot: "short", timeoutMinutes: 5, needsNoRoom: true, secrets: none },
  "site.evict": { about: "site", slot: "short", timeoutMinutes: 5, secrets: none },
  "site.command": {
    about: "command",
    slot: "command",
    timeoutMinutes: 3,
    ofCurrentDeployment: true,
    secrets: ofRun,
  },
  "database.provision": { about: "database", slot: "job", timeoutMinutes: 10, secrets: ofDatabase },
  "database.start": {
    about: "database",
    slot: "short",
    timeoutMinutes: 10,
    passesBackups: true,
    secrets: ofDatabase,
  },
  "database.restart": {
    about: "database",
    slot: "short",
    timeoutMinutes: 10,
    passesBackups: true,
    secrets: ofDatabase,
  },
  "database.stop": {
    about: "database",
    slot: "short",
    timeoutMinutes: 5,
    passesBackups: true,
    secrets: none,
  },
  "database.rotate": {
    about: "database",
    slot: "short",
    timeoutMinutes: 5,
    passesBackups: true,
    secrets: ofDatabase,
  },
  "database.expose": {
    about: "database",
    slot: "short",
    timeoutMinutes: 5,
    passesBackups: true,
    secrets: ofDatabase,
  },
  "database.delete": {
    about: "database",
    slot: "short",
    timeoutMinutes: 5,
    needsNoRoom: true,
    secrets: none,
  },
  "database.backup": {
    about: "backup",
    slot: "long",
    timeoutMinutes: 120,
    background: true,
    secrets: ofDatabase,
  },
  "database.verify": {
    about: "backup",
    slot: "long",
    timeoutMinutes: 120,
    background: true,
    needsNoRoom: true,
    secrets: ({ like }) => [like.adminPassword],
  },
  "database.restore": { about: "backup", slot: "long", timeoutMinutes: 180, secrets: ofDatabase },
  "volume.backup": { about: "backup", slot: "long", timeoutMinutes: 120, background: true, secrets: none },
  "volume.verify": {
    about: "backup",
    slot: "long",
    timeoutMinutes: 120,
    background: true,
    needsNoRoom: true,
    secrets: none,
  },
  "volume.restore": { about: "backup", slot: "long", timeoutMinutes: 180, secrets: none },
};

/** What must not appear in the job's log or error. */
export const secretsOf = <K extends JobKind>({ kind, args }: Job<K>): string[] =>
  (jobTraits[kind] as JobTraits<K>).secrets(args);
export const jobKinds = Object.keys(jobArgs) as [JobKind, ...JobKind[]];
export type JobArgs<K extends JobKind> = z.infer<(typeof jobArgs)[K]>;

export const Durations = z.object({
  clone: z.number().int().nonnegative().nullable(),
  build: z.number().int().nonnegative().nullable(),
  start: z.number().int().nonnegative().nullable(),
  swap: z.number().int().nonnegative().nullable(),
});
/** Milliseconds per phase; null for an unfinished phase. */
export type Durations = z.infer<typeof Durations>;

/** A host reports only what any other host can be sent: the site may be built again or move there. */
const Deployed = Made.extend({
  commit: Commit.nullable(),
  commitMessage: z.string().max(1000).nullable(),
  imageDigest: ImageId,
  buildKey: z.string().max(200).nullable(),
  durations: Durations,
  /** It was not started, as requested. Agents without this field start it. */
  parked: z.boolean().optional(),
});
const nothing = z.object({});
/** `damage`: a defect of the backup itself. If a host cannot tell, the job fails instead. */
const Judged = z.object({ damage: z.string().max(2000).nullable() });
/** As the server reports it. */
const DatabaseUp = z.object({ version: z.string().min(1).max(50) });
const Exposed = z.object({
  /** The generation in the job. */
  generation: z.number().int().positive(),
  /** The host's public address. */
  address: z.string().min(1).max(253),
  /** The CA certificate in PEM format. */
  certificateAuthority: z.string().min(1).max(10_000),
  /** When the server's certificate expires; null: the server does not run. */
  endsAt: z.iso.datetime().nullable(),
});
export const jobResults = {
  "site.deploy": Deployed,
  "site.start": nothing,
  "site.stop": nothing,
  "site.restart": nothing,
  "site.route": nothing,
  "site.delete": nothing,
  "site.evict": nothing,
  /** `error` null: success. `exitCode` null: it was stopped. */
  "site.command": z.object({ exitCode: z.number().int().nullable(), error: z.string().max(2000).nullable() }),
  "database.provision": DatabaseUp,
  "database.start": DatabaseUp,
  "database.restart": DatabaseUp,
  "database.stop": nothing,
  "database.rotate": nothing,
  "database.expose": Exposed,
  "database.delete": nothing,
  "database.backup": nothing,
  "database.verify": Judged,
  "database.restore": z.union([
    DatabaseUp.extend({ damage: z.null(), volume: RestoredVolume }),
    Judged.extend({ damage: z.string().max(2000) }),
  ]),
  /** `consistent`: nothing wrote to the volume while it was read. */
  "volume.backup": z.object({ consistent: z.boolean() }),
  "volume.verify": Judged,
  "volume.restore": Judged,
} as const satisfies Record<JobKind, z.ZodType>;
export type JobResult<K extends JobKind> = z.infer<(typeof jobResults)[K]>;

/** A job on the wire, with arguments by kind. */
export type Job<K extends JobKind = JobKind> = { [P in K]: { id: Id<"job">; kind: P; args: JobArgs<P> } }[K];
