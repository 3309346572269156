import { open, readdir, stat, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";

/** Up to where the log was read: a file, which keeps its identity when it is renamed, and bytes of it. */
export type LogPosition = { file: string; offset: number };

/** One piece that is worked on at a time. A longer line is no line of Caddy's. */
const pieceBytes = 512 * 1024;
const current = "requests.log";
/** The time is part of the name, so they sort in the order in which they were written. */
const rolled = /^requests-.+\.log$/;
const newline = 10;

/** Keeps what was in whole lines, each with its end, and the position after them, both or neither. */
type Take = (lines: string, position: LogPosition) => Promise<void> | void;

/**
 * Reads what Caddy has appended since a position, in whole lines, through all files that it has renamed since. A renamed file is
 * complete: it is removed once it is read.
 */
export async function readAccessLog(
  folder: string,
  position: LogPosition | null,
  take: Take,
  signal: AbortSignal,
): Promise<void> {
  const files = await filesIn(folder);
  const first = Math.max(
    0,
    files.findIndex(({ file }) => position !== null && file === position.file),
  );
  for (const [index, { name, file, size }] of files.entries()) {
    // It was renamed or removed meanwhile: the next look finds it.
    if (file === null) return;
    const path = join(folder, name);
    if (index >= first) {
      const offset = position?.file === file ? position.offset : 0;
      if (offset !== size && !(await readFile(path, { file, offset }, take, signal))) return;
    }
    if (name !== current) await unlink(path).catch(() => undefined);
  }
}

/** In the order in which they were written; `file` as in a position, null: it is gone. */
type Found = { name: string; file: string | null; size: number };

/** Listed again where Caddy renamed one meanwhile: the one that has its name now would be taken for it, and it for read. */
async function filesIn(folder: string): Promise<Found[]> {
  const names = await namesIn(folder);
  const found = await Promise.all(names.map((name) => identity(folder, name)));
  return isDeepStrictEqual(names, await namesIn(folder)) ? found : filesIn(folder);
}

async function namesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder);
  return [
    ...names.filter((name) => rolled.test(name)).toSorted(),
    ...names.filter((name) => name === current),
  ];
}

async function identity(folder: string, name: string): Promise<Found> {
  try {
    const { ino, birthtimeNs, size } = await stat(join(folder, name), { bigint: true });
    return { name, file: `${ino}-${birthtimeNs}`, size: Number(size) };
  } catch {
    return { name, file: null, size: 0 };
  }
}

/** @returns whether this is the file, and it was read up to its end */
async function readFile(
  path: string,
  position: LogPosition,
  take: Take,
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
      await take(buffer.toString("utf8", 0, end), { file: position.file, offset });
    }
    return false;
  } finally {
    await handle.close();
  }
}
