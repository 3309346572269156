import type { Engine } from "./engine.ts";
import { log } from "../log.ts";
import { LogParser, type LogEntry } from "./log-parser.ts";

/** Each of up to 16 KiB. */
const maxMessages = 1001;

/**
 * The last lines of a container's log; of one that runs, those that are complete. The engine counts parts of long lines and may begin within one: that
 * part is dropped, because half a secret would not be masked.
 * @param onDamaged called if the engine cannot read all of them
 */
export async function lastEntries(
  engine: Pick<Engine, "inspectContainer" | "readLog">,
  containerId: string,
  { tail, since = null }: { tail: number; since?: string | null },
  onDamaged?: () => void,
): Promise<LogEntry[]> {
  // Before the log is read, which is whole then.
  const isEnded = (await engine.inspectContainer(containerId))?.running === false;
  let entries: LogEntry[] = [];
  for (const messages of new Set([tail + 1, maxMessages])) {
    const parser = new LogParser();
    entries = parser.push(await engine.readLog(containerId, { tail: messages, since }));
    if (isEnded) entries.push(...parser.end());
    if (parser.isDamaged) {
      log("warn", "The engine cannot read all of a container's log, a file of which is damaged", {
        containerId,
      });
      onDamaged?.();
    }
    if (parser.messages < messages) return entries.slice(-tail);
    entries = entries.slice(1);
    if (entries.length >= tail) break;
  }
  return entries.slice(-tail);
}
