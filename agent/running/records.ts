import type { SiteEvent, SiteSample } from "../../protocol/api/running.ts";
import { keepEvents, keepSamples } from "../../protocol/agent/running.ts";
import type { FromAgent } from "../../protocol/agent/messages.ts";
import { openDatabase } from "../database.ts";

export type Crash = Extract<FromAgent, { type: "crashed" }>;
/** A crash the control plane does not know yet, and whether its container is out of service already. */
export type PendingCrash = { crash: Crash; containerId: string; isOut: boolean };

export type DatabaseCrash = Extract<FromAgent, { type: "databaseCrashed" }>;
/** It stays until the next one of that database: whether its container is out of service, and the control plane knows. */
export type DatabaseOut = { crash: DatabaseCrash; containerId: string; isOut: boolean; isKnown: boolean };

/** What this host knows of its running sites and must survive the agent. It may be deleted at any time. */
export type Records = {
  /** One moment's samples; what is older than a day of them goes. */
  addSamples(at: Date, intervalMs: number, samples: [siteId: string, sample: Omit<SiteSample, "at">][]): void;
  samples(siteId: string): SiteSample[];
  addEvent(siteId: string, containerId: string, event: SiteEvent): void;
  events(siteId: string): SiteEvent[];
  /** What happened last to this container. */
  lastKind(containerId: string): SiteEvent["kind"] | null;
  /** The engine's time of the last event taken in. */
  eventsUpTo(): string | null;
  takenIn(time: string): void;
  /** Also instead of what was pending for this site. */
  addCrash(pending: PendingCrash): void;
  crashes(): PendingCrash[];
  forgetCrash(crash: Pick<Crash, "siteId" | "deploymentId">): void;
  /** Also instead of what there was of this database. */
  addDatabaseOut(out: DatabaseOut): void;
  databasesOut(): DatabaseOut[];
  forgetDatabaseOut(databaseId: string): void;
  /** Whether this is the first time that it is used; known until it has expired. */
  useOnce(nonce: string, expiresAt: string, now: Date): boolean;
  /** Of sites and databases that are gone: samples at once, events an hour after the last. */
  keepOnly(siteIds: readonly string[], now: Date): void;
  close(): void;
};

const hourMs = 3_600_000;

const schema = `PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS samples (site_id TEXT, at INTEGER, sample TEXT NOT NULL, PRIMARY KEY (site_id, at)) WITHOUT ROWID, STRICT;
  CREATE INDEX IF NOT EXISTS samples_at ON samples (at);
  CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, site_id TEXT NOT NULL, container_id TEXT NOT NULL, at TEXT NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL) STRICT;
  CREATE INDEX IF NOT EXISTS events_site ON events (site_id, id);
  CREATE INDEX IF NOT EXISTS events_container ON events (container_id, id);
  CREATE TABLE IF NOT EXISTS crashes (site_id TEXT PRIMARY KEY, crash TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS databases_out (database_id TEXT PRIMARY KEY, out TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS used (nonce TEXT PRIMARY KEY, expires_at TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS position (one INTEGER PRIMARY KEY CHECK (one = 1), time TEXT NOT NULL) STRICT`;

/** The sites of a table that ?1 does not list, from one step in its index for each: a day's rows are not read every minute. */
const goneFrom = (table: "samples" | "events"): string =>
  `WITH RECURSIVE known (id) AS (
     SELECT min(site_id) FROM ${table}
     UNION ALL SELECT (SELECT min(site_id) FROM ${table} WHERE site_id > known.id) FROM known WHERE known.id IS NOT NULL
   ) SELECT id FROM known WHERE id IS NOT NULL AND id NOT IN (SELECT value FROM json_each(?1))`;

export function openRecords(file: string): Records {
  const db = openDatabase(file, schema);
  const addSample = db.prepare("INSERT OR REPLACE INTO samples VALUES (?, ?, ?)");
  const dropSamples = db.prepare("DELETE FROM samples WHERE at <= ?");
  const samples = db.prepare("SELECT at, sample FROM samples WHERE site_id = ? ORDER BY at DESC LIMIT ?");
  const addEvent = db.prepare(
    "INSERT INTO events (site_id, container_id, at, kind, detail) VALUES (?, ?, ?, ?, ?)",
  );
  const dropEvents = db.prepare(
    "DELETE FROM events WHERE site_id = ?1 AND id <= (SELECT id FROM events WHERE site_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
  );
  const events = db.prepare("SELECT at, kind, detail FROM events WHERE site_id = ? ORDER BY id");
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
  const dropGoneSamples = db.prepare(`DELETE FROM samples WHERE site_id IN (${goneFrom("samples")})`);
  const dropGoneEvents = db.prepare(
    `DELETE FROM events WHERE site_id IN (${goneFrom("events")}
       AND NOT EXISTS (SELECT 1 FROM events WHERE site_id = known.id AND at > ?2))`,
  );
  return {
    addSamples(at, intervalMs, list) {
      db.exec("BEGIN");
      for (const [siteId, sample] of list) addSample.run(siteId, at.getTime(), JSON.stringify(sample));
      dropSamples.run(at.getTime() - keepSamples * intervalMs);
      db.exec("COMMIT");
    },
    samples: (siteId) =>
      samples
        .all(siteId, keepSamples)
        .map(({ at, sample }) => ({
          at: new Date(Number(at)).toISOString(),
          ...(JSON.parse(String(sample)) as Omit<SiteSample, "at">),
        }))
        .toReversed(),
    addEvent(siteId, containerId, { at, kind, detail }) {
      addEvent.run(siteId, containerId, at, kind, detail);
      dropEvents.run(siteId, keepEvents);
    },
    events: (siteId) => events.all(siteId).map((row) => ({ ...row }) as SiteEvent),
    lastKind: (containerId) => (lastKind.get(containerId)?.["kind"] ?? null) as SiteEvent["kind"] | null,
    eventsUpTo: () => (position.get()?.["time"] ?? null) as string | null,
    takenIn: (time) => void takenIn.run(time),
    addCrash: (pending) => void addCrash.run(pending.crash.siteId, JSON.stringify(pending)),
    crashes: () => crashes.all().map(({ crash }) => JSON.parse(String(crash)) as PendingCrash),
    forgetCrash: ({ siteId, deploymentId }) => void forgetCrash.run(siteId, deploymentId),
    addDatabaseOut: (out) => void addDatabaseOut.run(out.crash.databaseId, JSON.stringify(out)),
    databasesOut: () => databasesOut.all().map(({ out }) => JSON.parse(String(out)) as DatabaseOut),
    forgetDatabaseOut: (databaseId) => void forgetDatabaseOut.run(databaseId),
    useOnce(nonce, expiresAt, now) {
      // Clocks of hosts may be wrong by some minutes.
      dropUsed.run(new Date(now.getTime() - hourMs).toISOString());
      return use.run(nonce, expiresAt).changes === 1;
    },
    keepOnly(siteIds, now) {
      const kept = JSON.stringify(siteIds);
      dropGoneSamples.run(kept);
      dropGoneEvents.run(kept, new Date(now.getTime() - hourMs).toISOString());
    },
    close: () => db.close(),
  };
}
