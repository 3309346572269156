import * as z from "zod";
import { idOf, Timestamp } from "../api/common.ts";
import {
  DatabaseInsight,
  DatabaseQueryResult,
  DatabaseSchema,
  maxStatementCharacters,
} from "../api/insight.ts";
import { SiteEvent, SiteSample } from "../api/running.ts";
import { VolumeName } from "../api/volumes.ts";
import { databaseTypes } from "../states.ts";
import { DatabaseVolumes, Kept, maxHeld } from "./inventory.ts";

const SiteId = idOf("site");
/** What has a log, metrics and events: a site, or a database by its own id. */
const Watched = z.union([SiteId, idOf("database")]);

/** Where a question to a database's server goes, and as whom: its owner, never its administrator. */
const Server = {
  databaseId: idOf("database"),
  type: z.enum(databaseTypes),
  databaseName: z.string().min(1).max(63),
  login: z.object({ username: z.string().min(1), password: z.string().min(1) }),
};

/** What the container wrote, cut here. */
export const maxSiteLineCharacters = 16 * 1024;
/** Samples kept per site: a day of minutes. */
export const keepSamples = 1440;
/** Events kept per site. */
export const keepEvents = 200;

/** A time, and for containers whose lines a reader has up to an earlier one, how many nanoseconds before it: `at;id-n;…`. */
export const LogPlace = z
  .string()
  .max(4096)
  .refine((place) => {
    const [at, ...behind] = place.split(";");
    return Timestamp.safeParse(at).success && behind.every((one) => /^[0-9a-f]{12}-\d{1,19}$/.test(one));
  });

/** `at` has nanoseconds and is unique within a container, in the order of its log. */
export const SiteLogLine = z.object({
  at: Timestamp,
  /** Where a reader goes on after this line, when that is not `at`. */
  place: LogPlace.optional(),
  stream: z.enum(["stdout", "stderr"]),
  /** Which of the site's containers wrote it, from 1. */
  replica: z.number().int().positive().optional(),
  text: z.string().max(maxSiteLineCharacters + 20),
});
export type SiteLogLine = z.infer<typeof SiteLogLine>;

/** What the control plane asks of a site or a database on this host, while somebody waits for the answer. */
export const Question = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("logs"),
    siteId: Watched,
    /** Lines from the end; when following after a time, all lines after it. */
    tail: z.number().int().min(0).max(1000),
    after: LogPlace.nullable(),
    /** Answers go on until `endAsk`. */
    follow: z.boolean(),
    /** Secrets to mask beside those the containers were given. */
    masks: z.array(z.string()).default([]),
  }),
  z.object({ kind: z.literal("metrics"), siteId: Watched }),
  z.object({ kind: z.literal("events"), siteId: Watched }),
  z.object({ kind: z.literal("volumes"), siteId: SiteId }),
  /** Its data goes, unless a container uses it. */
  z.object({ kind: z.literal("removeVolume"), siteId: SiteId, name: VolumeName }),
  /** Which sites and databases it has anything of. Asked, as the next two, only of an agent whose hello says `inventories`. */
  z.object({ kind: z.literal("held") }),
  z.object({ kind: z.literal("kept"), ids: z.array(Watched).max(maxHeld) }),
  /** For good, unless something of it runs. */
  z.object({ kind: z.literal("removeKept"), id: Watched }),
  /** The same of volumes of databases that run on another one. Asked only where `held` names them. */
  z.object({ kind: z.literal("keptVolumes"), databases: z.array(DatabaseVolumes).max(maxHeld) }),
  z.object({ kind: z.literal("removeKeptVolumes"), database: DatabaseVolumes }),
  z.object({ kind: z.literal("insight"), ...Server }),
  z.object({ kind: z.literal("schema"), ...Server }),
  z.object({
    kind: z.literal("query"),
    statement: z.string().min(1).max(maxStatementCharacters),
    /** null: it can change nothing. Otherwise it is run once per `nonce`, which is known until then. */
    write: z.object({ nonce: z.string().min(1).max(64), expiresAt: Timestamp }).nullable(),
    limit: z.number().int().min(1).max(1000),
    timeoutMs: z.number().int().min(1).max(30_000),
    ...Server,
  }),
]);
export type Question = z.infer<typeof Question>;

export const Answer = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("logs"), lines: z.array(SiteLogLine).max(1000) }),
  z.object({ kind: z.literal("metrics"), samples: z.array(SiteSample).max(keepSamples) }),
  z.object({ kind: z.literal("events"), events: z.array(SiteEvent).max(keepEvents) }),
  /** `sizeMb` null: the host cannot tell. */
  z.object({
    kind: z.literal("volumes"),
    volumes: z.array(z.object({ name: z.string(), sizeMb: z.number().nonnegative().nullable() })).max(1000),
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
  /** The server refused the statement, or it went beyond its limits: what the person who wrote it is told. */
  z.object({ kind: z.literal("statementRefused"), error: z.string().min(1).max(2000) }),
  /** One plain sentence for the person who asked. */
  z.object({ kind: z.literal("refused"), error: z.string().min(1).max(500) }),
]);
export type Answer = z.infer<typeof Answer>;

/** Questions to a database's own server. */
export type ServerQuestion = Extract<Question, { kind: "insight" | "schema" | "query" }>;
