import { open, readdir, stat, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";

/** Up to where the log was read: a file, which keeps its identity when it is renamed, and bytes of it. */
export type LogPosition = { file: string; offset: number };

/** One piece that is worked on at a time. A longer line is no line of Caddy's. */
const pieceBytes = 512 * 1024;
const current = "requests.log";
/** The time is part of the name, so they sort in the order in which they were written. */
const rolled = /^requests-.+\.log$/;
const newline = 10;

/**
 * Reads what Caddy has appended since a position, in whole lines, through all files that it has renamed since. A renamed file is
 * complete: it is removed once it is read.
 * @param take keeps what it was given and the position after it, both or neither
 */
export async function readAccessLog(
  folder: string,
  position: LogPosition | null,
  take: (lines: string[], position: LogPosition) => Promise<void> | void,
  signal: AbortSignal,
): Promise<void> {
  const names = await readdir(folder);
  const files = [
    ...names.filter((name) => rolled.test(name)).toSorted(),
    ...names.filter((name) => name === current),
  ];
  const ids = await Promise.all(files.map((name) => identity(join(folder, name))));
  const first = Math.max(0, ids.indexOf(position?.file ?? ""));
  for (const [index, name] of files.entries()) {
    const path = join(folder, name);
    const id = ids[index];
    // It was renamed or removed meanwhile: the next look finds it.
    if (id === undefined) return;
    if (index >= first) {
      const offset = position?.file === id ? position.offset : 0;
      const isRead = await readFile(path, { file: id, offset }, take, signal);
      if (!isRead) return;
    }
    if (name !== current) await unlink(path).catch(() => undefined);
  }
}

async function identity(path: string): Promise<string | undefined> {
  try {
    const { ino, birthtimeNs } = await stat(path, { bigint: true });
    return `${ino}-${birthtimeNs}`;
  } catch {
    return undefined;
  }
}

/** @returns whether this is the file, and it was read up to its end */
async function readFile(
  path: string,
  position: LogPosition,
  take: (lines: string[], position: LogPosition) => Promise<void> | void,
  signal: AbortSignal,
): Promise<boolean> {
  let handle: FileHandle;
  try {
    handle = await open(path, "r");
  } catch {
    return false;
  }
  try {
    const { ino, birthtimeNs, size } = await handle.stat({ bigint: true });
    if (`${ino}-${birthtimeNs}` !== position.file) return false;
    const buffer = Buffer.allocUnsafe(pieceBytes);
    let { offset } = position;
    // What is cut off at its front was read before, or is lost.
    if (offset > size) offset = 0;
    while (!signal.aborted) {
      const { bytesRead } = await handle.read(buffer, 0, pieceBytes, offset);
      if (bytesRead === 0) return true;
      const end = buffer.subarray(0, bytesRead).lastIndexOf(newline) + 1;
      // Caddy is still writing this line; one that fills all of the buffer is passed over.
      if (end === 0 && bytesRead < pieceBytes) return true;
      offset += end === 0 ? bytesRead : end;
      await take(end === 0 ? [] : buffer.toString("utf8", 0, end - 1).split("\n"), {
        file: position.file,
        offset,
      });
    }
    return false;
  } finally {
    await handle.close();
  }
}
