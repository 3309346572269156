import * as z from "zod";
import { idOf } from "../api/common.ts";
import type { Id } from "../ids.ts";
import { Network } from "../api/public-access.ts";
import { Replicas, Volumes } from "../api/volumes.ts";
import { databaseTypes } from "../states.ts";
import { StoredBackup } from "./backups.ts";
import { GitAddress, GitBranch, ImageReference, Port, RepositoryPath } from "../api/sites.ts";

const SiteId = idOf("site");
const DeploymentId = idOf("deployment");

const MadeSource = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("git"),
    address: GitAddress,
    /** null: the repository's default branch. */
    branch: GitBranch.nullable(),
    token: z.string().nullable(),
    /** Left out: the newest of the branch. */
    commit: z
      .string()
      .regex(/^[0-9a-f]{40}$/)
      .optional(),
    /** Fetch these as well. */
    submodules: z.boolean().optional(),
    lfs: z.boolean().optional(),
  }),
  z.object({ type: z.literal("dockerfile"), text: z.string() }),
  z.object({
    type: z.literal("image"),
    reference: ImageReference,
    /** Left out: what the registry has by this name now. */
    digest: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/)
      .optional(),
    /** What the registry asks for, or null. */
    login: z.object({ username: z.string(), password: z.string() }).nullable(),
  }),
]);
export type MadeSource = z.infer<typeof MadeSource>;

export const Source = z.discriminatedUnion("type", [
  ...MadeSource.options,
  /** Rollback: the image of one of the job's `kept` deployments as it is; `otherwise` is what that was made of, for a host without it. */
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

/** How a site's container runs: all a release needs once there is an image. */
export const RunSpec = z.object({
  siteId: SiteId,
  accountId: idOf("account"),
  /** Names the ingress answers for this site. The first is the site's own address. */
  hostnames: z.array(z.string()).min(1),
  /** Its own address, and what it was built from, where that is known already. */
  siteUrl: z.url().optional(),
  commit: z.string().nullish(),
  port: Port,
  startCommand: z.string().nullable(),
  healthCheckPath: z.string().nullable(),
  /** Seconds a new container may take until it answers. */
  startTimeoutSeconds: z.number().int().positive(),
  env: z.array(EnvEntry),
  limits: z.object({
    memoryMb: z.number().int().positive(),
    /** Thousandths of a core. */
    cpuMilli: z.number().int().positive(),
    pids: z.number().int().positive(),
    /** What the volumes may hold when a deployment begins; left out: any amount. */
    diskGb: z.number().int().positive().optional(),
  }),
  /** Containers that share the limits. */
  replicas: Replicas.default(1),
  volumes: Volumes.default([]),
  /** Of those, by name, what this host has had for the site: none of them is made anew in silence. */
  heldVolumes: z.array(z.string()).optional(),
});
export type RunSpec = z.infer<typeof RunSpec>;

const DatabaseId = idOf("database");
/** A database's volume, by the restore that made it. */
export const RestoredVolume = z.string().regex(/^job_[0-9a-z]+$/);

/** How a database's container runs, and who may sign in to it. */
export const DatabaseSpec = z.object({
  databaseId: DatabaseId,
  accountId: idOf("account"),
  type: z.enum(databaseTypes),
  image: ImageReference,
  /** Its address inside the account's network. */
  hostname: z.string(),
  /** Set once a restore has given it another volume than its first. */
  volume: RestoredVolume.optional(),
  /** Lower-case letters, digits and `_`. Also the role that owns it, where the engine knows roles. */
  databaseName: z.string().regex(/^[a-z][a-z0-9_]{0,55}$/),
  /** Of the user that Berth keeps to itself. */
  adminPassword: z.string(),
  /** These may sign in, and no others. */
  logins: z.array(z.object({ username: z.string(), password: z.string() })).min(1),
  limits: z.object({
    memoryMb: z.number().int().positive(),
    /** Thousandths of a core. */
    cpuMilli: z.number().int().positive(),
    pids: z.number().int().positive(),
    /** Over it, the host says so; left out: any amount. */
    diskGb: z.number().int().positive().optional(),
  }),
  /** The port of the host by which these sources reach it, and nobody else; left out: nobody. */
  publicAccess: z.object({ port: Port, allow: z.array(Network).min(1) }).optional(),
});
export type DatabaseSpec = z.infer<typeof DatabaseSpec>;

const ImageId = z.string().regex(/^sha256:[0-9a-f]{64}$/);

/** What a deployment was made of and which image came of it. */
const Made = z.object({
  commit: z.string().nullable(),
  commitMessage: z.string().nullable(),
  /** `sha256:…`: of an image from a registry the digest there, of a built one the engine's id. */
  imageDigest: z.string(),
  /** As the host's engine names it. */
  imageId: ImageId,
  /** Equal where nothing that goes into the build differs; null where no build made it. */
  buildKey: z.string().nullable(),
});

/** An earlier deployment that was live, and whose image the host must not lose. */
export const KeptDeployment = Made.extend({
  deploymentId: DeploymentId,
  number: z.number().int().positive(),
});
export type KeptDeployment = z.infer<typeof KeptDeployment>;

/** What the page of a site says that its owner did not stop. */
export const StopNotice = z.object({
  reason: z.literal("suspended"),
  /** Where whoever wants it back pays; null: nothing can be paid now. */
  payUrl: z.url({ protocol: /^https?$/ }).nullable(),
});
export type StopNotice = z.infer<typeof StopNotice>;

/** Job kind → its arguments. A kind without a handler or a result schema does not compile. */
export const jobArgs = {
  "site.deploy": z.object({
    run: RunSpec,
    deploymentId: DeploymentId,
    source: Source,
    rootDir: RepositoryPath.nullable(),
    dockerfilePath: RepositoryPath.nullable(),
    buildCommand: z.string().nullable(),
    buildTimeoutSeconds: z.number().int().positive(),
    /** What is to run once before it serves, null: as its Procfile says. Left out: nothing, as for a rollback or a move. */
    release: z
      .object({ command: z.string().nullable(), timeoutSeconds: z.number().int().positive() })
      .optional(),
    /** Build even where nothing that goes into the build has changed. */
    rebuild: z.boolean(),
    /** Newest first. The images of these and of this deployment stay once it is live; the site's others go. */
    kept: z.array(KeptDeployment),
    /** The site is stopped, and stays so: its image is made, nothing is started. */
    parked: z.boolean().optional(),
  }),
  /** Start the stopped container, or a new one of the same image where it is gone. */
  "site.start": z.object({ run: RunSpec, deploymentId: DeploymentId }),
  "site.stop": z.object({ siteId: SiteId, hostnames: z.array(z.string()), notice: StopNotice.optional() }),
  /** Same image, new container, zero-downtime swap. */
  "site.restart": z.object({ run: RunSpec, deploymentId: DeploymentId }),
  /** Other names for what is served now. */
  "site.route": z.object({ siteId: SiteId, hostnames: z.array(z.string()) }),
  "site.delete": z.object({ siteId: SiteId, accountId: idOf("account"), hostnames: z.array(z.string()) }),
  /** The site is another host's now: what is left of it here goes. */
  "site.evict": z.object({ siteId: SiteId, accountId: idOf("account") }),
  /** Run once, in a container of its own, whatever happens to the agent meanwhile. */
  "site.command": z.object({
    run: RunSpec,
    deploymentId: DeploymentId,
    commandId: idOf("command"),
    command: z.string(),
    timeoutSeconds: z.number().int().positive(),
  }),
  /** The first start: what a failure leaves goes, as nobody has used it. */
  "database.provision": z.object({ database: DatabaseSpec }),
  /** `replacedVolumes` (null: the first): the record knows that restores replaced them. These go, and no others. */
  "database.start": z.object({
    database: DatabaseSpec,
    replacedVolumes: z.array(RestoredVolume.nullable()).max(100).optional(),
  }),
  "database.restart": z.object({ database: DatabaseSpec }),
  "database.stop": z.object({ databaseId: DatabaseId, accountId: idOf("account") }),
  /** Its logins become those named; connections stay, but for those of logins that are gone. */
  "database.rotate": z.object({ database: DatabaseSpec }),
  /** Who reaches it from outside becomes what the spec says; it runs on. */
  "database.expose": z.object({ database: DatabaseSpec, generation: z.number().int().positive() }),
  /** With all its data. */
  "database.delete": z.object({ databaseId: DatabaseId, accountId: idOf("account") }),
  /** Dump, fingerprint and upload, of one moment. */
  "database.backup": z.object({
    database: DatabaseSpec,
    backupId: idOf("backup"),
    attempt: z.number().int().positive(),
    /** It is to run afterwards as well. */
    serving: z.boolean().default(true),
  }),
  /** Restores it into a throw-away server like `like`, and compares. */
  "database.verify": z.object({ like: DatabaseSpec, backup: StoredBackup }),
  /** A volume of the backup's data beside the present one; the switch comes when it is proven. */
  "database.restore": z.object({
    database: DatabaseSpec,
    backup: StoredBackup,
    /** It is to serve until then. */
    serving: z.boolean(),
  }),
} as const;
export type JobKind = keyof typeof jobArgs;
export type DatabaseJobKind = Extract<JobKind, `database.${string}`>;
/** What takes as long as there is data: one at a time on a host, beside its other work. */
export const isLongJob = (kind: JobKind): boolean =>
  kind === "database.backup" || kind === "database.verify" || kind === "database.restore";
/** What builds nothing: a stop does not wait until others' builds have ended. */
export const isShortJob = (kind: JobKind): boolean =>
  !isLongJob(kind) && kind !== "site.deploy" && kind !== "site.command" && kind !== "database.provision";
/** Which of an agent's slots a job takes: those of builds and deployments, of short jobs, of commands, or none of them. */
export type Slot = "job" | "short" | "command" | "long";
export function slotOf(kind: JobKind): Slot {
  if (kind === "site.command") return "command";
  if (isLongJob(kind)) return "long";
  return isShortJob(kind) ? "short" : "job";
}
export const isDatabaseJob = (kind: JobKind): kind is DatabaseJobKind => kind.startsWith("database.");
export const jobKinds = Object.keys(jobArgs) as [JobKind, ...JobKind[]];
export type JobArgs<K extends JobKind> = z.infer<(typeof jobArgs)[K]>;

export const Durations = z.object({
  clone: z.number().int().nonnegative().nullable(),
  build: z.number().int().nonnegative().nullable(),
  start: z.number().int().nonnegative().nullable(),
  swap: z.number().int().nonnegative().nullable(),
});
/** Milliseconds per phase; null for a phase that did not end. */
export type Durations = z.infer<typeof Durations>;

const nothing = z.object({});
/** `damage`: what is wrong with the backup itself; a host that could not find out fails the job instead. */
const Judged = z.object({ damage: z.string().max(2000).nullable() });
/** As the server itself says it. */
const DatabaseUp = z.object({ version: z.string().min(1).max(50) });
const Exposed = z.object({
  /** Of the job. */
  generation: z.number().int().positive(),
  /** By which the internet reaches the host. */
  address: z.string().min(1).max(253),
  /** PEM. */
  certificateAuthority: z.string().min(1).max(10_000),
  /** When the server's certificate does; null: it does not run. */
  endsAt: z.iso.datetime().nullable(),
});
export const jobResults = {
  /** `parked`: it was not started, as was asked. Earlier agents start it. */
  "site.deploy": Made.extend({ durations: Durations, parked: z.boolean().optional() }),
  "site.start": nothing,
  "site.stop": nothing,
  "site.restart": nothing,
  "site.route": nothing,
  "site.delete": nothing,
  "site.evict": nothing,
  /** `error` null: it ended well. `exitCode` null: it was stopped. */
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
    DatabaseUp.extend({ damage: z.null(), volume: z.string() }),
    Judged.extend({ damage: z.string().max(2000) }),
  ]),
} as const satisfies Record<JobKind, z.ZodType>;
export type JobResult<K extends JobKind> = z.infer<(typeof jobResults)[K]>;

/** A job as it travels: arguments by kind. */
export type Job<K extends JobKind = JobKind> = { [P in K]: { id: Id<"job">; kind: P; args: JobArgs<P> } }[K];
