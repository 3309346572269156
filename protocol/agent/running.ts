import * as z from "zod";
import { idOf, Timestamp } from "../api/common.ts";
import {
  DatabaseInsight,
  DatabaseQueryResult,
  DatabaseSchema,
  maxStatementCharacters,
} from "../api/insight.ts";
import { DiskUsed } from "../api/disk.ts";
import { Browsed } from "../api/files.ts";
import { DomainCertificate } from "../api/domains.ts";
import { HostUsage } from "../api/hosts.ts";
import { RequestFilters, RequestStats, RequestWindow, SiteRequest } from "../api/requests.ts";
import { MetricsWindow, SiteEvent, SiteHealth, SiteSample } from "../api/running.ts";
import { GitAddress, GitBranch, GitToken, RepositoryPath } from "../api/sites.ts";
import { SourceInspection } from "../api/sources.ts";
import { VolumeName } from "../api/volumes.ts";
import { databaseTypes } from "../states.ts";
import { Certificate } from "./certificates.ts";
import { DatabaseVolumes, Kept, maxHeld } from "./inventory.ts";

const SiteId = idOf("site");
/** The owner of a log, metrics and events: a site, or a database by its own id. */
const Watched = z.union([SiteId, idOf("database")]);

/** The target of a question to a database's server, with the owner's login, never the administrator's. */
const Server = {
  databaseId: idOf("database"),
  type: z.enum(databaseTypes),
  databaseName: z.string().min(1).max(63),
  login: z.object({ username: z.string().min(1), password: z.string().min(1) }),
};

/** Longer output lines are truncated here. */
export const maxSiteLineCharacters = 16 * 1024;
/** Resources per question about disk use. */
export const maxDiskAsked = 20;
/** Samples per site: one day, by the minute. */
export const keepSamples = 1440;
/** Events kept per site. */
export const keepEvents = 200;

/** A time and, for containers whose log was read only up to an earlier one, the nanoseconds before it: `at;id-n;…`. */
export const LogPlace = z
  .string()
  .max(4096)
  .refine((place) => {
    const [at, ...behind] = place.split(";");
    return Timestamp.safeParse(at).success && behind.every((one) => /^[0-9a-f]{12}-\d{1,19}$/.test(one));
  });

/** `at` has nanosecond precision, is unique within a container and follows its log's order. */
export const SiteLogLine = z.object({
  at: Timestamp,
  /** The cursor after this line, if it differs from `at`. */
  place: LogPlace.optional(),
  stream: z.enum(["stdout", "stderr"]),
  /** The replica that wrote it, from 1. */
  replica: z.number().int().positive().optional(),
  text: z.string().max(maxSiteLineCharacters + 20),
  /** It stands in place of so many lines, of which it has the time of the last; null: that is not known. Agents of before leave out none. */
  leftOut: z.number().int().positive().nullable().optional(),
});
export type SiteLogLine = z.infer<typeof SiteLogLine>;

/** Questions that the control plane asks about a site or database on this host, while a user waits for the answer. */
export const Question = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("logs"),
    siteId: Watched,
    /** Lines from the end; when following after a time, all lines after it. */
    tail: z.number().int().min(0).max(1000),
    after: LogPlace.nullable(),
    /** Answers are sent until `endAsk`. */
    follow: z.boolean(),
    /** Answers that may be sent before the first is acknowledged; missing: none ever is. */
    window: z.number().int().positive().optional(),
    /** Secrets to mask in addition to those given to the containers. */
    masks: z.array(z.string()).default([]),
  }),
  z.object({
    kind: z.literal("searchLog"),
    siteId: Watched,
    text: z.string().min(1).max(200),
    after: Timestamp.nullable(),
    before: Timestamp.nullable(),
    limit: z.number().int().min(1).max(500),
    masks: z.array(z.string()),
    timeoutMs: z.number().int().min(1).max(30_000),
  }),
  z.object({ kind: z.literal("metrics"), siteId: Watched, window: MetricsWindow.default("24h") }),
  z.object({ kind: z.literal("events"), siteId: Watched }),
  z.object({
    kind: z.literal("requests"),
    siteId: SiteId,
    filters: RequestFilters,
    limit: z.number().int().min(1).max(101),
    /** Newest first, before the request of this number; when following, new ones after it. */
    place: z.number().int().nonnegative().nullable(),
    /** Answers are sent until `endAsk`. */
    follow: z.boolean(),
  }),
  z.object({ kind: z.literal("requestStats"), siteId: SiteId, window: RequestWindow }),
  /** `volume` null: the container in service. */
  z.object({
    kind: z.literal("files"),
    siteId: SiteId,
    path: z.string().min(1).max(1000),
    volume: VolumeName.nullable(),
    masks: z.array(z.string()),
  }),
  z.object({ kind: z.literal("volumes"), siteId: SiteId }),
  z.object({ kind: z.literal("disk"), ids: z.array(Watched).min(1).max(maxDiskAsked) }),
  /** Deletes its data, unless a container uses it. */
  z.object({ kind: z.literal("removeVolume"), siteId: SiteId, name: VolumeName }),
  /** Lists the sites and databases it has anything of. */
  z.object({ kind: z.literal("held") }),
  z.object({ kind: z.literal("kept"), ids: z.array(Watched).max(maxHeld) }),
  /** Deletes permanently, unless some of it runs. */
  z.object({ kind: z.literal("removeKept"), id: Watched }),
  /** Deletes unused volumes of databases that run on another volume. Asked only about those named by `held`. */
  z.object({ kind: z.literal("keptVolumes"), databases: z.array(DatabaseVolumes).max(maxHeld) }),
  z.object({ kind: z.literal("removeKeptVolumes"), database: DatabaseVolumes }),
  z.object({ kind: z.literal("insight"), ...Server }),
  z.object({ kind: z.literal("schema"), ...Server }),
  z.object({
    kind: z.literal("query"),
    statement: z.string().min(1).max(maxStatementCharacters),
    /** null: read-only. Otherwise the statement runs at most once per `nonce`, which is remembered until it expires. */
    write: z.object({ nonce: z.string().min(1).max(64), expiresAt: Timestamp }).nullable(),
    /** Roll back what the statement did. */
    dryRun: z.boolean().default(false),
    limit: z.number().int().min(1).max(1000),
    timeoutMs: z.number().int().min(1).max(30_000),
    ...Server,
  }),
  /**
   * The certificate that the ingress serves for a name of the site. Where it has none yet, one is obtained first.
   * `keptUntil`: the end of the one that the control plane has a copy of; a later one is answered with its key.
   */
  z.object({
    kind: z.literal("certificate"),
    siteId: SiteId,
    hostname: z.string().min(1).max(253),
    timeoutMs: z.number().int().min(1).max(30_000),
    keptUntil: Timestamp.nullable().optional(),
  }),
  /** Ends one session of the server. */
  z.object({ kind: z.literal("endSession"), session: z.string().regex(/^\d{1,15}$/), ...Server }),
  /** Looks at a site's containers and probes them now. */
  z.object({ kind: z.literal("health"), siteId: SiteId, port: z.number().int() }),
  /** What is used of the machine. */
  z.object({ kind: z.literal("machine") }),
  /** Any host can answer it: it is about no resource. Accounts take turns. */
  z.object({
    kind: z.literal("source"),
    accountId: idOf("account"),
    source: z.object({
      address: GitAddress,
      branch: GitBranch.nullable(),
      token: GitToken.nullable(),
    }),
    rootDir: RepositoryPath.nullable(),
    timeoutMs: z.number().int().min(1).max(30_000),
  }),
]);
/** What is said of a statement that writes whose answer is lost. */
export const mayHaveTakenEffect =
  "The statement may have taken effect: check the data before you run it again.";

export type Question = z.infer<typeof Question>;

export const Answer = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("logs"), lines: z.array(SiteLogLine).max(1000) }),
  /** `complete`: all kept lines were searched, and all that were found are here. */
  z.object({ kind: z.literal("searchLog"), lines: z.array(SiteLogLine).max(500), complete: z.boolean() }),
  /** Agents of before keep a day, by the minute. */
  z.object({
    kind: z.literal("metrics"),
    samples: z.array(SiteSample).max(keepSamples),
    intervalSeconds: z.number().int().min(1).optional(),
  }),
  z.object({ kind: z.literal("events"), events: z.array(SiteEvent).max(keepEvents) }),
  z.object({ kind: z.literal("requests"), requests: z.array(SiteRequest).max(200) }),
  z.object({ kind: z.literal("requestStats"), stats: RequestStats }),
  z.object({ kind: z.literal("files"), found: Browsed }),
  /** `sizeMb` null: the host cannot measure it. */
  z.object({
    kind: z.literal("volumes"),
    volumes: z.array(z.object({ name: z.string(), sizeMb: z.number().nonnegative().nullable() })).max(1000),
  }),
  z.object({
    kind: z.literal("disk"),
    found: z
      .array(DiskUsed.extend({ id: Watched, countedMb: z.number().nonnegative().nullable() }))
      .max(maxDiskAsked),
  }),
  z.object({ kind: z.literal("removeVolume") }),
  z.object({
    kind: z.literal("held"),
    ids: z.array(Watched).max(20_000),
    databases: z.array(DatabaseVolumes).max(maxHeld).optional(),
  }),
  z.object({ kind: z.literal("kept"), kept: z.array(Kept).max(maxHeld) }),
  z.object({ kind: z.literal("removeKept") }),
  z.object({ kind: z.literal("insight"), insight: DatabaseInsight }),
  z.object({ kind: z.literal("schema"), schema: DatabaseSchema }),
  z.object({ kind: z.literal("query"), result: DatabaseQueryResult }),
  /** false: there is no such session. */
  z.object({ kind: z.literal("endSession"), ended: z.boolean() }),
  z.object({ kind: z.literal("health"), health: SiteHealth }),
  z.object({ kind: z.literal("machine"), usage: HostUsage }),
  z.object({ kind: z.literal("source"), found: SourceInspection }),
  z.object({
    kind: z.literal("certificate"),
    /** The ingress knows the name as one of this site. */
    isServed: z.boolean(),
    /** false: the ingress serves plain HTTP. */
    tls: z.boolean(),
    /** Whether the certificate is for this name, valid now and from a trusted issuer. */
    isValid: z.boolean(),
    certificate: DomainCertificate.nullable(),
    /** That the host obtained itself: another host that the site moves to is given it. */
    obtained: Certificate.optional(),
  }),
  /** The server refused the statement, or it exceeded its limits; shown to the author of the statement. */
  z.object({ kind: z.literal("statementRefused"), error: z.string().min(1).max(2000) }),
  /** One plain sentence for the user. `isMissing`: what was asked for is not there. */
  z.object({
    kind: z.literal("refused"),
    error: z.string().min(1).max(500),
    isMissing: z.literal(true).optional(),
  }),
]);
export type Answer = z.infer<typeof Answer>;

/** Questions whose answers can be followed. */
export type Followed = Extract<Question, { kind: "logs" | "requests" }>;
/** Questions to the database's server itself. */
export type ServerQuestion = Extract<Question, { kind: "insight" | "schema" | "query" | "endSession" }>;
