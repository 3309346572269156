import { createHash } from "node:crypto";
import { closeSync, mkdirSync, readFileSync, readSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { openFile } from "../docker/send-files.ts";
import type { Context } from "./context.ts";

/**
 * The same context, in which a file that is as it was in the build before has the time that it had then, as in a folder in which somebody
 * works: BuildKit need not be sent it again, and what visitors have kept of it stays valid. Git gives each file the time of its fetch.
 * @param file where the times are kept for the next build; may be lost
 */
export function keepingTimes(context: Context, file: string): Context {
  return function* () {
    const before = timesIn(file);
    const now: Record<string, number> = {};
    for (const entry of context()) {
      if (entry.type !== "file" || typeof entry.from !== "string") {
        yield entry;
        continue;
      }
      const key = keyOf(entry.path, entry.from);
      const modifiedMs = (now[key] = before.get(key) ?? entry.modifiedMs);
      yield { ...entry, modifiedMs };
    }
    write(file, now);
  };
}

function timesIn(file: string): Map<string, number> {
  try {
    const times = Object.entries(JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>);
    return new Map(times.filter((one): one is [string, number] => typeof one[1] === "number"));
  } catch {
    return new Map();
  }
}

/** Of a name and of what it holds. */
function keyOf(path: string, from: string): string {
  const hash = createHash("sha256").update(`${path}\0`);
  const descriptor = openFile(from);
  try {
    for (let bytes = -1; bytes !== 0;) {
      bytes = readSync(descriptor, chunk);
      hash.update(chunk.subarray(0, bytes));
    }
  } finally {
    closeSync(descriptor);
  }
  return hash.digest("base64url").slice(0, 22);
}
const chunk = Buffer.allocUnsafe(256 * 1024);

function write(file: string, times: Record<string, number>): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(`${file}.new`, JSON.stringify(times), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch {
    // A full disk: the next build sends all of it.
  }
}
