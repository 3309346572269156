import { setTimeout as delay } from "node:timers/promises";
import type { SiteLogLine } from "../../protocol/agent/running.ts";
import { plain } from "../../protocol/redact.ts";
import { alone } from "../alone.ts";
import { label } from "../docker/labels.ts";
import { engineTimeBefore, LogParser, withNanoseconds, type LogEntry } from "../docker/log-parser.ts";
import { NotShown } from "./browse.ts";
import { byTime, type Written } from "./line-batches.ts";
import { sideBySide } from "./side-by-side.ts";
import { containersOf, earlierLines, lineMaker, listedOf, type SiteLogs } from "./site-log.ts";
import { LogPlaces } from "./log-places.ts";

type Asked = {
  /** Compared without regard to case and colours. */
  text: string;
  after: string | null;
  before: string | null;
  limit: number;
  masks: readonly string[];
  timeoutMs: number;
};

/** The limit of one answer, as it is sent: the newest lines win. */
const maxBytes = 512 * 1024;
const concurrency = 2;

const othersRun = "Other searches of this account's logs are running: search again once they have ended.";

type Found = { lines: SiteLogLine[]; complete: boolean };

/**
 * The newest lines that contain a text, oldest first, of all that is kept: whole logs of the containers that are there, and the last
 * lines of those that are gone. A secret is found by nobody: lines are compared once more after they were masked. Searches of one
 * account wait for each other, as each takes seconds of the engine's and the agent's time, which all tenants share.
 * @returns `complete`: all that is kept was looked through, and every line found is in the answer
 * @throws NotShown if its time was up before its turn
 */
export async function searchLog(
  logs: SiteLogs,
  siteId: string,
  asked: Asked,
  ended: AbortSignal,
): Promise<Found> {
  const [one] = await listedOf(logs, siteId);
  const whose = one?.labels[label.account] || siteId;
  const signal = AbortSignal.any([ended, AbortSignal.timeout(asked.timeoutMs)]);
  // One on which the engine hangs holds up nobody who comes after it.
  const late = delay<Found>(asked.timeoutMs + 1000, { lines: [], complete: false }, { ref: false });
  return alone(`search ${whose}`, () => {
    if (signal.aborted) throw new NotShown(othersRun);
    return Promise.race([searchNow(logs, siteId, asked, signal), late]);
  });
}

async function searchNow(
  logs: SiteLogs,
  siteId: string,
  { text, after, before, limit, masks }: Asked,
  signal: AbortSignal,
): Promise<Found> {
  const wanted = text.toLowerCase();
  const [from, to] = [after, before].map((time) => time && withNanoseconds(time));
  const isWanted = ({ at, text: shown }: Pick<LogEntry, "at" | "text">) =>
    (!from || at >= from) && (!to || at < to) && plain(shown).toLowerCase().includes(wanted);
  const containers = await containersOf(logs, siteId);
  let isWhole = true;
  const found: Written[] = [];
  const read: string[] = [];
  const keep = (written: Written) => {
    if (!isWanted(written.line)) return;
    found.push(written);
    if (found.length < 2 * limit) return;
    found.sort(byTime).splice(0, limit);
    isWhole = false;
  };
  await sideBySide(containers, concurrency, async (containerId) => {
    const shown = await lineMaker(logs.engine, containerId, masks);
    const isEnded = (await logs.engine.inspectContainer(containerId))?.running === false;
    const parser = new LogParser();
    let isRead = false;
    const request = { tail: "all" as const, since: from ? engineTimeBefore(from) : null };
    try {
      for await (const chunk of logs.engine.streamLog(containerId, request, signal)) {
        isRead = true;
        for (const entry of parser.push(chunk)) if (isWanted(entry)) keep(shown(entry));
      }
      if (isEnded) for (const entry of parser.end()) if (isWanted(entry)) keep(shown(entry));
      if (parser.isDamaged) isWhole = false;
    } catch {
      // It was removed meanwhile, or the time is up.
      isWhole = false;
    }
    if (isRead) read.push(containerId);
  });
  // One that was removed meanwhile gave none, and is among those of which lines were kept.
  const kept = earlierLines(logs, siteId, { containers: read, places: new LogPlaces(null), masks });
  for (const written of kept) keep(written);
  found.sort(byTime);
  let bytes = 0;
  const cut = found.findLastIndex(
    ({ line }, index) => (bytes += sentBytes(line)) > maxBytes || found.length - index > limit,
  );
  return { lines: found.slice(cut + 1).map(({ line }) => line), complete: isWhole && cut < 0 };
}

/** JSON takes six characters for one that only a terminal reads, and logs are coloured with such. */
const sentBytes = (line: SiteLogLine): number => Buffer.byteLength(JSON.stringify(line)) + 1;
