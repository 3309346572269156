import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { maxSiteLineCharacters, type Question, type SiteLogLine } from "../../protocol/agent/running.ts";
import type { Engine } from "../docker/engine.ts";
import { lastEntries } from "../docker/last-entries.ts";
import { engineTimeBefore, LogParser, withNanoseconds, type LogEntry } from "../docker/log-parser.ts";
import { labelsOf, ownerOf, replicaOf, secretsIn } from "../docker/specs.ts";
import { printable, redactor } from "../../protocol/redact.ts";
import { bytesOf, LineBatches } from "./line-batches.ts";
import type { Records } from "./records.ts";

export type SiteLogs = {
  engine: Engine;
  agentId: string;
  records: Pick<Records, "lastLines">;
  /** Calls back for every container of the site that starts, until the signal. */
  onStart(siteId: string, callback: (containerId: string) => void, signal: AbortSignal): void;
};

type Asked = Pick<Extract<Question, { kind: "logs" }>, "tail" | "after" | "masks">;

/** What one answer may hold: the newest lines win. */
const maxReadBytes = 4 * 1024 * 1024;
/** What is kept of a container that goes. */
const keptLines = 500;
const keptBytes = 64 * 1024;
/** Between the end of a container's log and the next look whether it runs again. */
const againMs = 200;
/** As long as nothing else of the agent has to wait. */
const turnMs = 10;

/** The last lines of a site or a database after a time, of all its containers, oldest first. */
export async function readSiteLog(
  logs: SiteLogs,
  siteId: string,
  { tail, after, masks }: Asked,
): Promise<SiteLogLine[]> {
  if (tail === 0) return [];
  const from = after === null ? null : withNanoseconds(after);
  const since = from === null ? null : engineTimeBefore(from);
  const read = async (containerId: string) => {
    const shown = await lineMaker(logs.engine, containerId, masks);
    const entries = await lastEntries(logs.engine, containerId, { tail, since });
    return inTurns(
      entries.filter(({ at }) => from === null || at > from),
      shown,
    );
  };
  const containers = await containersOf(logs, siteId);
  const lines = (await Promise.all(containers.map(read))).flat();
  lines.push(...earlierLines(logs, siteId, { containers, from, masks }));
  return lastOf(lines.sort(byTime).slice(-tail), maxReadBytes);
}

/** The last lines of containers that are gone, such as those before a restart or a deployment. */
function earlierLines(
  { records }: SiteLogs,
  siteId: string,
  { containers, from, masks }: { containers: string[]; from: string | null; masks: readonly string[] },
): SiteLogLine[] {
  const redact = redactor([...masks]);
  return records
    .lastLines(siteId)
    .filter(({ containerId }) => !containers.includes(containerId))
    .flatMap(({ lines }) => lines)
    .filter(({ at }) => from === null || at > from)
    .map((line) => ({ ...line, text: redact(line.text) }));
}

/** Before a container of a site goes: its log goes with it. */
export async function keepLastLines(
  { engine, records }: { engine: Engine; records: Pick<Records, "addLastLines"> },
  containerId: string,
): Promise<void> {
  const siteId = ownerOf((await engine.inspectContainer(containerId))?.labels ?? {});
  if (!siteId) return;
  const shown = await lineMaker(engine, containerId, []);
  const entries = await lastEntries(engine, containerId, { tail: keptLines });
  const lines = lastOf(await inTurns(entries, shown), keptBytes);
  if (lines.length > 0) records.addLastLines(siteId, containerId, lines);
}

/** The newest lines that have no more than so many bytes. */
function lastOf(lines: SiteLogLine[], maxBytes: number): SiteLogLine[] {
  let bytes = 0;
  const fits = lines.findLastIndex((line) => (bytes += bytesOf(line)) > maxBytes);
  return lines.slice(fits + 1);
}

/**
 * The site's log after a time, or from its last lines, then live: across restarts, and from each new container, until
 * the signal. Every line once, in the order of its container's log.
 */
export async function followSiteLog(
  logs: SiteLogs,
  siteId: string,
  { tail, after, masks }: Asked,
  signal: AbortSignal,
  deliver: (lines: SiteLogLine[]) => void,
): Promise<void> {
  const batches = new LineBatches(deliver, signal);
  const reading = new Set<string>();
  const startedAgain = new Set<string>();
  const lastAt = new Map<string, string>();
  let from = after === null ? null : withNanoseconds(after);

  const readToItsEnd = async (containerId: string) => {
    const shown = await lineMaker(logs.engine, containerId, masks);
    const parser = new LogParser();
    const last = lastAt.get(containerId) ?? from;
    const since = last === null ? null : engineTimeBefore(last);
    for await (const chunk of logs.engine.followLog(containerId, { tail: "all", since }, signal))
      for (const entry of parser.push(chunk)) {
        if (last !== null && entry.at <= last) continue;
        lastAt.set(containerId, entry.at);
        await batches.add(shown(entry));
      }
  };
  const keepReading = async (containerId: string) => {
    if (reading.has(containerId)) return void startedAgain.add(containerId);
    reading.add(containerId);
    for (;;) {
      startedAgain.delete(containerId);
      await readToItsEnd(containerId).catch(() => undefined);
      await delay(againMs, undefined, { signal });
      const running = (await logs.engine.inspectContainer(containerId))?.running ?? false;
      if (!running && !startedAgain.has(containerId)) break;
    }
    reading.delete(containerId);
  };
  const follow = (containerId: string) =>
    void keepReading(containerId).catch(() => reading.delete(containerId));

  const held: string[] = [];
  let start = (containerId: string): unknown => held.push(containerId);
  logs.onStart(siteId, (containerId) => start(containerId), signal);
  const containers = await containersOf(logs, siteId);
  if (from === null) {
    const lines = await readSiteLog(logs, siteId, { tail: tail === 0 ? 1 : tail, after: null, masks });
    from = lines.at(-1)?.at ?? null;
    if (tail > 0) for (const line of lines) await batches.add(line);
  } else for (const line of earlierLines(logs, siteId, { containers, from, masks })) await batches.add(line);
  start = follow;
  for (const containerId of [...containers, ...held]) follow(containerId);
}

/** Long logs are masked a little at a time, so that the link's pings go out meanwhile. */
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

/** What is shown of a container's entry: its secrets masked, then cut. */
async function lineMaker(
  engine: Engine,
  containerId: string,
  masks: readonly string[],
): Promise<(entry: LogEntry) => SiteLogLine> {
  const container = await engine.inspectContainer(containerId);
  const redact = redactor([...masks, ...(container ? secretsIn(container) : [])]);
  const replica = container?.labels["berth.database"] ? undefined : replicaOf(container?.labels ?? {});
  return ({ at, stream, text }) => {
    const shown = redact(printable(text));
    const cut = shown.length > maxSiteLineCharacters;
    return {
      at,
      stream,
      ...(replica !== undefined && { replica }),
      text: cut ? `${shown.slice(0, maxSiteLineCharacters)} … (line cut)` : shown,
    };
  };
}

const byTime = (a: SiteLogLine, b: SiteLogLine): number => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0);

async function containersOf({ engine, agentId }: SiteLogs, siteId: string): Promise<string[]> {
  const found = await engine.listContainers({ ...labelsOf(siteId), "berth.agent": agentId });
  return found.map(({ id }) => id);
}
