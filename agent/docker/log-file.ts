import { statSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { LogEntries, shifted, type LogEntry } from "./log-parser.ts";

/** What a reader gets of a log: the next entries, or what was left out there. */
export type LogPiece = LogEntry[] | LeftOut;
/** How many entries were left out (null: not known), and the time of the last of them. */
export type LeftOut = { leftOut: number | null; at: string };

/** Where a reader goes on: after a time, and without what was flushed at the end of an earlier run (`LogEntries`). */
export type From = { after: string; flushed: Set<string> };

/** The engine's rotated files, oldest last; must match the log rotation in agent/docker/specs.ts. */
export const rotatedEnds = ["", ".1", ".2"];
/** How often the files are looked at. The engine fills one in a tenth of a second at most. */
const lookMs = 40;
/** The pause before the next look where there was something: small pieces hold nobody up on their way. */
const busyLookMs = 10;
/** Bytes that are read at once. */
const readBytes = 128 * 1024;

/** `isCutOff`: the file after it was deleted before anybody looked. */
type File = { handle: FileHandle; inode: number; isCutOff?: boolean };

/**
 * Follows a container's log in the engine's own files (`json-file`). Unlike the engine's API, which repeats lines when files are
 * rotated, this misses and repeats nothing. A file that the engine has deleted is still open here.
 * A reader who does not ask for more is waited for until as much lies before it as the engine keeps; then the oldest file is left out.
 * @param isEnded whether the container has ended, and its log is complete; asked when all of it has been read
 * @throws if the files cannot be opened
 */
export async function* followLogFile(
  path: string,
  { after, flushed, isEnded }: From & { isEnded: () => Promise<boolean> },
  signal: AbortSignal,
): AsyncGenerator<LogPiece> {
  const files = await openSince(path, after);
  const reader = new LineReader(after, flushed);
  /** What was left out and not yet told. */
  let left: LeftOut | null = null;
  const finish = async () => {
    const file = files.shift();
    if (file?.isCutOff) left = sumOf(left, { leftOut: null, at: reader.lastAt });
    reader.begin();
    await file?.handle.close();
  };
  const leaveOut = async () => {
    for (let [oldest] = files; oldest && files.length > rotatedEnds.length; [oldest] = files) {
      left = sumOf(left, await reader.count(oldest.handle));
      await finish();
    }
  };
  /** The reader has not asked for more, so what lies before it is not read meanwhile. */
  let isWaiting = false;
  const look = async () => {
    const last = files.at(-1);
    if (last && inodeOf(path) !== last.inode) {
      const { newer, isLost } = await successors(path, last);
      files.push(...newer);
      if (isLost) {
        last.isCutOff = true;
        files.push(...(await openSince(path, "")));
      }
    }
    if (isWaiting) await leaveOut();
  };
  let looked: Promise<void> | undefined;
  const looking = setInterval(() => {
    looked ??= look()
      .catch(() => undefined)
      .finally(() => (looked = undefined));
  }, lookMs);
  const told = async function* (piece: LogPiece) {
    isWaiting = true;
    yield piece;
    isWaiting = false;
    await looked;
  };
  try {
    for (let wasEnded = false, pauseMs = lookMs; !signal.aborted;) {
      await leaveOut();
      if (left !== null) {
        const piece: LeftOut = left;
        left = null;
        if (piece.leftOut !== 0) yield* told(piece);
        continue;
      }
      const [file] = files;
      if (!file) return;
      // A file that has a successor is complete.
      const isComplete = files.length > 1;
      const entries = await reader.read(file.handle);
      if (entries !== null) {
        wasEnded = false;
        pauseMs = busyLookMs;
        if (entries.length > 0) yield* told(entries);
      } else if (isComplete) await finish();
      else if (wasEnded) {
        const last = reader.end();
        if (last.length > 0) yield* told(last);
        return;
      } else {
        await delay(pauseMs, undefined, { signal });
        pauseMs = lookMs;
        wasEnded = [file.inode, null].includes(inodeOf(path)) && (await isEnded());
      }
    }
  } finally {
    clearInterval(looking);
    await looked;
    await Promise.all(files.map(({ handle }) => handle.close().catch(() => undefined)));
  }
}

const sumOf = (one: LeftOut | null, other: LeftOut): LeftOut => ({
  leftOut: one?.leftOut === null || other.leftOut === null ? null : (one?.leftOut ?? 0) + other.leftOut,
  at: other.at || (one?.at ?? ""),
});

/** Null: there is no such file now. */
const inodeOf = (path: string): number | null => statSync(path, { throwIfNoEntry: false })?.ino ?? null;

async function openFile(path: string): Promise<File> {
  const handle = await open(path, "r");
  return { handle, inode: (await handle.stat()).ino };
}

/** Those that may have entries after a time, oldest first. Entries of two streams may be out of order by a moment. */
async function openSince(path: string, after: string): Promise<File[]> {
  const from = after === "" ? "" : shifted(after, -1_000_000_000n);
  for (;;) {
    const first = await openFile(path);
    const files = [first];
    for (const end of rotatedEnds.slice(1)) {
      const time = await firstTime(files[0] ?? first);
      if (time !== "" && time <= from) break;
      const older = await openFile(`${path}${end}`).catch(() => null);
      if (!older) break;
      files.unshift(older);
    }
    // Otherwise files were renamed meanwhile.
    if (inodeOf(path) === first.inode) return files;
    await Promise.all(files.map(({ handle }) => handle.close()));
  }
}

/** The time of a file's first entry; empty: it has none. */
async function firstTime({ handle }: File): Promise<string> {
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(64 * 1024), 0, 64 * 1024, 0);
  const line = buffer.toString("utf8", 0, bytesRead).split("\n", 1)[0] ?? "";
  return /"time":"([^"]+)"/.exec(line)?.[1] ?? "";
}

/**
 * The files after this one, oldest first; none while it is being renamed. A file has the same place before and after its
 * successors were opened, or they may not be its successors.
 * @returns `isLost`: the engine has deleted it, and perhaps its successor too
 */
async function successors(path: string, { inode }: File): Promise<{ newer: File[]; isLost: boolean }> {
  const inodes = rotatedEnds.map((end) => inodeOf(path + end));
  const place = inodes.indexOf(inode);
  // Without a file of the first name, the engine is renaming them now.
  if (place < 0) return { newer: [], isLost: !inodes.includes(null) };
  const newer: File[] = [];
  try {
    for (let next = place - 1; next >= 0; next--) newer.push(await openFile(`${path}${rotatedEnds[next]}`));
    if (inodeOf(path + rotatedEnds[place]) === inode) return { newer, isLost: false };
  } catch {
    // It is being renamed.
  }
  await Promise.all(newer.map(({ handle }) => handle.close()));
  return { newer: [], isLost: false };
}

/** Checked by hand: a site may write a hundred thousand lines a second. */
type Message = { log: string; stream: LogEntry["stream"]; time: string };
const isMessage = (found: Partial<Message> | null): found is Message =>
  typeof found?.log === "string" &&
  typeof found.time === "string" &&
  (found.stream === "stdout" || found.stream === "stderr");

/** Reads the entries of one file after the other. */
class LineReader {
  private readonly entries: LogEntries;
  private readonly buffer = Buffer.allocUnsafe(readBytes);
  private position = 0;
  private readonly after: string;
  lastAt = "";

  /** @param after entries after this time are new */
  constructor(after: string, flushed: Set<string>) {
    this.after = after;
    this.entries = new LogEntries(flushed);
  }

  /** The next file begins. */
  begin(): void {
    this.position = 0;
  }

  /** The next entries; null: there is nothing more in the file now. */
  async read(handle: FileHandle): Promise<LogEntry[] | null> {
    const { bytesRead } = await handle.read(this.buffer, 0, readBytes, this.position);
    // A character of several bytes is not cut, as a line is read to its end only.
    const end = this.buffer.subarray(0, bytesRead).lastIndexOf(10) + 1;
    if (end === 0) {
      if (bytesRead < readBytes) return null;
      // Longer than any line of the engine's: it is none.
      this.position += bytesRead;
      return [];
    }
    this.position += end;
    return this.parse(this.buffer.toString("utf8", 0, end));
  }

  /** Reads to the end of the file, and tells how many entries there were. */
  async count(handle: FileHandle): Promise<LeftOut> {
    for (let leftOut = 0; ;) {
      const entries = await this.read(handle);
      if (entries === null) return { leftOut, at: this.lastAt };
      leftOut += entries.length;
    }
  }

  /** The last output of an ended container that has no newline. */
  end(): LogEntry[] {
    return this.fresh(this.entries.end());
  }

  private parse(text: string): LogEntry[] {
    const found: LogEntry[] = [];
    for (let at = 0; at < text.length;) {
      const end = text.indexOf("\n", at);
      const message = messageIn(text.slice(at, end));
      at = end + 1;
      if (!message) continue;
      found.push(...this.entries.message(message.stream, nineDecimals(message.time), message.log));
    }
    return this.fresh(found);
  }

  private fresh(entries: LogEntry[]): LogEntry[] {
    this.lastAt = entries.at(-1)?.at ?? this.lastAt;
    return entries.filter(({ at }) => at > this.after);
  }
}

function messageIn(line: string): Message | null {
  try {
    const found = JSON.parse(line) as Partial<Message> | null;
    return isMessage(found) ? found : null;
  } catch {
    // Half a line, of an engine that was killed, or a damaged one.
    return null;
  }
}

/** The engine leaves zeros at the end out. */
const nineDecimals = (time: string): string =>
  time.length === 30 ? time : `${time.slice(0, 19)}.${time.slice(20, -1).padEnd(9, "0")}Z`;
