import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { maxSiteLineCharacters, type Question, type SiteLogLine } from "../../protocol/agent/running.ts";
import type { Engine } from "../docker/engine.ts";
import { lastEntries } from "../docker/last-entries.ts";
import type { LeftOut } from "../docker/log-file.ts";
import { engineTimeBefore, nanosecondAfter, shifted, type LogEntry } from "../docker/log-parser.ts";
import { labelsOf, ownerOf, replicaOf, secretsIn } from "../docker/specs.ts";
import { printable, redactor } from "../../protocol/redact.ts";
import { bytesOf, byTime, LineBatches, type Written } from "./line-batches.ts";
import { logPieces } from "./log-pieces.ts";
import { LogPlaces } from "./log-places.ts";
import type { Records } from "./records.ts";
import { label } from "../docker/labels.ts";

export type SiteLogs = {
  engine: Engine;
  agentId: string;
  records: Pick<Records, "lastLines">;
  /** Calls back for every container of the site that starts, until the signal aborts. */
  onStart(siteId: string, callback: (containerId: string) => void, signal: AbortSignal): void;
};

type Asked = Pick<Extract<Question, { kind: "logs" }>, "tail" | "after" | "masks">;
/** What one follower gets, and what it says of it. */
type Follower = {
  signal: AbortSignal;
  deliver: (lines: SiteLogLine[]) => void;
  /** Deliveries before the first must be acknowledged; null: none ever is. */
  window: number | null;
  /** Call back for each that is. */
  onAcknowledged: (callback: () => void) => void;
};

/** The limit of one answer: the newest lines win. */
const maxReadBytes = 4 * 1024 * 1024;
/** The limits on what is kept of a removed container. */
const keptLines = 500;
const keptBytes = 64 * 1024;
/** The pause between the end of a container's log and the check whether it runs again. */
const againMs = 200;
/** The longest stretch of work without yielding. */
const turnMs = 10;

/** The last lines of a site or a database after a time, of all its containers, oldest first. */
export async function readSiteLog(
  logs: SiteLogs,
  siteId: string,
  { tail, after, masks }: Asked,
): Promise<SiteLogLine[]> {
  if (tail === 0) return [];
  const containers = await containersOf(logs, siteId);
  const lines = await linesOf(logs, siteId, { containers, tail, after, masks });
  return lastOf(lines.slice(-tail), maxReadBytes).map(({ line }) => line);
}

/** The last lines of each container up to this number, oldest first. */
async function linesOf(
  logs: SiteLogs,
  siteId: string,
  { containers, tail, after, masks }: Asked & { containers: string[] },
): Promise<Written[]> {
  const places = new LogPlaces(after);
  const read = async (containerId: string) => {
    const from = places.of(containerId);
    const shown = await lineMaker(logs.engine, containerId, masks);
    let isDamaged = false;
    const asked = { tail, since: engineTimeBefore(from) };
    const entries = await lastEntries(logs.engine, containerId, asked, () => (isDamaged = true));
    const lines = await inTurns(
      entries.filter(({ at }) => at > from),
      shown,
    );
    const last = lines.at(-1)?.line.at;
    if (!isDamaged || last === undefined) return lines;
    return [...lines, leftOutLine(shown, { leftOut: null, at: nanosecondAfter(last) })];
  };
  const lines = (await Promise.all(containers.map(read))).flat();
  // One that was removed meanwhile gave none, and is among those of which lines were kept.
  const given = lines.map(({ containerId }) => containerId);
  return [...lines, ...earlierLines(logs, siteId, { containers: given, places, masks })].sort(byTime);
}

/** The last lines of removed containers, such as those before a restart or a deployment. */
export function earlierLines(
  { records }: SiteLogs,
  siteId: string,
  { containers, places, masks }: { containers: string[]; places: LogPlaces; masks: readonly string[] },
): Written[] {
  const redact = redactor([...masks]);
  return records
    .lastLines(siteId)
    .filter(({ containerId }) => !containers.includes(containerId))
    .flatMap(({ containerId, lines }) =>
      lines
        .filter(({ at }) => at > places.of(containerId))
        .map((line) => ({ containerId, line: { ...line, text: redact(line.text) } })),
    );
}

/** Call before a site's container is removed, because its log is removed with it. */
export async function keepLastLines(
  { engine, records }: { engine: Engine; records: Pick<Records, "addLastLines"> },
  containerId: string,
): Promise<void> {
  const siteId = ownerOf((await engine.inspectContainer(containerId))?.labels ?? {});
  if (!siteId) return;
  const shown = await lineMaker(engine, containerId, []);
  const entries = await lastEntries(engine, containerId, { tail: keptLines });
  const kept = lastOf(await inTurns(entries, shown), keptBytes).map(({ line }) => line);
  if (kept.length > 0) records.addLastLines(siteId, containerId, kept);
}

/** The newest lines up to this many bytes. */
function lastOf(lines: Written[], maxBytes: number): Written[] {
  let bytes = 0;
  const fits = lines.findLastIndex(({ line }) => (bytes += bytesOf(line)) > maxBytes);
  return lines.slice(fits + 1);
}

/**
 * The site's log after a time, or from its last lines, then live: across restarts, and from each new container, until
 * the signal aborts. Every line is delivered once, in the order of its container's log, or counted in a line in its place.
 */
export async function followSiteLog(
  logs: SiteLogs,
  siteId: string,
  { tail, after, masks }: Asked,
  { signal, deliver, window, onAcknowledged }: Follower,
): Promise<void> {
  const places = new LogPlaces(after);
  const batches = new LineBatches(
    (lines) =>
      deliver(
        lines.map(({ containerId, line }) => {
          const place = places.passed(containerId, line.at);
          return place === line.at ? line : { ...line, place };
        }),
      ),
    signal,
    window,
    places,
  );
  onAcknowledged(() => batches.acknowledged());
  const reading = new Set<string>();
  const startedAgain = new Set<string>();
  const lastAt = new Map<string, string>();
  const flushedOf = new Map<string, Set<string>>();

  const add = (containerId: string, lines: Written[]) => {
    const last = lines.at(-1);
    if (last) lastAt.set(containerId, last.line.at);
    return batches.add(lines);
  };
  const readToItsEnd = async (containerId: string) => {
    const shown = await lineMaker(logs.engine, containerId, masks);
    const last = lastAt.get(containerId) ?? places.of(containerId);
    const flushed = flushedOf.get(containerId) ?? new Set();
    flushedOf.set(containerId, flushed);
    for await (const piece of logPieces(logs.engine, containerId, { after: last, flushed }, signal)) {
      const lines = Array.isArray(piece) ? piece.map(shown) : [leftOutLine(shown, piece)];
      await add(containerId, lines);
    }
  };
  const unreadOf = (containerId: string) =>
    earlierLines(logs, siteId, { containers: [], places, masks }).filter(
      (kept) => kept.containerId === containerId && kept.line.at > (lastAt.get(containerId) ?? ""),
    );
  const keepReading = async (containerId: string) => {
    if (reading.has(containerId)) return void startedAgain.add(containerId);
    reading.add(containerId);
    places.opened(containerId);
    for (;;) {
      startedAgain.delete(containerId);
      const isRead = await readToItsEnd(containerId).then(
        () => true,
        () => false,
      );
      await delay(againMs, undefined, { signal });
      // undefined: the engine does not answer.
      const container = await logs.engine.inspectContainer(containerId).catch(() => undefined);
      // It was removed first.
      if (container === null && !isRead) await add(containerId, unreadOf(containerId));
      if (container !== undefined && !container?.running && !startedAgain.has(containerId)) break;
    }
    reading.delete(containerId);
    places.closed(containerId, lastAt.get(containerId));
  };
  const follow = (containerId: string) =>
    void keepReading(containerId).catch(() => reading.delete(containerId));

  const held: string[] = [];
  let start = (containerId: string): unknown => held.push(containerId);
  logs.onStart(siteId, (containerId) => start(containerId), signal);
  const containers = await containersOf(logs, siteId);
  for (const containerId of containers) places.opened(containerId);
  if (after === null) {
    const lines = await linesOf(logs, siteId, { containers, tail: Math.max(tail, 1), after, masks });
    const shown = tail === 0 ? [] : lastOf(lines.slice(-tail), maxReadBytes);
    const hidden = lines.slice(0, lines.length - shown.length);
    for (const { containerId, line } of lines) lastAt.set(containerId, line.at);
    // Skips each container to its last hidden line, or else to just before its first shown one.
    for (const { containerId, line } of shown.toReversed())
      places.skipped(containerId, shifted(line.at, -1n));
    for (const { containerId, line } of hidden) places.skipped(containerId, line.at);
    await batches.add(shown);
  } else await batches.add(earlierLines(logs, siteId, { containers, places, masks }));
  start = follow;
  for (const containerId of [...containers, ...held]) follow(containerId);
}

/** Yields while masking long logs, so that the link's pings are sent in time. */
async function inTurns<T, U>(items: readonly T[], make: (item: T) => U): Promise<U[]> {
  const made: U[] = [];
  let since = performance.now();
  for (const item of items) {
    made.push(make(item));
    if (performance.now() - since < turnMs) continue;
    await nextTurn();
    since = performance.now();
  }
  return made;
}

/** Formats a container's entries: masks its secrets, then cuts the text. */
export async function lineMaker(
  engine: Engine,
  containerId: string,
  masks: readonly string[],
): Promise<(entry: LogEntry) => Written> {
  const container = await engine.inspectContainer(containerId);
  const redact = redactor([...masks, ...(container ? secretsIn(container) : [])]);
  const replica = container?.labels[label.database] ? undefined : replicaOf(container?.labels ?? {});
  return ({ at, stream, text }) => {
    const shown = redact(printable(text));
    const cut = shown.length > maxSiteLineCharacters;
    const line = {
      at,
      stream,
      ...(replica !== undefined && { replica }),
      text: cut ? `${shown.slice(0, maxSiteLineCharacters)} … (line cut)` : shown,
    };
    return { containerId, line };
  };
}

/** Stands where the lines would. */
function leftOutLine(shown: (entry: LogEntry) => Written, { leftOut, at }: LeftOut): Written {
  const count = leftOut === null ? "Lines" : leftOut === 1 ? "1 line" : `${leftOut} lines`;
  const { containerId, line } = shown({ at, stream: "stdout", text: `${count} left out` });
  return { containerId, line: { ...line, leftOut } };
}

/** The site's containers on this host, running or not. */
export const listedOf = ({ engine, agentId }: SiteLogs, siteId: string) =>
  engine.listContainers({ ...labelsOf(siteId), [label.agent]: agentId });

export const containersOf = async (logs: SiteLogs, siteId: string): Promise<string[]> =>
  (await listedOf(logs, siteId)).map(({ id }) => id);
