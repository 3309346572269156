import type { SQLInputValue, SQLOutputValue } from "node:sqlite";
import { setImmediate as turn } from "node:timers/promises";
import * as z from "zod";
import {
  keepRequests,
  maxHeaderCharacters,
  maxPathCharacters,
  maxTops,
  requestWindows,
  SiteRequest,
  type RequestFigures,
  type RequestFilters,
  type RequestStats,
  type RequestWindow,
} from "../../protocol/api/requests.ts";
import { inTransaction, openDatabase, readRow } from "../state-file.ts";
import type { LogPosition } from "./access-log-reader.ts";
import { addTo, bucketOf, quantileMs, type LatencySketch } from "./latency-sketch.ts";
import { kept, maskPath, maskQuery, maskReferrer } from "./request-masks.ts";

/** One request as the ingress's log tells it; nothing is masked or cut. */
export type SeenRequest = Omit<SiteRequest, "id" | "at" | "durationMs" | "deploymentId" | "represents"> & {
  siteId: string;
  atMs: number;
  durationUs: number;
  deploymentId: string | null;
};

/** The requests of this host's sites. The file may be deleted at any time. */
export type RequestRecords = {
  /** Keeps requests and the position in the log after them, both or neither. */
  take(seen: readonly SeenRequest[], position: LogPosition): void;
  position(): LogPosition | null;
  /** Newest first, before the request of this number. */
  before(siteId: string, filters: RequestFilters, before: number | null, limit: number): SiteRequest[];
  /** Oldest first, after the request of this number. */
  after(siteId: string, filters: RequestFilters, after: number, limit: number): SiteRequest[];
  /** The number of the last request of all; 0: none. */
  newest(): number;
  stats(siteId: string, window: RequestWindow, nowMs: number): RequestStats;
  /** Makes quarters of an hour of minutes after a day, hours of them after a week, and removes them after thirty days. */
  rollUp(nowMs: number): Promise<void>;
  /** Removes what there is of other sites. */
  keepOnly(siteIds: readonly string[]): void;
  /** Calls back when requests of this site were kept, until the signal aborts. */
  onTaken(siteId: string, callback: () => void, signal: AbortSignal): void;
  close(): void;
};

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
/** Minutes per row, and how long such rows are kept. */
const resolutions = [
  { minutes: 1, keptMs: dayMs },
  { minutes: 15, keptMs: 7 * dayMs },
  { minutes: 60, keptMs: 30 * dayMs },
] as const;

/** Of one site, sustained and at once. Beyond it, a sample is kept; statistics count all. */
const rowsPerSecond = 500;
const maxRowsAtOnce = 2000;
/** Rows beyond `keepRequests` at which the oldest are removed. */
const trimAfter = 500;
/** Kept together as one row of the database: one by one, they would take most of the time that statistics take. */
const rowsPerBlock = 100;
/** Values per site, hour and kind while the hour lasts; the least frequent leave (lossy counting, Manku and Motwani 2002). */
const maxCounted = 200;
const maxTopCharacters = 100;
/** Of hours that are older than a week, half as many are kept. */
const weekHours = 7 * 24;
/** Web sockets and other upgraded connections last for hours. */
const upgraded = 101;

const kinds = { paths: 0, referrers: 1, userAgents: 2 } as const;
type Kind = keyof typeof kinds;

/** Counts by status: index 0 for none, 1 to 5 for its class. `d` is the sketch: bucket, count, bucket, count, … */
const Figures = z.object({
  s: z.tuple([z.number(), z.number(), z.number(), z.number(), z.number(), z.number()]),
  i: z.number(),
  o: z.number(),
  d: z.array(z.number()),
});
type Sum = { statuses: number[]; bytesIn: number; bytesOut: number; sketch: LatencySketch };
const zero = (): Sum => ({ statuses: [0, 0, 0, 0, 0, 0], bytesIn: 0, bytesOut: 0, sketch: new Map() });

const schema = `PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS sites (number INTEGER PRIMARY KEY, site_id TEXT NOT NULL UNIQUE) STRICT;
  DROP TABLE IF EXISTS requests;
  CREATE TABLE IF NOT EXISTS blocks (last INTEGER PRIMARY KEY AUTOINCREMENT, site INTEGER NOT NULL, rows INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE INDEX IF NOT EXISTS blocks_site ON blocks (site, last, rows);
  CREATE TABLE IF NOT EXISTS figures (site INTEGER, minutes INTEGER, at INTEGER, body TEXT NOT NULL, PRIMARY KEY (site, minutes, at)) WITHOUT ROWID, STRICT;
  CREATE TABLE IF NOT EXISTS tops (site INTEGER, hour INTEGER, kind INTEGER, value TEXT, requests INTEGER NOT NULL, PRIMARY KEY (site, hour, kind, value)) WITHOUT ROWID, STRICT;
  CREATE TABLE IF NOT EXISTS position (one INTEGER PRIMARY KEY CHECK (one = 1), file TEXT NOT NULL, offset INTEGER NOT NULL) STRICT`;

export function openRequestRecords(
  file: string,
  clockMs: () => number = () => performance.now(),
): RequestRecords {
  const db = openDatabase(file, schema);
  const addSite = db.prepare("INSERT OR IGNORE INTO sites (site_id) VALUES (?)");
  const findSite = db.prepare("SELECT number FROM sites WHERE site_id = ?");
  const addBlock = db.prepare("INSERT INTO blocks VALUES (?, ?, ?, ?)");
  const blocksBefore = db.prepare(
    "SELECT last, rows, body FROM blocks WHERE site = ? AND last < ? ORDER BY last DESC",
  );
  const blocksAfter = db.prepare(
    "SELECT last, rows, body FROM blocks WHERE site = ? AND last > ? ORDER BY last",
  );
  const trim = db.prepare(
    `DELETE FROM blocks WHERE site = $site AND last < (SELECT max(last) FROM
       (SELECT last, sum(rows) OVER (ORDER BY last DESC) AS n FROM blocks WHERE site = $site) WHERE n >= $keep)`,
  );
  const getFigures = db.prepare("SELECT body FROM figures WHERE site = ? AND minutes = ? AND at = ?");
  const setFigures = db.prepare("INSERT OR REPLACE INTO figures VALUES (?, ?, ?, ?)");
  const figuresFrom = db.prepare(
    "SELECT minutes, at, body FROM figures WHERE site = ? AND minutes = ? AND at >= ? AND at < ? ORDER BY at",
  );
  const olderFigures = db.prepare(
    "SELECT at, body FROM figures WHERE site = ? AND minutes = ? AND at < ? ORDER BY at LIMIT 2000",
  );
  const dropFigures = db.prepare("DELETE FROM figures WHERE site = ? AND minutes = ? AND at < ?");
  const countTop = db.prepare(
    "INSERT INTO tops VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET requests = requests + excluded.requests",
  );
  const cutTops = db.prepare(
    `DELETE FROM tops WHERE site = $site AND hour = $hour AND kind = $kind AND value IN
       (SELECT value FROM tops WHERE site = $site AND hour = $hour AND kind = $kind ORDER BY requests DESC, value LIMIT -1 OFFSET $keep)`,
  );
  const countedTops = db.prepare("SELECT count(*) AS n FROM tops WHERE site = ? AND hour = ? AND kind = ?");
  const hoursOfTops = db.prepare(
    "SELECT hour, kind FROM tops WHERE site = ? AND hour < ? GROUP BY hour, kind HAVING count(*) > ?",
  );
  const dropTops = db.prepare("DELETE FROM tops WHERE site = ? AND hour < ?");
  const topsFrom = db.prepare(
    "SELECT value, sum(requests) AS n FROM tops WHERE site = ? AND kind = ? AND hour >= ? GROUP BY value ORDER BY n DESC, value LIMIT ?",
  );
  const getPosition = db.prepare("SELECT file, offset FROM position");
  const setPosition = db.prepare("INSERT OR REPLACE INTO position VALUES (1, ?, ?)");
  const newest = db.prepare("SELECT seq AS number FROM sqlite_sequence WHERE name = 'blocks'");
  const allSites = db.prepare("SELECT number, site_id FROM sites");

  /** Rows that a site may still keep of this moment's requests. */
  const allowed = new Map<string, { rows: number; atMs: number }>();
  const untrimmed = new Map<number, number>();
  /** The hour in which a site was last rolled up. */
  const rolledUp = new Map<number, number>();
  const callbacks = new Map<string, Set<() => void>>();

  const newestNumber = (): number => Number(newest.get()?.["number"] ?? 0);

  const numberOf = (siteId: string): number | null => {
    const found = findSite.get(siteId)?.["number"];
    return found === undefined ? null : Number(found);
  };

  function merge(site: number, minutes: number, atMs: number, sum: Sum): void {
    const found = getFigures.get(site, minutes, atMs);
    if (found) addRow(sum, found["body"]);
    const { statuses, bytesIn, bytesOut, sketch } = sum;
    setFigures.run(
      site,
      minutes,
      atMs,
      JSON.stringify({ s: statuses, i: bytesIn, o: bytesOut, d: [...sketch].flat() }),
    );
  }

  /** How many of these may be kept one by one. */
  function admit(siteId: string, count: number): number {
    const nowMs = clockMs();
    const before = allowed.get(siteId);
    const rows = before
      ? Math.min(maxRowsAtOnce, before.rows + ((nowMs - before.atMs) / 1000) * rowsPerSecond)
      : maxRowsAtOnce;
    const admitted = Math.min(count, Math.max(1, Math.floor(rows)));
    allowed.set(siteId, { rows: Math.max(0, rows - admitted), atMs: nowMs });
    return admitted;
  }

  function keepRows(site: number, siteId: string, seen: readonly SeenRequest[]): void {
    const rows = admit(siteId, seen.length);
    let last = newestNumber();
    for (let first = 0; first < rows; first += rowsPerBlock) {
      const block: Row[] = [];
      for (let row = first; row < Math.min(rows, first + rowsPerBlock); row++) {
        const from = Math.floor((row * seen.length) / rows);
        const to = Math.floor(((row + 1) * seen.length) / rows);
        const one = seen[from];
        if (one) block.push(rowOf(one, to - from));
      }
      last += block.length;
      addBlock.run(last, site, block.length, JSON.stringify(block));
    }
    const added = (untrimmed.get(site) ?? trimAfter) + rows;
    if (added >= trimAfter) trim.run({ site, keep: keepRequests });
    untrimmed.set(site, added >= trimAfter ? 0 : added);
  }

  function keepTops(site: number, seen: readonly SeenRequest[]): void {
    for (const [hour, ofHour] of groupBy(seen, ({ atMs }) => Math.floor(atMs / hourMs)))
      for (const [kind, counts] of Object.entries(countsOf(ofHour)) as [Kind, Map<string, number>][]) {
        const most = [...counts].toSorted(([, a], [, b]) => b - a).slice(0, maxCounted);
        for (const [value, count] of most) countTop.run(site, hour, kinds[kind], value, count);
        // Not each time: what is new must have a chance to become frequent.
        if (Number(countedTops.get(site, hour, kinds[kind])?.["n"]) > 2 * maxCounted)
          cutTops.run({ site, hour, kind: kinds[kind], keep: maxCounted });
      }
  }

  function sumsFrom(site: number, fromMs: number, toMs: number): { atMs: number; sum: Sum }[] {
    return resolutions.flatMap(({ minutes }) =>
      figuresFrom.all(site, minutes, fromMs, toMs).map(({ at, body }) => {
        const sum = zero();
        addRow(sum, body);
        return { atMs: Number(at), sum };
      }),
    );
  }

  function rollUpSite(site: number, nowMs: number): void {
    for (const [index, { minutes, keptMs }] of resolutions.entries()) {
      const next = resolutions[index + 1];
      const spanMs = (next?.minutes ?? minutes) * minuteMs;
      const untilMs = Math.floor((nowMs - keptMs) / spanMs) * spanMs;
      if (next) {
        const rows = olderFigures.all(site, minutes, untilMs);
        for (const [at, group] of groupBy(rows, (row) => Math.floor(Number(row["at"]) / spanMs) * spanMs)) {
          const sum = zero();
          for (const { body } of group) addRow(sum, body);
          merge(site, next.minutes, at, sum);
        }
        const last = rows.length === 2000 ? Number(rows.at(-1)?.["at"]) + 1 : untilMs;
        dropFigures.run(site, minutes, last);
      } else dropFigures.run(site, minutes, untilMs);
    }
    const hour = Math.floor(nowMs / hourMs);
    for (const [until, most] of [
      [hour - 1, maxTops],
      [hour - weekHours, maxTops / 2],
    ] as const)
      for (const row of hoursOfTops.all(site, until, most))
        cutTops.run({ site, hour: Number(row["hour"]), kind: Number(row["kind"]), keep: most });
    dropTops.run(site, hour - 30 * 24);
  }

  return {
    take(seen, position) {
      const bySite = groupBy(seen, ({ siteId }) => siteId);
      inTransaction(db, () => {
        for (const [siteId, ofSite] of bySite) {
          addSite.run(siteId);
          const site = numberOf(siteId) ?? 0;
          for (const [atMs, sum] of sumsByMinute(ofSite)) merge(site, 1, atMs, sum);
          keepTops(site, ofSite);
          keepRows(site, siteId, ofSite);
        }
        setPosition.run(position.file, position.offset);
      });
      for (const siteId of bySite.keys()) for (const callback of callbacks.get(siteId) ?? []) callback();
    },
    position() {
      const found = getPosition.get();
      return found ? { file: String(found["file"]), offset: Number(found["offset"]) } : null;
    },
    before(siteId, filters, before, limit) {
      const end = before ?? Number.MAX_SAFE_INTEGER;
      const isFound = filter(filters);
      const found: SiteRequest[] = [];
      // The block of that number ends after it.
      for (const block of blocksBefore.iterate(numberOf(siteId), end + rowsPerBlock)) {
        found.push(...requestsIn(block, (row, id) => id < end && isFound(row)).toReversed());
        if (found.length >= limit) break;
      }
      return found.slice(0, limit);
    },
    after(siteId, filters, after, limit) {
      const isFound = filter(filters);
      const found: SiteRequest[] = [];
      for (const block of blocksAfter.iterate(numberOf(siteId), after)) {
        found.push(...requestsIn(block, (row, id) => id > after && isFound(row)));
        if (found.length >= limit) break;
      }
      return found.slice(0, limit);
    },
    newest: newestNumber,
    stats(siteId, window, nowMs) {
      const { seconds, intervalSeconds } = requestWindows[window];
      const intervalMs = intervalSeconds * 1000;
      // Whole intervals, and the one that has begun.
      const toMs = (Math.floor(nowMs / intervalMs) + 1) * intervalMs;
      const fromMs = toMs - seconds * 1000;
      const site = numberOf(siteId);
      const sums = site === null ? [] : sumsFrom(site, fromMs, toMs);
      const lastsSeconds = (atMs: number) => Math.max(1, (Math.min(nowMs, atMs + intervalMs) - atMs) / 1000);
      const series = [...groupBy(sums, ({ atMs }) => Math.floor(atMs / intervalMs) * intervalMs)]
        .toSorted(([a], [b]) => a - b)
        .map(([atMs, parts]) => ({
          at: new Date(atMs).toISOString(),
          ...figuresOf(
            parts.map(({ sum }) => sum),
            lastsSeconds(atMs),
          ),
        }));
      const top = (kind: Kind) =>
        site === null
          ? []
          : topsFrom
              .all(site, kinds[kind], Math.floor(fromMs / hourMs), maxTops)
              .map(({ value, n }) => ({ value: String(value), requests: Number(n) }));
      return {
        window,
        from: new Date(fromMs).toISOString(),
        to: new Date(nowMs).toISOString(),
        intervalSeconds,
        totals: figuresOf(
          sums.map(({ sum }) => sum),
          Math.max(1, (nowMs - fromMs) / 1000),
        ),
        series,
        top: { paths: top("paths"), referrers: top("referrers"), userAgents: top("userAgents") },
      };
    },
    async rollUp(nowMs) {
      const hour = Math.floor(nowMs / hourMs);
      for (const { number } of allSites.all()) {
        if (rolledUp.get(Number(number)) === hour) continue;
        inTransaction(db, () => rollUpSite(Number(number), nowMs));
        rolledUp.set(Number(number), hour);
        await turn();
      }
    },
    keepOnly(siteIds) {
      const wanted = new Set(siteIds);
      const gone = allSites.all().filter(({ site_id }) => !wanted.has(String(site_id)));
      if (gone.length === 0) return;
      inTransaction(db, () => {
        for (const { number, site_id } of gone) {
          for (const table of ["blocks", "figures", "tops"])
            db.prepare(`DELETE FROM ${table} WHERE site = ?`).run(Number(number));
          db.prepare("DELETE FROM sites WHERE number = ?").run(Number(number));
          untrimmed.delete(Number(number));
          rolledUp.delete(Number(number));
          allowed.delete(String(site_id));
        }
      });
    },
    onTaken(siteId, callback, signal) {
      if (signal.aborted) return;
      const all = callbacks.get(siteId) ?? new Set();
      callbacks.set(siteId, all.add(callback));
      signal.addEventListener(
        "abort",
        () => {
          all.delete(callback);
          if (all.size === 0) callbacks.delete(siteId);
        },
        { once: true },
      );
    },
    close: () => db.close(),
  };
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

const classOf = (status: number): number => (status >= 100 && status < 600 ? Math.floor(status / 100) : 0);

function sumsByMinute(seen: readonly SeenRequest[]): Map<number, Sum> {
  const sums = new Map<number, Sum>();
  for (const { atMs, status, bytesIn, bytesOut, durationUs } of seen) {
    const minute = Math.floor(atMs / minuteMs) * minuteMs;
    let sum = sums.get(minute);
    if (!sum) sums.set(minute, (sum = zero()));
    const index = classOf(status);
    sum.statuses[index] = (sum.statuses[index] ?? 0) + 1;
    sum.bytesIn += bytesIn;
    sum.bytesOut += bytesOut;
    if (status !== upgraded) count(sum.sketch, bucketOf(durationUs));
  }
  return sums;
}

function count<T>(counts: Map<T, number>, value: T, by = 1): void {
  counts.set(value, (counts.get(value) ?? 0) + by);
}

function addRow(sum: Sum, body: SQLInputValue | undefined): void {
  const [row] = readRow(Figures, () => JSON.parse(body as string));
  if (!row) return;
  sum.statuses = sum.statuses.map((count, index) => count + (row.s[index] ?? 0));
  sum.bytesIn += row.i;
  sum.bytesOut += row.o;
  addTo(sum.sketch, pairs(row.d));
}

function* pairs(list: readonly number[]): Iterable<readonly [number, number]> {
  for (let index = 0; index + 1 < list.length; index += 2) yield [list[index] ?? 0, list[index + 1] ?? 0];
}

function figuresOf(sums: readonly Sum[], seconds: number): RequestFigures {
  const all = zero();
  for (const { statuses, bytesIn, bytesOut, sketch } of sums) {
    all.statuses = all.statuses.map((count, index) => count + (statuses[index] ?? 0));
    all.bytesIn += bytesIn;
    all.bytesOut += bytesOut;
    addTo(all.sketch, sketch);
  }
  const [none = 0, one = 0, two = 0, three = 0, four = 0, five = 0] = all.statuses;
  const requests = none + one + two + three + four + five;
  return {
    requests,
    perSecond: Math.round((requests / seconds) * 1000) / 1000,
    statuses: { "1xx": one, "2xx": two, "3xx": three, "4xx": four, "5xx": five, none },
    p50Ms: quantileMs(all.sketch, 0.5),
    p95Ms: quantileMs(all.sketch, 0.95),
    p99Ms: quantileMs(all.sketch, 0.99),
    bytesIn: all.bytesIn,
    bytesOut: all.bytesOut,
  };
}

function countsOf(seen: readonly SeenRequest[]): Record<Kind, Map<string, number>> {
  const paths = new Map<string, number>();
  const referrers = new Map<string, number>();
  const userAgents = new Map<string, number>();
  for (const { path, referrer, userAgent } of seen) {
    count(paths, path);
    if (referrer !== null) count(referrers, referrer);
    if (userAgent !== null) count(userAgents, userAgent);
  }
  // Masked once for each value, not for each request.
  return {
    paths: shownCounts(paths, maskPath),
    referrers: shownCounts(referrers, maskReferrer),
    userAgents: shownCounts(userAgents, (agent) => agent),
  };
}

function shownCounts(
  counts: ReadonlyMap<string, number>,
  masked: (value: string) => string,
): Map<string, number> {
  const most = [...counts].toSorted(([, a], [, b]) => b - a).slice(0, maxCounted);
  const shown = new Map<string, number>();
  for (const [value, number] of most) count(shown, kept(masked(value), maxTopCharacters), number);
  return shown;
}

const optional = (text: string | null, maxCharacters: number): string | null =>
  text && kept(text, maxCharacters);

/** A request as it is kept. */
type Row = [
  atMs: number,
  method: string,
  host: string,
  path: string,
  query: string | null,
  status: number,
  durationMs: number,
  bytesIn: number,
  bytesOut: number,
  address: string,
  referrer: string | null,
  userAgent: string | null,
  deploymentId: string | null,
  replica: number | null,
  requestId: string | null,
  represents: number,
];

const rowOf = (seen: SeenRequest, represents: number): Row => [
  Math.round(seen.atMs * 1000) / 1000,
  kept(seen.method, 20),
  kept(seen.host, 255),
  kept(maskPath(seen.path), maxPathCharacters),
  optional(seen.query && maskQuery(seen.query), maxPathCharacters),
  seen.status,
  seen.durationUs / 1000,
  seen.bytesIn,
  seen.bytesOut,
  kept(seen.address, 45),
  optional(seen.referrer && maskReferrer(seen.referrer), maxHeaderCharacters),
  optional(seen.userAgent, maxHeaderCharacters),
  seen.deploymentId,
  seen.replica,
  optional(seen.requestId, 64),
  represents,
];

function shown(id: number, row: Row): SiteRequest {
  const [atMs, method, host, path, query, status, durationMs, bytesIn, bytesOut, address, ...more] = row;
  const [referrer, userAgent, deploymentId, replica, requestId, represents] = more;
  return {
    id: String(id),
    at: new Date(atMs).toISOString(),
    method,
    host,
    path,
    query,
    status,
    durationMs,
    bytesIn,
    bytesOut,
    address,
    referrer,
    userAgent,
    deploymentId,
    replica,
    requestId,
    represents,
  };
}

/** Those of a block that are wanted, oldest first. */
function requestsIn(
  { last, rows, body }: Record<string, SQLOutputValue>,
  isWanted: (row: Row, id: number) => boolean,
): SiteRequest[] {
  const first = Number(last) - Number(rows) + 1;
  const [found = []] = readRow(z.array(SiteRequest), () =>
    (JSON.parse(String(body)) as Row[]).flatMap((row, index) =>
      isWanted(row, first + index) ? shown(first + index, row) : [],
    ),
  );
  return found;
}

function filter(filters: RequestFilters): (row: Row) => boolean {
  const ofClass = Number(/^([1-5])xx$/.exec(filters.status ?? "")?.[1] ?? Number.NaN);
  const exactly = Number.isNaN(ofClass) && filters.status !== undefined ? Number(filters.status) : null;
  const fromMs = filters.from === undefined ? -Infinity : Date.parse(filters.from);
  const toMs = filters.to === undefined ? Infinity : Date.parse(filters.to);
  const method = filters.method?.toUpperCase();
  return ([atMs, itsMethod, , path, , status, , , , address]) =>
    (Number.isNaN(ofClass) || Math.floor(status / 100) === ofClass) &&
    (exactly === null || status === exactly) &&
    (filters.path === undefined || path.startsWith(filters.path)) &&
    (method === undefined || itsMethod === method) &&
    (filters.address === undefined || address === filters.address) &&
    atMs >= fromMs &&
    atMs < toMs;
}
