import * as z from "zod";
import { metricsWindows, SiteEvent, SiteSample, type MetricsWindow } from "../../protocol/api/running.ts";
import { keepEvents, keepSamples, SiteLogLine } from "../../protocol/agent/running.ts";
import { FromAgent } from "../../protocol/agent/messages.ts";
import { inTransaction, openDatabase, readRow } from "../state-file.ts";

export type Crash = Extract<FromAgent, { type: "crashed" }>;
/** A crash the control plane does not know yet, and whether its container is out of service already. */
export type PendingCrash = { crash: Crash; containerId: string; isOut: boolean };

export type DatabaseCrash = Extract<FromAgent, { type: "databaseCrashed" }>;
/**
 * The last crash of a database, kept until its next one: whether its container is out of service, and whether the
 * control plane knows.
 */
export type DatabaseOut = { crash: DatabaseCrash; containerId: string; isOut: boolean; isKnown: boolean };

/** This host's records of its running sites, which must survive the agent. The file may be deleted at any time. */
export type Records = {
  /**
   * Adds one moment's samples. Those older than a day are removed; before, they have become samples of a quarter of an hour, kept
   * for a week, and of an hour, kept for thirty days.
   */
  addSamples(at: Date, intervalMs: number, samples: [siteId: string, sample: Omit<SiteSample, "at">][]): void;
  samples(siteId: string, window?: MetricsWindow): SiteSample[];
  addEvent(siteId: string, containerId: string, event: SiteEvent): void;
  events(siteId: string): SiteEvent[];
  /** Keeps the last output of a container that is about to be removed, for the last ten of each site. */
  addLastLines(siteId: string, containerId: string, lines: readonly SiteLogLine[]): void;
  lastLines(siteId: string): { containerId: string; lines: SiteLogLine[] }[];
  /** What they take. */
  lastLinesBytes(siteId: string): number;
  /** The kind of this container's last event. */
  lastKind(containerId: string): SiteEvent["kind"] | null;
  /** The engine's time of the last event that was processed. */
  eventsUpTo(): string | null;
  takenIn(time: string): void;
  /** Replaces a pending crash of the same site. */
  addCrash(pending: PendingCrash): void;
  crashes(): PendingCrash[];
  forgetCrash(crash: Pick<Crash, "siteId" | "deploymentId">): void;
  /** Replaces the record of the same database. */
  addDatabaseOut(out: DatabaseOut): void;
  databasesOut(): DatabaseOut[];
  forgetDatabaseOut(databaseId: string): void;
  /** Whether the nonce is new; it is remembered until it has expired. */
  useOnce(nonce: string, expiresAt: string, now: Date): boolean;
  /** Records the time until which a container out of service may drain; the first one counts. */
  drainUntil(containerId: string, until: Date): void;
  drainsUntil(containerId: string): Date | null;
  drained(containerId: string): void;
  /**
   * Removes records of sites and databases that are gone: samples and lines at once, events an hour after the last
   * one.
   */
  keepOnly(siteIds: readonly string[], now: Date): void;
  close(): void;
};

const crashOf = <T extends FromAgent["type"]>(type: T) =>
  FromAgent.refine((message): message is Extract<FromAgent, { type: T }> => message.type === type);
const Pending: z.ZodType<PendingCrash> = z.object({
  crash: crashOf("crashed"),
  containerId: z.string(),
  isOut: z.boolean(),
});
const Out: z.ZodType<DatabaseOut> = z.object({
  crash: crashOf("databaseCrashed"),
  containerId: z.string(),
  isOut: z.boolean(),
  isKnown: z.boolean(),
});

const hourMs = 3_600_000;
const keepContainers = 10;

const schema = `PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS samples (site_id TEXT, at INTEGER, sample TEXT NOT NULL, PRIMARY KEY (site_id, at)) WITHOUT ROWID, STRICT;
  CREATE INDEX IF NOT EXISTS samples_at ON samples (at);
  CREATE TABLE IF NOT EXISTS long_samples (site_id TEXT, seconds INTEGER, at INTEGER, sample TEXT NOT NULL, PRIMARY KEY (site_id, seconds, at)) WITHOUT ROWID, STRICT;
  CREATE INDEX IF NOT EXISTS long_samples_at ON long_samples (seconds, at);
  CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, site_id TEXT NOT NULL, container_id TEXT NOT NULL, at TEXT NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL) STRICT;
  CREATE INDEX IF NOT EXISTS events_site ON events (site_id, id);
  CREATE INDEX IF NOT EXISTS events_container ON events (container_id, id);
  CREATE TABLE IF NOT EXISTS last_lines (id INTEGER PRIMARY KEY, site_id TEXT NOT NULL, container_id TEXT NOT NULL UNIQUE, lines TEXT NOT NULL) STRICT;
  CREATE INDEX IF NOT EXISTS last_lines_site ON last_lines (site_id, id);
  CREATE TABLE IF NOT EXISTS crashes (site_id TEXT PRIMARY KEY, crash TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS databases_out (database_id TEXT PRIMARY KEY, out TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS draining (container_id TEXT PRIMARY KEY, until TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS used (nonce TEXT PRIMARY KEY, expires_at TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS position (one INTEGER PRIMARY KEY CHECK (one = 1), time TEXT NOT NULL) STRICT`;

/**
 * The sites of a table that the JSON list does not have, with one index step per site, so that a day's rows are not scanned
 * every minute.
 */
const goneFrom = (table: "samples" | "long_samples" | "events" | "last_lines"): string =>
  `WITH RECURSIVE known (id) AS (
     SELECT min(site_id) FROM ${table}
     UNION ALL SELECT (SELECT min(site_id) FROM ${table} WHERE site_id > known.id) FROM known WHERE known.id IS NOT NULL
   ) SELECT id FROM known WHERE id IS NOT NULL AND id NOT IN (SELECT value FROM json_each(?))`;

/** Intervals longer than a minute. */
const longWindows = [metricsWindows["7d"], metricsWindows["30d"]];
/** A sample is taken at the end of its minute, or a moment later. */
const halfMinuteMs = 30_000;

/** Samples from $from up to $until, in milliseconds, as one for each interval of $seconds and site. Numbers are bound as fractions. */
const joinedSamples = (more: string): string =>
  `SELECT site_id, CAST($seconds AS INTEGER) AS seconds, ((at - ${halfMinuteMs}) / CAST($seconds * 1000 AS INTEGER) + 1) * CAST($seconds * 1000 AS INTEGER) AS until,
     json_object('cpuMilli', round(avg(sample ->> 'cpuMilli'), 1), 'memoryMb', max(sample ->> 'memoryMb'),
       'networkInBytes', sum(sample ->> 'networkInBytes'), 'networkOutBytes', sum(sample ->> 'networkOutBytes'),
       'diskMb', max(sample ->> 'diskMb')) AS sample
   FROM samples WHERE at >= $from + ${halfMinuteMs} AND at < $until + ${halfMinuteMs} AND json_valid(sample) ${more}
   GROUP BY site_id, until ORDER BY until`;

const sampleOf = (at: unknown, sample: unknown): SiteSample[] =>
  readRow(SiteSample, () => ({
    at: new Date(Number(at)).toISOString(),
    ...(JSON.parse(String(sample)) as object),
  }));

export function openRecords(file: string): Records {
  const db = openDatabase(file, schema);
  const addSample = db.prepare("INSERT OR REPLACE INTO samples VALUES (?, ?, ?)");
  const dropSamples = db.prepare("DELETE FROM samples WHERE at <= ?");
  const samples = db.prepare("SELECT at, sample FROM samples WHERE site_id = ? ORDER BY at DESC LIMIT ?");
  const joinSamples = db.prepare(`INSERT OR REPLACE INTO long_samples ${joinedSamples("")}`);
  const joinedUntil = db.prepare("SELECT max(at) AS at FROM long_samples WHERE seconds = ?");
  const dropLongSamples = db.prepare("DELETE FROM long_samples WHERE seconds = ? AND at <= ?");
  const longSamples = db.prepare(
    "SELECT at, sample FROM long_samples WHERE site_id = ? AND seconds = ? ORDER BY at",
  );
  const unfinishedSample = db.prepare(joinedSamples("AND site_id = $site"));
  const addEvent = db.prepare(
    "INSERT INTO events (site_id, container_id, at, kind, detail) VALUES (?, ?, ?, ?, ?)",
  );
  const dropEvents = db.prepare(
    "DELETE FROM events WHERE site_id = $site AND id <= (SELECT id FROM events WHERE site_id = $site ORDER BY id DESC LIMIT 1 OFFSET $keep)",
  );
  const events = db.prepare("SELECT at, kind, detail FROM events WHERE site_id = ? ORDER BY id");
  const addLastLines = db.prepare(
    "INSERT OR REPLACE INTO last_lines (site_id, container_id, lines) VALUES (?, ?, ?)",
  );
  const dropLastLines = db.prepare(
    "DELETE FROM last_lines WHERE site_id = $site AND id <= (SELECT id FROM last_lines WHERE site_id = $site ORDER BY id DESC LIMIT 1 OFFSET $keep)",
  );
  const lastLines = db.prepare("SELECT container_id, lines FROM last_lines WHERE site_id = ? ORDER BY id");
  const lastLinesBytes = db.prepare(
    "SELECT coalesce(sum(octet_length(lines)), 0) AS bytes FROM last_lines WHERE site_id = ?",
  );
  const lastKind = db.prepare("SELECT kind FROM events WHERE container_id = ? ORDER BY id DESC LIMIT 1");
  const position = db.prepare("SELECT time FROM position");
  const takenIn = db.prepare("INSERT OR REPLACE INTO position VALUES (1, ?)");
  const addCrash = db.prepare("INSERT OR REPLACE INTO crashes VALUES (?, ?)");
  const crashes = db.prepare("SELECT crash FROM crashes");
  const forgetCrash = db.prepare(
    "DELETE FROM crashes WHERE site_id = ? AND json_extract(crash, '$.crash.deploymentId') = ?",
  );
  const addDatabaseOut = db.prepare("INSERT OR REPLACE INTO databases_out VALUES (?, ?)");
  const databasesOut = db.prepare("SELECT out FROM databases_out");
  const forgetDatabaseOut = db.prepare("DELETE FROM databases_out WHERE database_id = ?");
  const use = db.prepare("INSERT OR IGNORE INTO used VALUES (?, ?)");
  const dropUsed = db.prepare("DELETE FROM used WHERE expires_at < ?");
  const drain = db.prepare("INSERT OR IGNORE INTO draining VALUES (?, ?)");
  const draining = db.prepare("SELECT until FROM draining WHERE container_id = ?");
  const drained = db.prepare("DELETE FROM draining WHERE container_id = ? OR until < ?");
  const dropGoneSamples = db.prepare(`DELETE FROM samples WHERE site_id IN (${goneFrom("samples")})`);
  const dropGoneLines = db.prepare(`DELETE FROM last_lines WHERE site_id IN (${goneFrom("last_lines")})`);
  const dropGoneEvents = db.prepare(
    `DELETE FROM events WHERE site_id IN (${goneFrom("events")}
       AND NOT EXISTS (SELECT 1 FROM events WHERE site_id = known.id AND at > ?))`,
  );
  /** The end of the last interval that was joined, by its length in seconds. */
  const joined = new Map<number, number>();
  const joinedTo = (seconds: number): number =>
    joined.get(seconds) ?? Number(joinedUntil.get(seconds)?.["at"] ?? 0);

  const dropGoneLongSamples = db.prepare(
    `DELETE FROM long_samples WHERE site_id IN (${goneFrom("long_samples")})`,
  );
  return {
    addSamples(at, intervalMs, list) {
      inTransaction(db, () => {
        for (const [siteId, sample] of list) addSample.run(siteId, at.getTime(), JSON.stringify(sample));
        dropSamples.run(at.getTime() - keepSamples * intervalMs);
      });
      for (const { intervalSeconds: seconds, hours } of longWindows) {
        const spanMs = seconds * 1000;
        const endMs = Math.floor((at.getTime() - halfMinuteMs) / spanMs) * spanMs;
        const fromMs = joinedTo(seconds);
        if (endMs === fromMs) continue;
        if (endMs > fromMs) joinSamples.run({ from: fromMs, until: endMs, seconds });
        dropLongSamples.run(seconds, endMs - hours * hourMs);
        // The clock may have been set back.
        joined.set(seconds, endMs);
      }
    },
    samples(siteId, window = "24h") {
      const { intervalSeconds: seconds } = metricsWindows[window];
      if (window === "24h")
        return samples
          .all(siteId, keepSamples)
          .flatMap(({ at, sample }) => sampleOf(at, sample))
          .toReversed();
      const whole = longSamples.all(siteId, seconds);
      // The interval that is not over yet.
      const rest = unfinishedSample.all({
        from: joinedTo(seconds),
        until: Number.MAX_SAFE_INTEGER,
        seconds,
        site: siteId,
      });
      return [
        ...whole.flatMap(({ at, sample }) => sampleOf(at, sample)),
        ...rest.flatMap(({ until, sample }) => sampleOf(until, sample)),
      ].slice(-keepSamples);
    },
    addEvent(siteId, containerId, { at, kind, detail }) {
      addEvent.run(siteId, containerId, at, kind, detail);
      dropEvents.run({ site: siteId, keep: keepEvents });
    },
    events: (siteId) => events.all(siteId).flatMap((row) => readRow(SiteEvent, () => row)),
    addLastLines(siteId, containerId, lines) {
      addLastLines.run(siteId, containerId, JSON.stringify(lines));
      dropLastLines.run({ site: siteId, keep: keepContainers });
    },
    lastLines: (siteId) =>
      lastLines.all(siteId).map((row) => ({
        containerId: String(row["container_id"]),
        lines: readRow(z.array(SiteLogLine), () => JSON.parse(String(row["lines"]))).flat(),
      })),
    lastLinesBytes: (siteId) => Number(lastLinesBytes.get(siteId)?.["bytes"]),
    lastKind: (containerId) => (lastKind.get(containerId)?.["kind"] ?? null) as SiteEvent["kind"] | null,
    eventsUpTo: () => /^\d{1,12}\.\d{9}$/.exec(String(position.get()?.["time"]))?.[0] ?? null,
    takenIn: (time) => void takenIn.run(time),
    addCrash: (pending) => void addCrash.run(pending.crash.siteId, JSON.stringify(pending)),
    crashes: () => crashes.all().flatMap(({ crash }) => readRow(Pending, () => JSON.parse(String(crash)))),
    forgetCrash: ({ siteId, deploymentId }) => void forgetCrash.run(siteId, deploymentId),
    addDatabaseOut: (out) => void addDatabaseOut.run(out.crash.databaseId, JSON.stringify(out)),
    databasesOut: () => databasesOut.all().flatMap(({ out }) => readRow(Out, () => JSON.parse(String(out)))),
    forgetDatabaseOut: (databaseId) => void forgetDatabaseOut.run(databaseId),
    useOnce(nonce, expiresAt, now) {
      // Hosts' clocks may be wrong by some minutes.
      dropUsed.run(new Date(now.getTime() - hourMs).toISOString());
      return use.run(nonce, expiresAt).changes === 1;
    },
    drainUntil: (containerId, until) => void drain.run(containerId, until.toISOString()),
    drainsUntil(containerId) {
      const found = draining.get(containerId);
      const until = new Date(String(found?.["until"]));
      return Number.isNaN(until.getTime()) ? null : until;
    },
    // Also drops rows of containers that were removed otherwise.
    drained: (containerId) => void drained.run(containerId, new Date(Date.now() - 24 * hourMs).toISOString()),
    keepOnly(siteIds, now) {
      const kept = JSON.stringify(siteIds);
      dropGoneSamples.run(kept);
      dropGoneLongSamples.run(kept);
      dropGoneLines.run(kept);
      dropGoneEvents.run(kept, new Date(now.getTime() - hourMs).toISOString());
    },
    close: () => db.close(),
  };
}
