import type { Engine } from "./engine.ts";
import { LogParser, type LogEntry } from "./log-parser.ts";

/** Each of up to 16 KiB. */
const maxMessages = 1001;

/**
 * The last complete lines of a container's log. The engine counts parts of long lines and may begin within one: that
 * part is dropped, because half a secret would not be masked.
 */
export async function lastEntries(
  engine: Pick<Engine, "readLog">,
  containerId: string,
  { tail, since = null }: { tail: number; since?: string | null },
): Promise<LogEntry[]> {
  let entries: LogEntry[] = [];
  for (const messages of new Set([tail + 1, maxMessages])) {
    const parser = new LogParser();
    entries = parser.push(await engine.readLog(containerId, { tail: messages, since }));
    if (parser.messages < messages) return entries.slice(-tail);
    entries = entries.slice(1);
    if (entries.length >= tail) break;
  }
  return entries.slice(-tail);
}
