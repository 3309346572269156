import type { From, LogPiece } from "../docker/log-file.ts";
import { LogParser, type LogEntry } from "../docker/log-parser.ts";

const maxHeldBytes = 512 * 1024;

/**
 * The entries of a log as the engine's API sends it, read without a pause: a log that waits for its reader is rotated away, and nobody
 * counts what was in it. What the reader has no room for is left out, and counted. For hosts whose agent cannot read the engine's files.
 */
export async function* neverWaiting(
  chunks: AsyncIterable<Buffer>,
  { after, flushed }: From,
): AsyncGenerator<LogPiece> {
  const parser = new LogParser(flushed);
  let held: LogEntry[] = [];
  let heldBytes = 0;
  let left = { leftOut: 0, at: "" };
  let wake: (() => void) | undefined;
  let isOver = false;
  const take = (entry: LogEntry) => {
    if (entry.at <= after) return;
    // Once something is left out, so is what follows, until there is room for all of it.
    if (left.leftOut > 0 || heldBytes > maxHeldBytes) {
      left = { leftOut: left.leftOut + 1, at: entry.at };
      return;
    }
    held.push(entry);
    heldBytes += entry.text.length + 80;
  };
  const reading = (async () => {
    try {
      for await (const chunk of chunks) {
        for (const entry of parser.push(chunk)) take(entry);
        wake?.();
      }
      for (const entry of parser.end()) take(entry);
    } finally {
      isOver = true;
      wake?.();
    }
  })();
  // Its failure is this generator's, below.
  reading.catch(() => undefined);
  for (;;) {
    if (held.length > 0) {
      const entries = held;
      [held, heldBytes] = [[], 0];
      yield entries;
    } else if (left.leftOut > 0) {
      const piece = left;
      left = { leftOut: 0, at: "" };
      yield piece;
    } else if (isOver) return await reading;
    else await new Promise<void>((resolve) => (wake = resolve));
  }
}
